//! A class that is open.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chronorb_rt::{Deadline, Monotonic, PiMutex, Wake};

use super::class::{Busy, Protocol};
use super::config::{ClassConfig, Processing};
use super::control::{Control, Order};
#[cfg(test)]
use super::counts::ClassCounts;
use super::error::{ConnectFault, OpenError};
use super::listener::Listener;
use super::ports::{Ports, ReservedPort};
use super::promises::Promise;
use super::stream::Stream;
use super::table::Flow;
use crate::class::{ClassId, Rule};
use crate::driver::Driver;
use crate::frame::Ethernet;
use crate::neighbours::Neighbours;

/// A class of packets that is open: a path, a thread and connections.
///
/// It ends when the last that holds it, a listener or a stream of it is dropped. Connections that
/// are not over then still end in order.
#[derive(Debug)]
pub(crate) struct Class {
    pub(super) protocol: Arc<Protocol>,
    pub(super) control: Arc<Control>,
    pub(super) id: ClassId,
    pub(super) config: ClassConfig,
    pub(super) driver: Arc<dyn Driver>,
    pub(super) ports: Arc<dyn Ports>,
    pub(super) neighbours: Arc<dyn Neighbours>,
    /// Ports of this class; those of a listener stay, since its connections may outlive it.
    pub(super) own: Arc<PiMutex<Vec<ReservedPort>>>,
    /// Those that connections go out by, with their address.
    pub(super) outgoing: PiMutex<Vec<SocketAddr>>,
    pub(super) next_outgoing: AtomicUsize,
    pub(super) _promise: Promise,
}

impl Class {
    /// What it was opened with.
    pub(crate) fn config(&self) -> &ClassConfig {
        &self.config
    }

    /// Its number.
    #[cfg(test)]
    pub(crate) const fn id(&self) -> ClassId {
        self.id
    }

    /// Whether the interface fails, or its subsystem is no more: then nothing is to be had of it,
    /// and never will be.
    pub(crate) fn has_ended(&self) -> bool {
        self.control.has_ended()
    }

    /// What has happened to it.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> ClassCounts {
        let protocol = &self.protocol;
        protocol
            .counters
            .counts(protocol.path_counts(), protocol.used())
    }

    /// Listens at an address of the interface, at any free port where that is 0. A scope in it says
    /// nothing: it is that of the interface.
    ///
    /// # Errors
    /// [`OpenError`]; all is as before then.
    pub(crate) fn listen(self: &Arc<Self>, address: SocketAddr) -> Result<Listener, OpenError> {
        self.is_own(address.ip())?;
        let port = self
            .ports
            .reserve(self.on_link(address))
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::AddrInUse => OpenError::InUse(address),
                _ => OpenError::Failed {
                    what: "reserving a port",
                    source,
                },
            })?;
        let address = SocketAddr::new(address.ip(), port.number);
        let arrivals = Arc::new(Wake::new().map_err(no_descriptor)?);
        let on_arrival = self.config.processing == Processing::OnArrival;
        let set = on_arrival.then(|| self.set(&arrivals)).transpose()?;
        let index = self
            .protocol
            .listen(address, arrivals.clone())
            .ok_or(OpenError::InUse(address))?;
        if let Err(error) = self.driver.add(&self.rule(address, address.port())) {
            self.protocol.stop_listening(index, Monotonic::now());
            return Err(error.into());
        }
        self.own.lock().push(port);
        Ok(Listener::new(self.clone(), index, address, arrivals, set))
    }

    /// Connects to a peer, and waits for it. A scope in its address says nothing: it is reached by
    /// the interface.
    ///
    /// # Errors
    /// [`ConnectFault`]; at the latest when the deadline has passed.
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
            from: self.protocol.hardware(),
            vlan: None,
            kind: match remote {
                SocketAddr::V4(_) => Ethernet::IPV4,
                SocketAddr::V6(_) => Ethernet::IPV6,
            },
        };
        let slot = self.begin(local, remote, ethernet)?;
        let bell = self.protocol.slot(slot).open_bell().map_err(|error| {
            self.protocol.let_go(slot, Monotonic::now());
            ConnectFault::NoDescriptor(error)
        })?;
        let stream = Stream::new(self.clone(), slot, bell);
        // What is begun later than this is ended with the class.
        if self.has_ended() {
            return Err(ConnectFault::Ended);
        }
        stream.await_peer(deadline)?;
        Ok(stream)
    }

    /// Begins to connect by the next port whose flow is free.
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
            match self.protocol.connect(flow, ethernet, Monotonic::now()) {
                Ok(slot) => return Ok(slot),
                Err(Busy::Flow) => {}
                Err(Busy::Slots) => {
                    return Err(ConnectFault::TooMany(self.config.connections));
                }
            }
        }
    }

    /// Reserves some more ports for connections that go out, in one range, which is one rule.
    fn reserve_outgoing(&self, local: IpAddr) -> Result<(), OpenError> {
        let failed = |source| OpenError::Failed {
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

    /// The address as the kernel has to be told it: one of a link alone, with the link.
    fn on_link(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
                SocketAddrV6::new(*v6.ip(), v6.port(), 0, self.driver.link().index).into()
            }
            other => other,
        }
    }

    fn is_own(&self, address: IpAddr) -> Result<(), OpenError> {
        let mut own = self.driver.link().addresses.iter();
        if own.any(|(own, _)| *own == address) {
            Ok(())
        } else {
            Err(OpenError::NoAddress(address))
        }
    }

    /// The address of the interface that is in the same network, or else in the same family.
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

    /// A set that is readable where protocol work is to be done, or a connection is there.
    fn set(&self, arrivals: &Wake) -> Result<std::os::fd::OwnedFd, OpenError> {
        use rustix::event::epoll;
        let made = || {
            let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let data = epoll::EventData::new_u64(0);
            epoll::add(&set, self.protocol.packets(), data, epoll::EventFlags::IN)?;
            epoll::add(&set, self.protocol.alarm(), data, epoll::EventFlags::IN)?;
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

/// Whether an address is in the network of another one.
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

/// Whether who is behind a router can answer to `own`, as far as its family says.
fn is_far_reaching(own: IpAddr, remote: IpAddr) -> bool {
    match (own, remote) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(own), IpAddr::V6(_)) => !own.is_unicast_link_local(),
        _ => false,
    }
}

pub(super) fn no_descriptor(source: std::io::Error) -> OpenError {
    OpenError::Failed {
        what: "making an event descriptor",
        source,
    }
}

/// Ports that are reserved at a time.
const OUTGOING: usize = 16;
