//! The two hosts of the experiment, and the processes on them.

use chronorb_rt::{MemoryLock, Rights};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use rustix::net::{self, AddressFamily, SocketType, sockopt};
use serde::de::DeserializeOwned;

use super::PART;
use super::class::RioHost;
use super::order::{RioOrder, RioSender, RioServer, Traffic};
use crate::bench::{CallScheduling, Cpus, Placement, check_permitted};
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};

/// Two hosts with a switch between them: the server on the last CPU, all others on the first.
#[derive(Debug)]
pub(super) struct RioSite {
    network: Network,
    pub(super) machine: RioMachine,
}

/// The processors, rights and settings of a run.
#[derive(Clone, Debug)]
pub(super) struct RioMachine {
    pub(super) cpus: Cpus,
    pub(super) lock_memory: bool,
    /// Whether threads may have real-time priorities.
    pub(super) real_time: bool,
    pub(super) driver: String,
    /// The congestion control of bulk traffic that keeps a receiver busy.
    pub(super) unyielding: String,
}

impl RioMachine {
    /// Reads the processors and rights of this process.
    pub(super) fn probe(driver: &str) -> Result<Self, LabError> {
        Ok(Self {
            cpus: Cpus::of_this_process()?,
            lock_memory: Rights::probe().memory_lock == MemoryLock::Unlimited,
            real_time: check_permitted(CallScheduling::Fifo).is_ok(),
            driver: driver.to_owned(),
            unyielding: unyielding().map_err(LabError::work("choosing a congestion control"))?,
        })
    }

    /// Returns two CPUs: the one of the senders and the switch, and the one of the server.
    pub(super) fn ends(&self) -> [usize; 2] {
        let first = self.cpus.iter().next().unwrap_or_default();
        [first, self.cpus.iter().last().unwrap_or(first)]
    }

    /// Builds two hosts with a switch between them, which forwards at this rate in bit/s.
    pub(super) fn network(&self, rate: u64, mtu: u32) -> Result<Network, LabError> {
        let network = Network::build(&Layout {
            mtu,
            rate: Some(rate),
            cpus: Some(self.ends()),
            ..Layout::default()
        });
        Ok(network?)
    }

    /// Returns the host on which a server listens.
    pub(super) fn host(&self, network: &Network) -> RioHost {
        RioHost {
            address: network.host(Host::B).addresses().v4.into(),
            interface: INTERFACE.to_owned(),
            driver: self.driver.clone(),
        }
    }

    /// Returns a priority of `SCHED_FIFO`, if this process may use it.
    pub(super) fn fifo(&self, priority: u8) -> Option<u8> {
        self.real_time.then_some(priority)
    }
}

impl RioSite {
    /// Builds the network.
    pub(super) fn build(machine: &RioMachine, rate: u64, mtu: u32) -> Result<Self, LabError> {
        Ok(Self {
            network: machine.network(rate, mtu)?,
            machine: machine.clone(),
        })
    }

    /// Returns the host on which the server listens.
    pub(super) fn host(&self) -> RioHost {
        self.machine.host(&self.network)
    }

    /// Starts a server, and senders to its acceptors; all are connected when this returns.
    ///
    /// A traffic with its priority goes to the acceptor at its index, or to the last one.
    pub(super) fn start(
        &self,
        server: RioServer,
        traffic: &[(Option<u8>, Traffic)],
    ) -> Result<(Child, Vec<Child>), LabError> {
        let order = RioOrder::Serve(server);
        let (server, addresses) = self.start_one(Host::B, "server", &order)?;
        let addresses: Vec<_> = addresses;
        let last = addresses.len().saturating_sub(1);
        let mut senders = Vec::new();
        for (index, (fifo, traffic)) in traffic.iter().enumerate() {
            let (name, lock_memory) = match traffic {
                Traffic::Echoes { .. } => ("sender of echoes", self.machine.lock_memory),
                Traffic::Bulk { .. } => ("sender of bulk data", false),
            };
            let order = RioOrder::Send(RioSender {
                to: addresses[index.min(last)],
                fifo: *fifo,
                lock_memory,
                traffic: traffic.clone(),
            });
            let (sender, Ready {}) = self.start_one(Host::A, name, &order)?;
            let cpus = &self.machine.cpus;
            cpus.place(Placement::AcrossCpus, sender.id(), server.id())?;
            senders.push(sender);
        }
        Ok((server, senders))
    }

    fn start_one<T: DeserializeOwned>(
        &self,
        host: Host,
        name: &str,
        order: &RioOrder,
    ) -> Result<(Child, T), ProcessError> {
        let host = self.network.host(host);
        host.enter(|| Child::start(name, PART, order))
    }
}

/// Returns a congestion control that does not slow down where a busy receiver loses packets: BBR,
/// or else the kernel's default.
fn unyielding() -> Result<String, rustix::io::Errno> {
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    match sockopt::set_tcp_congestion(&socket, BBR) {
        Ok(()) => Ok(BBR.to_owned()),
        Err(_) => sockopt::tcp_congestion(&socket),
    }
}

const BBR: &str = "bbr";
