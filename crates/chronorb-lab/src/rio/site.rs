//! Where trials are made: two hosts, and processes on them.

use std::net::IpAddr;

use chronorb_rt::{MemoryLock, Rights};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use rustix::net::{self, AddressFamily, SocketType, sockopt};
use serde::de::DeserializeOwned;

use super::PART;
use super::class::Place;
use super::order::{EchoOrder, Order, SenderOrder, ServerOrder, Serving};
use crate::bench::{Cpus, Placement, Scheduled, check_permitted};
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};

/// Two hosts with a switch between them: the server on the last CPU, all others on the first.
#[derive(Debug)]
pub(super) struct Site {
    network: Network,
    pub(super) machine: Machine,
}

/// What this machine has, and what this process may do with it.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) cpus: Cpus,
    pub(super) lock_memory: bool,
    /// Whether threads may have real-time priorities.
    pub(super) real_time: bool,
    pub(super) driver: String,
    /// The congestion control of bulk traffic that is to keep a receiver busy.
    pub(super) unyielding: String,
}

impl Machine {
    /// Looks at it.
    pub(super) fn probe(driver: &str) -> Result<Self, LabError> {
        Ok(Self {
            cpus: Cpus::of_this_process()?,
            lock_memory: Rights::probe().memory_lock == MemoryLock::Unlimited,
            real_time: check_permitted(Scheduled::Fifo).is_ok(),
            driver: driver.to_owned(),
            unyielding: unyielding()?,
        })
    }

    /// The CPU of the sender and of the switch, and that of the server.
    pub(super) fn ends(&self) -> [usize; 2] {
        let first = self.cpus.iter().next().unwrap_or_default();
        [first, self.cpus.iter().last().unwrap_or(first)]
    }

    /// Two hosts with a switch between them that lets so many bits through in a second.
    pub(super) fn network(&self, rate: u64, mtu: u32) -> Result<Network, LabError> {
        let network = Network::build(&Layout {
            mtu,
            rate: Some(rate),
            cpus: Some(self.ends()),
            ..Layout::default()
        });
        Ok(network?)
    }

    /// Where a server listens with RIO.
    pub(super) fn place(&self, network: &Network) -> Place {
        Place {
            host: network.host(Host::B).addresses().v4.into(),
            interface: INTERFACE.to_owned(),
            driver: self.driver.clone(),
        }
    }

    /// A priority of `SCHED_FIFO`, where there may be one.
    pub(super) fn fifo(&self, priority: u8) -> Option<u8> {
        self.real_time.then_some(priority)
    }
}

impl Site {
    /// Builds the network.
    pub(super) fn build(machine: &Machine, rate: u64, mtu: u32) -> Result<Self, LabError> {
        Ok(Self {
            network: machine.network(rate, mtu)?,
            machine: machine.clone(),
        })
    }

    /// Where the server listens.
    pub(super) fn host(&self) -> IpAddr {
        self.network.host(Host::B).addresses().v4.into()
    }

    /// Where it does so with RIO.
    pub(super) fn place(&self) -> Place {
        self.machine.place(&self.network)
    }

    /// Starts a server; when this returns it listens.
    pub(super) fn serve(&self, order: ServerOrder) -> Result<(Child, Serving), ProcessError> {
        self.start(Host::B, "server", &Order::Serve(order))
    }

    /// Starts who sends small messages; when this returns it is connected, and has sent some.
    pub(super) fn echo(&self, order: EchoOrder) -> Result<Child, ProcessError> {
        let started = self.start(Host::A, "sender of echoes", &Order::Echo(order));
        started.map(|(child, Ready {})| child)
    }

    /// Starts who sends bulk data; when this returns it is connected.
    pub(super) fn send(&self, order: SenderOrder) -> Result<Child, ProcessError> {
        let started = self.start(Host::A, "sender of bulk data", &Order::Send(order));
        started.map(|(child, Ready {})| child)
    }

    /// Puts a server, and all who send to it, on their CPUs.
    pub(super) fn put_in_places(&self, server: &Child, senders: &[&Child]) -> Result<(), LabError> {
        for sender in senders {
            let cpus = &self.machine.cpus;
            cpus.place(Placement::AcrossCpus, sender.id(), server.id())?;
        }
        Ok(())
    }

    fn start<T: DeserializeOwned>(
        &self,
        host: Host,
        name: &str,
        order: &Order,
    ) -> Result<(Child, T), ProcessError> {
        let host = self.network.host(host);
        host.enter(|| Child::start(name, PART, order))
    }
}

/// A congestion control that does not slow down where packets are lost, as they are where a receiver has more than it can do:
/// BBR, or else what the kernel has for all.
fn unyielding() -> Result<String, LabError> {
    let usual = || {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        match sockopt::set_tcp_congestion(&socket, BBR) {
            Ok(()) => Ok(BBR.to_owned()),
            Err(_) => sockopt::tcp_congestion(&socket),
        }
    };
    usual().map_err(LabError::work("looking for a congestion control"))
}

const BBR: &str = "bbr";
