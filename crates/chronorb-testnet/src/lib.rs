//! A test network: two hosts on one machine, with a switch between them that holds rates and
//! delays.
//!
//! Each host, and the switch, is a network namespace. Without names they are held by this process
//! only and end with it, whichever way it ends, and so do all of their interfaces.
//!
//! ```no_run
//! use chronorb_testnet::{Host, Layout, Network};
//!
//! let network = Network::build(&Layout { rate: Some(100_000_000), ..Layout::default() })?;
//! let listener = network.host(Host::B).enter(|| std::net::TcpListener::bind("10.79.0.2:4711"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod build;
mod delay;
mod error;
mod layout;
mod names;

use std::env;
use std::io;
use std::process::{Child, Command};

use chronorb_net::{LinkInfo, Netlink, NetlinkError, NetworkNamespace, Undo};
use delay::DelayThread;
use names::Names;

pub use error::NetworkError;
pub use layout::{Addresses, Host, Layout};
pub use names::remove_abandoned;

/// Two hosts and a switch between them. Dropping it removes all.
#[derive(Debug)]
pub struct Network {
    a: TestHost,
    b: TestHost,
    switch: NetworkNamespace,
    name: Option<String>,
    names: Names,
    delaying: Option<DelayThread>,
}

impl Network {
    /// Builds it, without names.
    ///
    /// # Errors
    /// [`NetworkError`], for example without `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`; nothing stays
    /// behind then.
    pub fn build(layout: &Layout) -> Result<Self, NetworkError> {
        build::build(layout)
    }

    /// Builds it, with names: `NAME-a` and `NAME-b` are the hosts, `NAME-switch` is the switch,
    /// under [`NAMES`](chronorb_net::NAMES), where `ip netns exec` finds them. Without a name it is
    /// `chronorb-PROCESS`.
    ///
    /// Names outlive a process that is killed. Therefore `tell` receives each name before it is
    /// used.
    ///
    /// # Errors
    /// [`NetworkError`]; nothing stays behind then.
    pub fn build_named(
        layout: &Layout,
        name: Option<&str>,
        tell: &mut dyn FnMut(&Undo) -> io::Result<()>,
    ) -> Result<Self, NetworkError> {
        let name = name.map_or_else(names::own_name, str::to_owned);
        let is_right = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let starts_right = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts_right || name.len() > MAX_NAME || !name.chars().all(is_right) {
            return Err(NetworkError::InvalidName(name));
        }
        let mut network = Self::build(layout)?;
        let namespaces = [&network.a.namespace, &network.b.namespace, &network.switch];
        for (namespace, suffix) in namespaces.into_iter().zip(names::SUFFIXES) {
            network
                .names
                .give(namespace, &format!("{name}{suffix}"), tell)?;
        }
        network.name = Some(name);
        Ok(network)
    }

    /// Builds it for a test. Returns `None`, and prints that on standard output, if the process may
    /// not build one.
    ///
    /// # Panics
    /// Where the network is not built for another reason, or where tests that cannot be run are
    /// failures (`CHRONORB_PEERS=required`).
    #[allow(clippy::print_stdout, reason = "the output of a test")]
    pub fn build_for_test(layout: &Layout) -> Option<Self> {
        match Self::build(layout) {
            Ok(network) => Some(network),
            Err(error @ NetworkError::Denied { .. }) => {
                println!("NOT RUN: {error}");
                let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
                assert!(!required, "CHRONORB_PEERS=required: {error}");
                None
            }
            Err(error) => panic!("the network is not built: {error}"),
        }
    }

    /// Returns the prefix of its names, if it has some.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// One of the hosts.
    pub fn host(&self, host: Host) -> &TestHost {
        match host {
            Host::A => &self.a,
            Host::B => &self.b,
        }
    }

    /// Plugs the cable of a host in, or pulls it out. Packets to and from a host without a cable
    /// are dropped, and neither host is told, as where a machine or a firewall has vanished. Only
    /// without a [delay](Layout::delay).
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn plug(&self, host: Host, is_plugged: bool) -> Result<(), NetlinkError> {
        let opened = self.switch.enter(Netlink::open);
        let mut netlink = opened.expect("the builder of the network may enter it")?;
        let port = netlink.link(host.port())?;
        let bridge = if is_plugged {
            netlink.link(build::BRIDGE)?.index
        } else {
            0
        };
        netlink.set_master(port.index, bridge)
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
    /// Lets the calling thread do something as on this host. Threads and processes that it starts
    /// meanwhile stay there, and so do sockets that it opens.
    ///
    /// # Panics
    /// Where the thread cannot go there, which it could when the network was built, or not back.
    pub fn enter<T>(&self, f: impl FnOnce() -> T) -> T {
        let entered = self.namespace.enter(f);
        entered.expect("the builder of the network may enter it")
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

    /// Returns the interface.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn link(&self) -> Result<LinkInfo, NetlinkError> {
        self.netlink()?.link(INTERFACE)
    }

    /// Returns the addresses.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &NetworkNamespace {
        &self.namespace
    }
}

/// The name of the interface of each host.
pub const INTERFACE: &str = "rio0";
/// The longest name in octets, for which file systems have room with its suffix.
const MAX_NAME: usize = 100;
