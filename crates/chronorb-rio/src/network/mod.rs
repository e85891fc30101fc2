//! A test network: two hosts on one machine, with a switch between them that holds rates.
//!
//! Each host, and the switch, is a network namespace. Without names they are held by this process only and end with it,
//! whichever way it ends, and so do all of their interfaces.
//!
//! ```no_run
//! use chronorb_rio::network::{Host, Layout, Network};
//!
//! let network = Network::build(&Layout { rate: Some(100_000_000), ..Layout::default() })?;
//! let listener = network.host(Host::B).enter(|| std::net::TcpListener::bind("10.79.0.2:4711"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod error;
mod layout;

use std::io;
use std::process::{Child, Command};

use chronorb_rt::NetworkNamespace;

use crate::driver::{DriverError, Link};
use crate::netlink::{Netlink, NetlinkError};

pub use error::NetworkError;
pub use layout::{Addresses, Host, Layout};

/// Two hosts and a switch between them. Dropping it removes all.
#[derive(Debug)]
pub struct Network {
    a: TestHost,
    b: TestHost,
    switch: NetworkNamespace,
}

impl Network {
    /// Builds it, without names.
    ///
    /// # Errors
    /// [`NetworkError`], for example without `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`; nothing stays behind then.
    pub fn build(layout: &Layout) -> Result<Self, NetworkError> {
        build::build(layout)
    }

    /// One of the hosts.
    pub fn host(&self, host: Host) -> &TestHost {
        match host {
            Host::A => &self.a,
            Host::B => &self.b,
        }
    }

    /// The namespace of the switch, which has the ports [`Host::port`].
    pub fn switch(&self) -> &NetworkNamespace {
        &self.switch
    }
}

/// A host of the test network: a namespace with a loopback and one interface, [`INTERFACE`].
#[derive(Debug)]
pub struct TestHost {
    namespace: NetworkNamespace,
    addresses: Addresses,
}

impl TestHost {
    /// Lets the calling thread do something as on this host. Threads and processes that it starts meanwhile stay there,
    /// and so do sockets that it opens.
    ///
    /// # Panics
    /// Where the thread cannot go there, which it could when the network was built, or not back.
    pub fn enter<T>(&self, f: impl FnOnce() -> T) -> T {
        let entered = self.namespace.enter(f);
        entered.expect("who could build the network may enter it")
    }

    /// Starts a program on this host.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.enter(|| command.spawn())
    }

    /// A socket to the kernel's network of this host.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn netlink(&self) -> Result<Netlink, NetlinkError> {
        self.enter(Netlink::open)
    }

    /// Its interface.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn link(&self) -> Result<Link, DriverError> {
        self.netlink()?.driver_link(INTERFACE)
    }

    /// Its addresses.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Its namespace.
    pub fn namespace(&self) -> &NetworkNamespace {
        &self.namespace
    }
}

/// The name of the interface of each host.
pub const INTERFACE: &str = "rio0";
