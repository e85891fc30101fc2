//! The transport: open interfaces, and classes of outgoing connections.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb_net::Netlink;
use chronorb_rt::{Deadline, PiMutex, Scheduling};
use chronorb_transport::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    Transport, host_addresses,
};

use super::acceptor::RioAcceptor;
use super::connection::RioConnection;
use super::kernel::{self, KernelTcp};
use super::options::EndpointSpec;
use super::planned;
use super::zone::{self, ZoneError};
use crate::driver::{self, DriverChoice, DriverError, Link};
use crate::engine::{
    Class, ClassConfig, ClassOpenError, ClassProcessing, ConnectFault, Subsystem, Urgency,
};
use crate::plan::{Interface, Reservation};

/// TCP at interfaces whose packets have classes.
///
/// An interface is opened for its first endpoint or connection, and stays open as long as the
/// transport exists.
#[derive(Debug, Default)]
pub struct Riop {
    settings: RiopSettings,
    subsystems: PiMutex<HashMap<String, Arc<Subsystem>>>,
    /// Shared classes, by interface and name.
    named: PiMutex<HashMap<(String, String), Weak<Class>>>,
    /// Classes of outgoing connections, by interface and scheduling.
    outgoing: PiMutex<HashMap<OutgoingKey, Arc<Class>>>,
    /// The connections of the driver `kernel`.
    kernel: KernelTcp,
}

/// The settings of [`Riop`].
#[derive(Clone, Debug, Default)]
pub struct RiopSettings {
    /// The interface of outgoing connections. `None` selects the interface by the kernel's route to
    /// the peer.
    pub interface: Option<String>,
    /// The default options for opening interfaces.
    pub driver: driver::DriverOptions,
    /// The reservations of the interface's classes.
    pub plan: Vec<Reservation>,
    /// The interface of the plan, by which a plan that the kernel enforces is found.
    pub reserved_on: Option<Interface>,
    /// The configuration of outgoing connections' classes. Their urgency is replaced by the
    /// client's, if that is known.
    pub class: ClassConfig,
}

/// The interface, and the policy and priority of the client, if they are known.
type OutgoingKey = (String, Option<(u8, u8)>);

impl Riop {
    /// Creates the transport without opening an interface.
    pub fn new(settings: RiopSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Creates the transport, and opens the interface of outgoing connections, if one is set.
    ///
    /// # Errors
    /// [`RiopError`] if the interface cannot be opened.
    pub fn open(settings: RiopSettings) -> Result<Self, RiopError> {
        let this = Self::new(settings);
        if let Some(interface) = &this.settings.interface {
            if this.settings.driver.driver == DriverChoice::Kernel {
                let mut netlink = Netlink::open().map_err(DriverError::from)?;
                Link::read(&mut netlink, interface)?;
                return Ok(this);
            }
            this.subsystem(interface, this.settings.driver)?;
        }
        Ok(this)
    }

    /// Adds an open interface.
    #[cfg(test)]
    pub(crate) fn add(&self, subsystem: Arc<Subsystem>) {
        let name = subsystem.link().name.clone();
        self.subsystems.lock().insert(name, subsystem);
    }

    /// Returns whether the kernel's route to a host uses the interface of outgoing connections. If
    /// none is set, every interface does. A link-local host is looked up on the link of the
    /// interface.
    ///
    /// # Errors
    /// [`io::Error`] if the kernel cannot be queried.
    pub fn reaches(&self, host: IpAddr) -> io::Result<bool> {
        let Some(interface) = &self.settings.interface else {
            return Ok(true);
        };
        if zone::needs_zone(host) {
            return Ok(true);
        }
        let mut netlink = Netlink::open().map_err(io::Error::other)?;
        let link = match netlink.link(interface) {
            // The interface is in another network namespace, or does not exist. The routes of this
            // namespace do not apply.
            Err(error) if error.is_absent() => return Ok(true),
            link => link.map_err(io::Error::other)?,
        };
        let route = netlink.route_to(host, None);
        Ok(route.is_ok_and(|route| route.index == link.index))
    }

    /// Returns the subsystem of an interface, which is opened on first use.
    fn subsystem(
        &self,
        interface: &str,
        options: driver::DriverOptions,
    ) -> Result<Arc<Subsystem>, RiopError> {
        let mut subsystems = self.subsystems.lock();
        if let Some(open) = subsystems.get(interface) {
            return Ok(open.clone());
        }
        let driver = driver::open(interface, options)?;
        let subsystem = Arc::new(Subsystem::of_host(driver.into())?);
        subsystems.insert(interface.to_owned(), subsystem.clone());
        Ok(subsystem)
    }

    /// Returns the interface that has an address.
    fn interface_of(&self, address: IpAddr) -> io::Result<String> {
        if zone::needs_zone(address) {
            let interfaces = zone::interfaces_with(address)?;
            if interfaces.len() > 1 {
                return Err(io::Error::other(ZoneError::Several {
                    address,
                    interfaces,
                }));
            }
        }
        let open = self.subsystems.lock();
        let has = |subsystem: &Subsystem| {
            let mut addresses = subsystem.link().addresses.iter();
            addresses.any(|(own, _)| *own == address)
        };
        if let Some(subsystem) = open.values().find(|subsystem| has(subsystem)) {
            return Ok(subsystem.link().name.clone());
        }
        drop(open);
        let link = Netlink::open().and_then(|mut it| it.link_with_address(address));
        link.map(|link| link.name).map_err(io::Error::other)
    }

    /// Returns the interface that reaches a peer. A link-local peer is reached by the interface of
    /// its zone, or, without a zone, by that of outgoing connections.
    fn interface_to(&self, peer: IpAddr, zone: Option<&str>) -> io::Result<String> {
        if let Some(zone) = zone {
            return zone::interface_beside(zone, self.settings.interface.as_deref());
        }
        if let Some(interface) = &self.settings.interface {
            return if self.reaches(peer)? {
                Ok(interface.clone())
            } else {
                Err(io::ErrorKind::NetworkUnreachable.into())
            };
        }
        if zone::needs_zone(peer) {
            return Err(io::Error::other(ZoneError::Missing(peer)));
        }
        let mut netlink = Netlink::open().map_err(io::Error::other)?;
        let route = netlink.route_to(peer, None).map_err(io::Error::other)?;
        let links = netlink.links().map_err(io::Error::other)?;
        let link = links.into_iter().find(|link| link.index == route.index);
        link.map(|link| link.name)
            .ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
    }

    /// Returns the class of an endpoint: a new one, or the one that it names.
    fn class(
        &self,
        subsystem: &Subsystem,
        spec: &EndpointSpec,
    ) -> Result<Arc<Class>, ClassOpenError> {
        let open = || {
            let (config, planned) = (spec.config.clone(), spec.planned.as_ref());
            let config = self.in_queues(subsystem, config, planned);
            match planned.filter(|_| spec.is_as_planned) {
                Some(reservation) => subsystem.open_planned(config, reservation),
                None => subsystem.open(config),
            }
        };
        let Some(name) = &spec.class else {
            return open();
        };
        let mut named = self.named.lock();
        let key = (subsystem.link().name.clone(), name.clone());
        let known = named.get(&key).and_then(Weak::upgrade);
        if let Some(open) = known.filter(|class| !class.has_ended()) {
            return Ok(open);
        }
        let class = open()?;
        named.insert(key, Arc::downgrade(&class));
        Ok(class)
    }

    /// Returns the class of outgoing connections for the client's scheduling.
    fn outgoing(&self, subsystem: &Subsystem, setup: &Setup) -> Result<Arc<Class>, ClassOpenError> {
        let key = |urgency: Scheduling| (urgency.policy as u8, urgency.priority);
        let key = (subsystem.link().name.clone(), setup.urgency.map(key));
        let mut outgoing = self.outgoing.lock();
        if let Some(open) = outgoing.get(&key).filter(|class| !class.has_ended()) {
            return Ok(open.clone());
        }
        let urgency = setup.urgency.unwrap_or(Scheduling::OTHER);
        let planned = planned::of_caller(&self.settings.plan, urgency);
        let config = match planned {
            Some(class) => class.into(),
            None => ClassConfig {
                urgency: Urgency::Native(urgency),
                ..self.settings.class.clone()
            },
        };
        let mut config = ClassConfig {
            name: format!("to-{}", config.name),
            ..config
        };
        if config.processing == ClassProcessing::OnArrival {
            // No thread waits for an acceptor of this class.
            config.processing = ClassProcessing::OnDemand { cap: None };
            config.expected = None;
        }
        config.dscp = setup.options.dscp.or(config.dscp);
        let config = self.in_queues(subsystem, config, planned);
        let class = match planned {
            Some(reservation) => subsystem.open_planned(config, reservation),
            None => subsystem.open(config),
        }?;
        outgoing.insert(key, class.clone());
        Ok(class)
    }

    /// Sets the priority of the class's packets in the queues of the interface.
    fn in_queues(
        &self,
        subsystem: &Subsystem,
        config: ClassConfig,
        planned: Option<&Reservation>,
    ) -> ClassConfig {
        let interface = &subsystem.link().name;
        ClassConfig {
            packet_priority: kernel::packet_priority(
                interface,
                planned,
                config.urgency,
                &self.settings,
            ),
            ..config
        }
    }

    fn connect_to(
        &self,
        (peer, zone): (SocketAddr, Option<&str>),
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let interface = self.interface_to(peer.ip(), zone).map_err(refused(peer))?;
        if self.settings.driver.driver == DriverChoice::Kernel {
            let kernel = &self.kernel;
            return kernel.connect(peer, &interface, setup, deadline, &self.settings);
        }
        let subsystem = self.subsystem(&interface, self.settings.driver);
        let subsystem = subsystem.map_err(|error| refused(peer)(io::Error::other(error)))?;
        let class = self.outgoing(&subsystem, &setup);
        let class = class.map_err(|error| refused(peer)(io::Error::other(error)))?;
        let stream = class.connect(peer, deadline).map_err(|fault| match fault {
            ConnectFault::TimedOut => ConnectError::TimedOut {
                address: peer.to_string(),
            },
            ConnectFault::Refused => refused(peer)(io::ErrorKind::ConnectionRefused.into()),
            other => refused(peer)(io::Error::other(other)),
        })?;
        Ok(Box::new(RioConnection::new(stream, setup.options)))
    }
}

impl Transport for Riop {
    fn scheme(&self) -> &str {
        "riop"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        EndpointSpec::of(endpoint, &Setup::default(), &self.settings).map(drop)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let spec = EndpointSpec::of(endpoint, &setup, &self.settings)?;
        let refused = |source| ListenError::Refused {
            endpoint: endpoint.to_string(),
            source,
        };
        let mut hosts = Vec::new();
        if !spec.host.is_empty() {
            let resolved = host_addresses(&spec.host, Deadline::after(LOOK_UP));
            let resolved = resolved.map_err(|source| ListenError::Unresolved {
                endpoint: endpoint.to_string(),
                source,
            })?;
            hosts.extend(resolved.into_iter().map(|address| address.ip()));
        }
        let interface = match (&spec.interface, &spec.zone, hosts.first()) {
            (given, Some(zone), _) => {
                zone::interface_beside(zone, given.as_deref()).map_err(refused)?
            }
            (Some(interface), None, _) => interface.clone(),
            (None, None, Some(host)) => self.interface_of(*host).map_err(refused)?,
            (None, None, None) => {
                return Err(endpoint
                    .error("it needs an address, or an interface")
                    .into());
            }
        };
        if spec.driver.driver == DriverChoice::Kernel {
            let link = kernel::link(&interface).map_err(refused)?;
            if spec.host.is_empty() {
                hosts.extend(reachable(&link));
            } else {
                hosts.truncate(1);
            }
            let (kernel, settings) = (&self.kernel, &self.settings);
            return kernel.listen(endpoint, &spec, &link, &hosts, setup, settings);
        }
        let subsystem = self.subsystem(&interface, spec.driver);
        let subsystem = subsystem.map_err(|error| refused(io::Error::other(error)))?;
        if spec.host.is_empty() {
            hosts.extend(reachable(subsystem.link()));
        }
        let class = self.class(&subsystem, &spec);
        let class = class.map_err(|error| refused(io::Error::other(error)))?;
        let mut acceptors: Vec<Box<dyn Acceptor>> = Vec::new();
        for host in hosts {
            let listener = class.listen(SocketAddr::new(host, spec.port));
            let listener = listener.map_err(|error| refused(to_io(error)))?;
            let name = match &spec.hostname {
                Some(name) => name.clone(),
                None if spec.host.is_empty() => host.to_string(),
                None => spec.host.clone(),
            };
            let published = Address::host(name, listener.address().port());
            acceptors.push(Box::new(RioAcceptor::new(
                listener,
                setup.options,
                published,
            )));
            if !spec.host.is_empty() {
                break;
            }
        }
        if acceptors.is_empty() {
            Err(refused(io::ErrorKind::AddrNotAvailable.into()))
        } else {
            Ok(acceptors)
        }
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let Some((host, port)) = address.as_host() else {
            return Err(refused(address)(io::ErrorKind::AddrNotAvailable.into()));
        };
        let resolved = zone::resolve(host, port, deadline);
        let (peers, zone) = resolved.map_err(|source| ConnectError::Unresolved {
            host: host.to_owned(),
            source,
        })?;
        let mut last = refused(address)(io::ErrorKind::AddrNotAvailable.into());
        for peer in peers {
            match self.connect_to((peer, zone), setup, deadline) {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// The longest look-up of the name of an endpoint, as with the kernel's TCP.
const LOOK_UP: Duration = Duration::from_secs(10);

/// An error while an interface is opened.
#[derive(Debug, thiserror::Error)]
pub enum RiopError {
    /// No driver is available.
    #[error(transparent)]
    Open(#[from] driver::DriverOpenError),
    /// The kernel cannot be queried for the interface.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Returns the addresses of an interface that peers can use in references. Link-local ones are
/// excluded, because peers would need to know the interface.
fn reachable(link: &Link) -> impl Iterator<Item = IpAddr> {
    let addresses = link.addresses.iter().map(|(own, _)| *own);
    addresses.filter(|own| !is_link_local(*own))
}

pub(super) fn refused<A: Display>(address: A) -> impl Fn(io::Error) -> ConnectError {
    move |source| ConnectError::Refused {
        address: address.to_string(),
        source,
    }
}

fn to_io(error: ClassOpenError) -> io::Error {
    match error {
        ClassOpenError::InUse(_) => io::ErrorKind::AddrInUse.into(),
        other => io::Error::other(other),
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}
