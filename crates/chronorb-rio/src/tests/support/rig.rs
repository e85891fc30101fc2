//! Two hosts with a driver each: at a wire in memory, or on the test network.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::driver::wire::{self, Wire};
use crate::driver::{self, Driver, DriverChoice, Link};
use crate::engine::{Ports, ReservedPort, Subsystem};
use crate::neighbours::Neighbours;
use chronorb_rt::Deadline;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};

/// A host from the classes' point of view.
pub(crate) struct RigHost {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) place: Place,
}

/// The location of a host.
pub(crate) enum Place {
    Wire(Arc<dyn Ports>, Arc<dyn Neighbours>),
    Network(Arc<Network>, Host),
}

impl RigHost {
    /// Returns the IPv4 address.
    pub(crate) fn address(&self) -> IpAddr {
        let mut addresses = self.driver.link().addresses.iter();
        let first = addresses.find(|(address, _)| address.is_ipv4());
        first.expect("it has one").0
    }

    pub(crate) fn subsystem(&self) -> Subsystem {
        let driver = self.driver.clone();
        match &self.place {
            Place::Wire(ports, neighbours) => {
                Subsystem::new(driver, ports.clone(), neighbours.clone())
            }
            Place::Network(network, host) => {
                let made = network.host(*host).enter(|| Subsystem::of_host(driver));
                made.expect("the namespace can be held")
            }
        }
    }
}

/// Returns a wire, and the hosts at its left and right end.
pub(crate) fn wired() -> (Wire, [RigHost; 2]) {
    let link = |host: u8| Link {
        name: format!("wire{host}"),
        index: host.into(),
        hardware: [2, 0, 0, 0, 0, host],
        mtu: 1500,
        addresses: vec![([10, 0, 0, host].into(), 24)],
    };
    let (wire, left, right) = wire::join(link(1), link(2), 1024);
    let known = [link(1), link(2)].map(|link| (link.addresses[0].0, link.hardware));
    let neighbours = Arc::new(KnownNeighbours(known.into()));
    let hosts = [left, right].map(|end| RigHost {
        driver: Arc::new(end),
        place: Place::Wire(Arc::new(FreePorts::default()), neighbours.clone()),
    });
    (wire, hosts)
}

/// Returns the two hosts of the test network, each with this driver, which `wrap` may wrap. Returns
/// `None`, with a note, if this process may not create a network.
pub(crate) fn networked(
    choice: DriverChoice,
    mut wrap: impl FnMut(Box<dyn Driver>) -> Arc<dyn Driver>,
) -> Option<[RigHost; 2]> {
    let network = Arc::new(Network::build_for_test(&Layout::default())?);
    let options = driver::DriverOptions {
        driver: choice,
        ..driver::DriverOptions::default()
    };
    Some([Host::A, Host::B].map(|host| {
        let opened = network
            .host(host)
            .enter(|| driver::open(INTERFACE, options));
        RigHost {
            driver: wrap(opened.expect("a process that builds networks may open drivers")),
            place: Place::Network(network.clone(), host),
        }
    }))
}

/// Ports of a host without a kernel, at the end of a wire in memory: no other program uses any.
#[derive(Debug)]
pub(crate) struct FreePorts {
    next: AtomicU16,
}

impl Default for FreePorts {
    fn default() -> Self {
        Self {
            next: AtomicU16::new(FIRST),
        }
    }
}

impl Ports for FreePorts {
    fn reserve(&self, address: SocketAddr) -> io::Result<ReservedPort> {
        let number = match address.port() {
            0 => self.next.fetch_add(1, Ordering::Relaxed).max(FIRST),
            given => given,
        };
        Ok(ReservedPort {
            number,
            _guard: Box::new(()),
        })
    }
}

/// Neighbours with known addresses, as on a wire in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownNeighbours(pub HashMap<IpAddr, [u8; 6]>);

impl Neighbours for KnownNeighbours {
    fn next_hop(&self, to: IpAddr, _: Deadline) -> io::Result<[u8; 6]> {
        let known = self.0.get(&to).copied();
        known.ok_or_else(|| io::ErrorKind::HostUnreachable.into())
    }
}

/// The first port for unspecified ports (RFC 6335 §6).
const FIRST: u16 = 49_152;
