//! Two hosts with a driver each: at a wire in memory, or on the test network.
#![allow(dead_code, reason = "each test uses its part")]

use std::net::IpAddr;
use std::sync::Arc;

use chronorb_rio::driver::wire::{self, Wire};
use chronorb_rio::driver::{Driver, Link};
use chronorb_rio::engine::{FreePorts, Ports, Subsystem};
use chronorb_rio::neighbours::{KnownNeighbours, Neighbours};

/// A host as classes see it.
pub(crate) struct RigHost {
    pub(crate) driver: Arc<dyn Driver>,
    ports: Arc<dyn Ports>,
    neighbours: Arc<dyn Neighbours>,
}

impl RigHost {
    /// The address by IPv4.
    pub(crate) fn address(&self) -> IpAddr {
        let mut addresses = self.driver.link().addresses.iter();
        let first = addresses.find(|(address, _)| address.is_ipv4());
        first.expect("it has one").0
    }

    pub(crate) fn subsystem(&self) -> Subsystem {
        let (ports, neighbours) = (self.ports.clone(), self.neighbours.clone());
        Subsystem::new(self.driver.clone(), ports, neighbours)
    }
}

/// The wire, and what is at its left and at its right end.
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
        ports: Arc::new(FreePorts::default()),
        neighbours: neighbours.clone(),
    });
    (wire, hosts)
}
