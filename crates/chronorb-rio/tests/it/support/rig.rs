//! Two hosts with a driver each: at a wire in memory, or on the test network.

use std::net::IpAddr;
use std::sync::Arc;

use chronorb_rio::driver::wire::{self, Wire};
use chronorb_rio::driver::{self, Choice, Driver, Link};
use chronorb_rio::engine::{FreePorts, Ports, Subsystem};
use chronorb_rio::neighbours::{KnownNeighbours, Neighbours};
use chronorb_testnet::{Host, INTERFACE, Layout, Network, NetworkError};

/// A host as classes see it.
pub(crate) struct RigHost {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) place: Place,
}

/// Where a host is.
pub(crate) enum Place {
    Wire(Arc<dyn Ports>, Arc<dyn Neighbours>),
    Network(Arc<Network>, Host),
}

impl RigHost {
    /// The address by IPv4.
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
        place: Place::Wire(Arc::new(FreePorts::default()), neighbours.clone()),
    });
    (wire, hosts)
}

/// The two hosts of the test network, each with this driver, around which `wrap` may put something; `None`, with a word
/// about it, where this process may not build one.
pub(crate) fn networked(
    choice: Choice,
    mut wrap: impl FnMut(Box<dyn Driver>) -> Arc<dyn Driver>,
) -> Option<[RigHost; 2]> {
    let network = match Network::build(&Layout::default()) {
        Ok(network) => Arc::new(network),
        Err(error @ NetworkError::Denied { .. }) => {
            println!("NOT RUN: {error}");
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {error}");
            return None;
        }
        Err(error) => panic!("the network is not built: {error}"),
    };
    let options = driver::Options {
        driver: choice,
        ..driver::Options::default()
    };
    Some([Host::A, Host::B].map(|host| {
        let opened = network
            .host(host)
            .enter(|| driver::open(INTERFACE, options));
        RigHost {
            driver: wrap(opened.expect("who builds networks may open drivers")),
            place: Place::Network(network.clone(), host),
        }
    }))
}
