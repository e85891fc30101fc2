//! An open class.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chronorb_rt::{Deadline, Monotonic, PiMutex};

use super::arrivals::Arrivals;
use super::class::{Busy, ClassEngine};
use super::config::{ClassConfig, ClassProcessing};
use super::control::{Control, Order};
#[cfg(test)]
use super::counts::ClassCounts;
use super::error::{ClassOpenError, ConnectFault};
use super::listener::Listener;
use super::ports::{Ports, ReservedPort};
use super::reservations::ReservationGuard;
use super::stream::Stream;
use super::table::Flow;
use crate::class::{ClassId, Rule};
use crate::driver::Driver;
use crate::frame::Ethernet;
use crate::neighbours::Neighbours;

/// An open class of packets: a path, a thread and connections.
///
/// It ends when its last handle, listener or stream is dropped. Connections that are still open
/// then are closed in order.
#[derive(Debug)]
pub(crate) struct Class {
    pub(super) engine: Arc<ClassEngine>,
    pub(super) control: Arc<Control>,
    pub(super) id: ClassId,
    pub(super) config: ClassConfig,
    pub(super) driver: Arc<dyn Driver>,
    pub(super) ports: Arc<dyn Ports>,
    pub(super) neighbours: Arc<dyn Neighbours>,
    /// Ports of this class. The port of a listener stays reserved after the listener, because its
    /// connections may live longer.
    pub(super) own: Arc<PiMutex<Vec<ReservedPort>>>,
    /// The addresses with the reserved ports of outgoing connections.
    pub(super) outgoing: PiMutex<Vec<SocketAddr>>,
    pub(super) next_outgoing: AtomicUsize,
    pub(super) _reservation: ReservationGuard,
}

impl Class {
    /// Returns the configuration of the class.
    pub(crate) fn config(&self) -> &ClassConfig {
        &self.config
    }

    /// Returns the identifier of the class among those of the interface.
    #[cfg(test)]
    pub(crate) const fn id(&self) -> ClassId {
        self.id
    }

    /// Returns whether the interface failed or its subsystem has ended. The class is permanently
    /// unusable then.
    pub(crate) fn has_ended(&self) -> bool {
        self.control.has_ended()
    }

    /// Returns the counts of the class.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> ClassCounts {
        let engine = &self.engine;
        engine.counters.counts(engine.path_counts(), engine.used())
    }

    /// Listens at an address of the interface; port 0 stands for any free one. The scope of the
    /// address is ignored, since it is that of the interface.
    ///
    /// # Errors
    /// [`ClassOpenError`]; nothing is changed then.
    pub(crate) fn listen(
        self: &Arc<Self>,
        address: SocketAddr,
    ) -> Result<Listener, ClassOpenError> {
        self.is_own(address.ip())?;
        let port = self
            .ports
            .reserve(self.on_link(address))
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::AddrInUse => ClassOpenError::InUse(address),
                _ => ClassOpenError::Failed {
                    what: "reserving a port",
                    source,
                },
            })?;
        let address = SocketAddr::new(address.ip(), port.number);
        let arrivals = Arc::new(Arrivals::new().map_err(no_descriptor)?);
        let on_arrival = self.config.processing == ClassProcessing::OnArrival;
        let set = on_arrival.then(|| self.set(&arrivals)).transpose()?;
        let index = self
            .engine
            .listen(address, arrivals.clone())
            .ok_or(ClassOpenError::InUse(address))?;
        if let Err(error) = self.driver.add(&self.rule(address, address.port())) {
            self.engine.stop_listening(index, Monotonic::now());
            return Err(error.into());
        }
        self.own.lock().push(port);
        Ok(Listener::new(self.clone(), index, address, arrivals, set))
    }

    /// Connects to a peer, and blocks until it answers. The scope of the address is ignored, since
    /// the interface determines it.
    ///
    /// # Errors
    /// [`ConnectFault`]; after the deadline at the latest.
    pub(crate) fn connect(
        self: &Arc<Self>,
        remote: SocketAddr,
        deadline: Deadline,
    ) -> Result<Stream, ConnectFault> {
        let remote = SocketAddr::new(remote.ip(), remote.port());
        let local = self.address_towards(remote.ip())?;
        let way = self.neighbours.next_hop(remote.ip(), deadline);
        let hardware = way.map_err(|source| match source.kind() {
            std::io::ErrorKind::TimedOut => ConnectFault::TimedOut,
            _ => ConnectFault::NoWay {
                to: remote.ip(),
                source,
            },
        })?;
        let ethernet = Ethernet {
            to: hardware,
            from: self.engine.hardware(),
            vlan: None,
            kind: match remote {
                SocketAddr::V4(_) => Ethernet::IPV4,
                SocketAddr::V6(_) => Ethernet::IPV6,
            },
        };
        let slot = self.begin(local, remote, ethernet)?;
        let bell = self.engine.slot(slot).open_bell().map_err(|error| {
            self.engine.let_go(slot, Monotonic::now());
            ConnectFault::NoDescriptor(error)
        })?;
        let stream = Stream::new(self.clone(), slot, bell);
        // A connection that is started later ends with the class.
        if self.has_ended() {
            return Err(ConnectFault::Ended);
        }
        stream.await_peer(deadline)?;
        Ok(stream)
    }

    /// Starts to connect from the next port whose flow is free.
    fn begin(
        &self,
        local: IpAddr,
        remote: SocketAddr,
        ethernet: Ethernet,
    ) -> Result<usize, ConnectFault> {
        let mut tried = 0;
        loop {
            let known = {
                let outgoing = self.outgoing.lock();
                let of_local = || outgoing.iter().filter(|address| address.ip() == local);
                let count = of_local().count();
                let next = self.next_outgoing.fetch_add(1, Ordering::Relaxed);
                if tried < count {
                    of_local().nth(next % count).copied()
                } else {
                    None
                }
            };
            let Some(local) = known else {
                self.reserve_outgoing(local)?;
                tried = 0;
                continue;
            };
            tried += 1;
            let flow = Flow { local, remote };
            match self.engine.connect(flow, ethernet, Monotonic::now()) {
                Ok(slot) => return Ok(slot),
                Err(Busy::Flow) => {}
                Err(Busy::Slots) => {
                    return Err(ConnectFault::TooMany(self.config.connections));
                }
            }
        }
    }

    /// Reserves further ports for outgoing connections, in one range, which needs one rule.
    fn reserve_outgoing(&self, local: IpAddr) -> Result<(), ClassOpenError> {
        let failed = |source| ClassOpenError::Failed {
            what: "reserving a port",
            source,
        };
        let first = self
            .ports
            .reserve(self.on_link(SocketAddr::new(local, 0)))
            .map_err(failed)?;
        let mut last = first.number;
        let mut reserved = Vec::from([first]);
        while reserved.len() < OUTGOING
            && let Some(next) = last.checked_add(1)
            && let Ok(port) = (self.ports).reserve(self.on_link(SocketAddr::new(local, next)))
        {
            last = next;
            reserved.push(port);
        }
        let rule = Rule {
            ports: Some(reserved[0].number..=last),
            ..self.rule(SocketAddr::new(local, last), last)
        };
        self.driver.add(&rule)?;
        let addresses = reserved
            .iter()
            .map(|port| SocketAddr::new(local, port.number));
        self.outgoing.lock().extend(addresses);
        self.own.lock().extend(reserved);
        Ok(())
    }

    fn rule(&self, address: SocketAddr, port: u16) -> Rule {
        Rule {
            to: Some(address.ip()),
            ports: Some(port..=port),
            ..Rule::all(self.id)
        }
    }

    /// Returns the address with the scope that the kernel needs for a link-local address.
    fn on_link(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
                SocketAddrV6::new(*v6.ip(), v6.port(), 0, self.driver.link().index).into()
            }
            other => other,
        }
    }

    fn is_own(&self, address: IpAddr) -> Result<(), ClassOpenError> {
        let mut own = self.driver.link().addresses.iter();
        if own.any(|(own, _)| *own == address) {
            Ok(())
        } else {
            Err(ClassOpenError::NoAddress(address))
        }
    }

    /// Returns the interface's address in the same network, or else one of the same family.
    fn address_towards(&self, remote: IpAddr) -> Result<IpAddr, ConnectFault> {
        let own = &self.driver.link().addresses;
        let near = own
            .iter()
            .find(|(own, prefix)| is_in_network(remote, *own, *prefix));
        let chosen = near.or_else(|| own.iter().find(|(own, _)| is_far_reaching(*own, remote)));
        chosen
            .map(|(address, _)| *address)
            .ok_or(ConnectFault::NoAddress(remote))
    }

    /// Creates a set that is readable while protocol work is pending or a connection waits.
    fn set(&self, arrivals: &Arrivals) -> Result<std::os::fd::OwnedFd, ClassOpenError> {
        use rustix::event::epoll;
        let made = || {
            let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let data = epoll::EventData::new_u64(0);
            epoll::add(&set, self.engine.packets(), data, epoll::EventFlags::IN)?;
            epoll::add(&set, self.engine.alarm(), data, epoll::EventFlags::IN)?;
            epoll::add(&set, arrivals, data, epoll::EventFlags::IN)?;
            Ok::<_, rustix::io::Errno>(set)
        };
        made().map_err(|error| no_descriptor(error.into()))
    }
}

impl Drop for Class {
    fn drop(&mut self) {
        self.control.order(Order::Finish);
    }
}

/// Returns whether an address is in the network of another one.
fn is_in_network(address: IpAddr, of: IpAddr, prefix: u8) -> bool {
    match (address, of) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let host_bits = 32 - u32::from(prefix.min(32));
            (u64::from(a.to_bits()) ^ u64::from(b.to_bits())) >> host_bits == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let different = a.to_bits() ^ b.to_bits();
            different.leading_zeros() >= u32::from(prefix.min(128))
        }
        _ => false,
    }
}

/// Returns whether a host behind a router can answer to `own`, as far as the kinds of addresses
/// show.
fn is_far_reaching(own: IpAddr, remote: IpAddr) -> bool {
    match (own, remote) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(own), IpAddr::V6(_)) => !own.is_unicast_link_local(),
        _ => false,
    }
}

pub(super) fn no_descriptor(source: std::io::Error) -> ClassOpenError {
    ClassOpenError::Failed {
        what: "making an event descriptor",
        source,
    }
}

/// The number of ports that are reserved at a time.
const OUTGOING: usize = 16;
