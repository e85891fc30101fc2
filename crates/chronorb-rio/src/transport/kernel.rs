//! The kernel's own TCP at an interface whose queues enforce a plan.

mod connection;
mod quota;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use chronorb_net::Netlink;
use chronorb_rt::{Deadline, PiMutex, Scheduling};
use chronorb_transport::tcp::TcpByInterface;
use chronorb_transport::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    SocketOptions, Transport,
};
use rustix::net::{self, AddressFamily, SocketType, sockopt};
use thiserror::Error;

use super::options::EndpointSpec;
use super::planned;
use super::riop::{RiopSettings, refused};
use crate::driver::{DriverError, Link};
use crate::engine::{ClassConfig, ClassOpenError, Urgency};
use crate::kernel::{self, KernelError};
use crate::plan::{Interface, Reservation};
use connection::{KernelAcceptor, KernelConnection};
use quota::ConnectionQuota;

/// Kernel sockets whose packets belong to the classes of a plan.
#[derive(Debug, Default)]
pub(super) struct KernelTcp {
    /// The connection quotas by interface and class. A class is listed if several endpoints share
    /// it, or if it has outgoing connections.
    classes: PiMutex<HashMap<(String, String), ConnectionQuota>>,
}

impl KernelTcp {
    /// Listens at one address of the interface, or at all of them.
    pub(super) fn listen(
        &self,
        endpoint: &Endpoint,
        spec: &EndpointSpec,
        link: &Link,
        hosts: &[std::net::IpAddr],
        setup: Setup,
        settings: &RiopSettings,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let refused = |source| ListenError::Refused {
            endpoint: endpoint.to_string(),
            source,
        };
        let is_own = |host| link.addresses.iter().any(|(own, _)| *own == host);
        if let Some(other) = hosts.iter().find(|host| !is_own(**host)) {
            return Err(refused(io::Error::other(ClassOpenError::NoAddress(*other))));
        }
        let class = Class {
            reservation: spec.planned.as_ref(),
            config: &spec.config,
            port: spec.port,
        };
        let options = class.options(&link.name, setup, settings);
        let setup = Setup {
            options: options.map_err(|error| refused(io::Error::other(error)))?,
            ..setup
        };
        let quota = match &spec.class {
            Some(name) => self.quota(&link.name, name, spec.config.connections),
            None => ConnectionQuota::new(spec.config.connections),
        };
        let names = match spec.host.as_str() {
            "" => hosts.iter().map(ToString::to_string).collect(),
            host => Vec::from([host.to_owned()]),
        };
        let tcp = TcpByInterface { index: link.index };
        let mut acceptors: Vec<Box<dyn Acceptor>> = Vec::new();
        for host in names {
            let one = Endpoint {
                address: Address::host(host, spec.port),
                ..endpoint.clone()
            };
            for inner in tcp.listen(&one, setup)? {
                acceptors.push(Box::new(KernelAcceptor::new(inner, quota.clone())));
            }
        }
        if acceptors.is_empty() {
            Err(refused(io::ErrorKind::AddrNotAvailable.into()))
        } else {
            Ok(acceptors)
        }
    }

    /// Connects by the interface, in the class of the caller's scheduling.
    pub(super) fn connect(
        &self,
        peer: SocketAddr,
        interface: &str,
        setup: Setup,
        deadline: Deadline,
        settings: &RiopSettings,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let link = link(interface).map_err(refused(peer))?;
        let urgency = setup.urgency.unwrap_or(Scheduling::OTHER);
        let reservation = planned::of_caller(&settings.plan, urgency);
        let config = match reservation {
            Some(class) => class.into(),
            None => settings.class.clone(),
        };
        let name = match reservation {
            Some(class) => format!("to-{}", class.name),
            None => format!("to-{urgency}"),
        };
        let permit = self.quota(interface, &name, config.connections).take();
        let permit = permit.ok_or_else(|| {
            let error = KernelTcpError::TooMany {
                class: name,
                connections: config.connections,
            };
            refused(peer)(io::Error::other(error))
        })?;
        let class = Class {
            reservation,
            config: &config,
            port: peer.port(),
        };
        let options = class.options(interface, setup, settings);
        let setup = Setup {
            options: options.map_err(|error| refused(peer)(io::Error::other(error)))?,
            ..setup
        };
        let tcp = TcpByInterface { index: link.index };
        let address = Address::host(peer.ip().to_string(), peer.port());
        let inner = tcp.connect(&address, setup, deadline)?;
        Ok(Box::new(KernelConnection::new(inner, permit)))
    }

    /// Returns the connection quota of a class.
    fn quota(&self, interface: &str, class: &str, connections: usize) -> ConnectionQuota {
        let key = (interface.to_owned(), class.to_owned());
        let mut classes = self.classes.lock();
        let quota = classes
            .entry(key)
            .or_insert_with(|| ConnectionQuota::new(connections));
        quota.clone()
    }
}

/// Checks that an endpoint uses only options that the kernel's TCP supports.
///
/// # Errors
/// [`EndpointError`] names the unsupported option.
pub(super) fn check(
    endpoint: &Endpoint,
    planned: Option<&Reservation>,
) -> Result<(), EndpointError> {
    let of_threads = OF_THREADS
        .iter()
        .find(|name| endpoint.option(name).is_some());
    if let Some(name) = of_threads {
        return Err(endpoint.error(format!(
            "the option {name} is not for driver=kernel, whose TCP works on packets as they come: \
            reserve something for a class of a plan that `chronorb rio setup --kernel` keeps, and \
            name it by class=NAME"
        )));
    }
    match (endpoint.option("class"), planned) {
        (Some(name), None) => Err(endpoint.error(format!(
            "no plan has the class {name:?}, and driver=kernel knows no others (-ORBRioPlan)"
        ))),
        (_, Some(class)) => may_be(class).map_err(|error| endpoint.error(error.to_string())),
        (None, None) => Ok(()),
    }
}

/// Returns the packet priority of a class of RIO in the queues of the interface. If the kernel
/// enforces the same plan there, it is the number of the kernel's class.
pub(super) fn packet_priority(
    interface: &str,
    class: Option<&Reservation>,
    urgency: Urgency,
    settings: &RiopSettings,
) -> u32 {
    // A missing plan, or another one, is no error, because a class of RIO does not depend on it.
    let of_class = class.and_then(|class| handle(interface, class, settings).ok().flatten());
    of_class.unwrap_or_else(|| match urgency {
        Urgency::Native(scheduling) => kernel::priority_of(scheduling),
        Urgency::Deadline(_) => kernel::priority_of(Scheduling::fifo(1)),
    })
}

/// The class for which a socket is opened.
struct Class<'c> {
    reservation: Option<&'c Reservation>,
    config: &'c ClassConfig,
    /// The port by which the packets can be classified; 0 for none.
    port: u16,
}

impl Class<'_> {
    /// Returns the socket options: explicit ones unchanged, others from the class.
    fn options(
        &self,
        interface: &str,
        setup: Setup,
        settings: &RiopSettings,
    ) -> Result<SocketOptions, KernelTcpError> {
        let asked = setup.options;
        let dscp = asked.dscp.or(self.config.dscp);
        let buffer = u32::try_from(self.config.buffer).unwrap_or(u32::MAX);
        if asked.send_buffer.is_none() || asked.receive_buffer.is_none() {
            can_be(buffer)?;
        }
        Ok(SocketOptions {
            dscp,
            priority: match asked.priority {
                Some(priority) => Some(priority),
                None => Some(self.priority(interface, dscp, setup, settings)?),
            },
            send_buffer: asked.send_buffer.or(Some(buffer)),
            receive_buffer: asked.receive_buffer.or(Some(buffer)),
            ..asked
        })
    }

    fn priority(
        &self,
        interface: &str,
        dscp: Option<u8>,
        setup: Setup,
        settings: &RiopSettings,
    ) -> Result<u32, KernelTcpError> {
        let Some(class) = self.reservation else {
            let urgency = setup.urgency.unwrap_or(Scheduling::OTHER);
            return Ok(kernel::priority_of(urgency));
        };
        may_be(class)?;
        let urgency = planned::scheduling(class).unwrap_or(Scheduling::OTHER);
        match handle(interface, class, settings)? {
            Some(handle) if kernel::may_have(handle)? => Ok(handle),
            // The program of the interface classifies the packets as well.
            Some(_) if is_known(&settings.plan, class, self.port, dscp) => {
                Ok(kernel::priority_of(urgency))
            }
            Some(_) => Err(KernelTcpError::Denied(class.name.clone())),
            None if class.bound().is_some() => Err(KernelTcpError::NobodyKeeps {
                class: class.name.clone(),
                interface: interface.to_owned(),
            }),
            None => Ok(kernel::priority_of(urgency)),
        }
    }
}

/// Returns the kernel's class at an interface; `None` if it enforces no plan there.
fn handle(
    interface: &str,
    class: &Reservation,
    settings: &RiopSettings,
) -> Result<Option<u32>, KernelError> {
    let Some(of_plan) = &settings.reserved_on else {
        return Ok(None);
    };
    // The plan may be that of the other host, whose interface has another name.
    let interface = Interface {
        name: interface.to_owned(),
        ..of_plan.clone()
    };
    let tree = kernel::find(&interface, &settings.plan)?;
    Ok(tree.and_then(|tree| {
        let mut branches = tree.branches.iter();
        let branch = branches.find(|branch| branch.name == class.name)?;
        Some(branch.handle.0)
    }))
}

/// Returns whether the rules of the plan alone assign packets with this port and code point to the
/// class.
fn is_known(plan: &[Reservation], class: &Reservation, port: u16, dscp: Option<u8>) -> bool {
    let mut matching = plan.iter().filter(|it| {
        let has_port = it.ports.is_empty() || it.ports.iter().any(|ports| ports.contains(&port));
        has_port && it.vlan_priority.is_none() && (it.dscp.is_none() || it.dscp == dscp)
    });
    matching
        .next()
        .is_some_and(|first| first.name == class.name)
}

/// Checks that kernel sockets can provide everything that the class reserves.
fn may_be(class: &Reservation) -> Result<(), KernelTcpError> {
    kernel::check(class).map_err(KernelError::from)?;
    match class.vlan_priority {
        Some(_) => Err(KernelTcpError::Vlan(class.name.clone())),
        None => Ok(()),
    }
}

/// Checks that the kernel gives a socket buffers of this many octets in both directions.
fn can_be(buffer: u32) -> Result<(), KernelTcpError> {
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.map_err(io::Error::from)?;
    let size = buffer as usize;
    sockopt::set_socket_send_buffer_size(&socket, size).map_err(io::Error::from)?;
    sockopt::set_socket_recv_buffer_size(&socket, size).map_err(io::Error::from)?;
    let sending = sockopt::socket_send_buffer_size(&socket).map_err(io::Error::from)?;
    let receiving = sockopt::socket_recv_buffer_size(&socket).map_err(io::Error::from)?;
    // The kernel's buffer sizes include its own overhead.
    for (given, setting) in [(sending, "wmem_max"), (receiving, "rmem_max")] {
        if given / 2 < size {
            return Err(KernelTcpError::Buffer {
                buffer,
                given: given / 2,
                setting,
            });
        }
    }
    Ok(())
}

/// Reads the properties of an interface.
pub(super) fn link(interface: &str) -> io::Result<Link> {
    let found = Netlink::open().map_err(DriverError::from);
    let found = found.and_then(|mut netlink| Link::read(&mut netlink, interface));
    found.map_err(io::Error::other)
}

/// An error of a class that the kernel's TCP cannot provide.
#[derive(Debug, Error)]
enum KernelTcpError {
    /// No queue enforces the class's share.
    #[error(
        "class {class:?} is promised a share of the interface {interface}, and no queue there \
        enforces it: `chronorb rio setup --kernel PLAN` does, as long as it runs"
    )]
    NobodyKeeps { class: String, interface: String },
    /// Only the sockets can assign packets to the class, and the process lacks the right.
    #[error(
        "naming the kernel's class of {0:?} needs CAP_NET_ADMIN: run as root, grant it (`setcap \
        cap_net_admin+ep PROGRAM`), or give the class a port or a code point (dscp) of its own"
    )]
    Denied(String),
    /// Kernel sockets do not support the option.
    #[error(
        "class {0:?} has a vlan_priority, which sockets cannot give to packets: leave it out, or \
        take another driver"
    )]
    Vlan(String),
    /// The kernel would silently provide a smaller buffer.
    #[error(
        "a buffer of {buffer} octets is more than the {given} that the kernel gives to a socket: \
         `sysctl -w net.core.{setting}={buffer}`, or make it smaller"
    )]
    Buffer {
        buffer: u32,
        given: usize,
        setting: &'static str,
    },
    /// The class has all of its connections in use.
    #[error("class {class} has {connections} connections already")]
    TooMany { class: String, connections: usize },
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// Endpoint options for classes with their own thread and stack.
const OF_THREADS: &[&str] = &[
    "mode",
    "processing",
    "period",
    "budget",
    "cap",
    "cost",
    "policy",
    "priority",
    "cpu",
    "queue",
    "backlog",
    "output",
    "vlan_priority",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, port: Option<u16>, dscp: Option<u8>) -> Reservation {
        Reservation {
            name: name.to_owned(),
            ports: port.map(|port| port..=port).into_iter().collect(),
            dscp,
            ..Reservation::default()
        }
    }

    #[test]
    fn packets_are_of_the_first_class_that_has_their_port_and_code_point() {
        let plan = [
            class("marked", None, Some(46)),
            class("quotes", Some(2809), None),
            class("rest", None, None),
        ];
        let of = |port, dscp| {
            let known = plan.iter().filter(|it| is_known(&plan, it, port, dscp));
            known.map(|it| it.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of(2809, None), ["quotes"]);
        assert_eq!(of(2809, Some(46)), ["marked"]);
        assert_eq!(of(0, None), ["rest"]);
    }

    #[test]
    fn a_buffer_is_given_whole_or_refused() {
        assert!(can_be(65536).is_ok());
        let error = can_be(1 << 30)
            .expect_err("no machine gives it")
            .to_string();
        assert!(error.contains("net.core.wmem_max=1073741824"), "{error}");
    }
}
