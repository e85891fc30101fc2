//! Packet sockets (packet(7)): the driver for every interface that Linux has.
//!
//! Each class has a socket of its own, with a ring of its own that the kernel puts packets into,
//! and a filter that follows from the rules: a flood of one class fills its own ring, and the
//! kernel counts what is lost. What goes out passes the queues of the interface, where
//! [`set_priority`](crate::path::Transmitter::set_priority) orders it.
//!
//! * The kernel sees all packets too, and answers those to ports that it does not know: a
//!   [guard](super::guard) keeps it quiet. So packets cost twice, and where no class wants a packet
//!   it is the kernel's anyway.
//! * The filters of all classes look at each packet: it costs more with each class.
//! * Frames that a virtual interface has not cut into packets yet (TSO, GSO), or has put together
//!   (GRO), come whole, up to 64 KiB; they have no checksums, and [are told
//!   so](crate::path::Frame::is_checked). They take memory beside the ring, for which a process
//!   without `CAP_NET_ADMIN` gets what `net.core.rmem_max` allows; what finds none counts as
//!   failed.
//! * `CAP_NET_RAW` is needed.

mod receiver;
mod ring;
mod transmitter;

use std::array;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use chronorb_net::Netlink;
use chronorb_rt::PiMutex;

use self::receiver::PacketReceiver;
use self::ring::Ring;
use self::transmitter::PacketTransmitter;
use super::home::Home;
use super::socket::{attach_filter, failed, set_number, socket};
use super::table::Table;
use super::{Driver, DriverError, Link, longest_frame, queue_of};
use crate::bpf::classifier::Classifier;
use crate::class::{ClassId, MAX_CLASSES, Rule};
use crate::path::{Path, Received};

/// An interface that is open by packet sockets.
#[derive(Debug)]
pub(crate) struct Packet {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    link: Link,
    home: Home,
    classes: PiMutex<Classes>,
}

/// The rules, and the sockets of the classes, whose filters follow from them.
#[derive(Debug)]
struct Classes {
    table: Table,
    sockets: [Option<Arc<OwnedFd>>; MAX_CLASSES],
}

impl Packet {
    /// Opens an interface of this network namespace.
    ///
    /// # Errors
    /// [`DriverError`]: there is no such interface, or `CAP_NET_RAW` is missing.
    pub(crate) fn open(interface: &str) -> Result<Self, DriverError> {
        let link = Link::read(&mut Netlink::open()?, interface)?;
        let home = Home::here()?;
        // What cannot be had is told now.
        packet_socket()?;
        let classes = Classes {
            table: Table::new(),
            sockets: array::from_fn(|_| None),
        };
        let state = Arc::new(State {
            link,
            home,
            classes: PiMutex::new(classes),
        });
        Ok(Self { state })
    }
}

impl Driver for Packet {
    fn link(&self) -> &Link {
        &self.state.link
    }

    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError> {
        let queue = queue_of(queue)?;
        let state = &self.state;
        let (link, longest) = (&state.link, longest_frame(&state.link));
        let sockets = || Ok::<_, DriverError>([packet_socket()?, packet_socket()?]);
        let [outgoing, incoming] = state.home.enter(sockets)??;
        // A socket of no protocol receives nothing.
        bind(&outgoing, link.index, 0)?;
        enlarge(
            &outgoing,
            libc::SO_SNDBUFFORCE,
            libc::SO_SNDBUF,
            queue,
            longest,
        );
        let transmitter = PacketTransmitter::new(outgoing, link.index, longest, queue);

        let incoming = Arc::new(incoming);
        set_number(&incoming, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1).map_err(
            failed("packet sockets without outgoing packets", CAPABILITY),
        )?;
        enlarge(
            &incoming,
            libc::SO_RCVBUFFORCE,
            libc::SO_RCVBUF,
            queue,
            longest,
        );
        let ring = Ring::map(&incoming, longest, queue)
            .map_err(failed("a ring of packets", CAPABILITY))?;
        let mut classes = state.classes.lock();
        classes.change(link, |table| table.open(class, rules))?;
        // Packets come from here on, and the filter is there already.
        let bound = classifier(&classes.table, link)
            .and_then(|classifier| attach(&classifier, class, &incoming))
            .and_then(|()| bind(&incoming, link.index, ALL_PROTOCOLS));
        if let Err(error) = bound {
            classes.close(link, class);
            return Err(error);
        }
        classes.sockets[class.index()] = Some(incoming.clone());
        drop(classes);
        let receiver = PacketReceiver {
            state: state.clone(),
            class,
            interface: link.index,
            socket: incoming,
            ring,
            long: std::iter::repeat_n(0, PacketReceiver::LONGEST).collect(),
            was_empty: false,
            counts: Received::default(),
            dropped: 0.into(),
        };
        Ok(Path {
            receiver: Box::new(receiver),
            transmitter: Box::new(transmitter),
        })
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        let mut classes = self.state.classes.lock();
        classes.change(&self.state.link, |table| table.add(rule))
    }

    #[cfg(test)]
    fn remove(&self, rule: &Rule) {
        let mut classes = self.state.classes.lock();
        classes.change_surely(&self.state.link, |table| table.remove(rule));
    }

    #[cfg(test)]
    fn set_unknown(&self, unknown: crate::class::Unknown) -> Result<(), DriverError> {
        let mut classes = self.state.classes.lock();
        classes.change(&self.state.link, |table| table.set_unknown(unknown))
    }
}

impl State {
    fn close(&self, class: ClassId) {
        self.classes.lock().close(&self.link, class);
    }
}

impl Classes {
    /// Changes the rules, and with them the filters; where that fails, all is as before.
    fn change(
        &mut self,
        link: &Link,
        change: impl FnOnce(&mut Table) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut table = self.table.clone();
        change(&mut table)?;
        let before = mem::replace(&mut self.table, table);
        let attached = self.attach_all(link);
        if attached.is_err() {
            self.table = before;
            // Who has the filter of before has it still.
            let _refused_again = self.attach_all(link);
        }
        attached
    }

    /// Changes the rules to fewer. A filter that the kernel has no memory for stays as it is; the
    /// next change brings it.
    fn change_surely(&mut self, link: &Link, change: impl FnOnce(&mut Table)) {
        change(&mut self.table);
        let _brought_later = self.attach_all(link);
    }

    fn close(&mut self, link: &Link, class: ClassId) {
        self.sockets[class.index()] = None;
        self.change_surely(link, |table| table.close(class));
    }

    fn attach_all(&self, link: &Link) -> Result<(), DriverError> {
        let classifier = classifier(&self.table, link)?;
        for (number, socket) in self.sockets.iter().enumerate() {
            if let (Some(socket), Some(class)) = (socket, ClassId::new(number)) {
                attach(&classifier, class, socket)?;
            }
        }
        Ok(())
    }
}

fn classifier(table: &Table, link: &Link) -> Result<Classifier, DriverError> {
    let classifier = Classifier::new(table.rules(), link.hardware, &link.addresses);
    classifier.map_err(|error| failed(FILTER, CAPABILITY)(io::Error::other(error)))
}

/// Has a socket take the packets of this class from now on, and no others.
fn attach(classifier: &Classifier, class: ClassId, socket: &OwnedFd) -> Result<(), DriverError> {
    let attached = match classifier.filter(class) {
        Ok(program) => attach_filter(socket, &program),
        Err(error) => Err(io::Error::other(error)),
    };
    attached.map_err(failed(FILTER, CAPABILITY))
}

/// A packet socket that receives nothing yet.
fn packet_socket() -> Result<OwnedFd, DriverError> {
    socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(failed("a packet socket", CAPABILITY))
}

/// Has a socket receive packets of these protocols by this interface only, and send by it.
#[allow(unsafe_code, reason = "the address is handed over as octets")]
fn bind(socket: &OwnedFd, interface: u32, protocols: u16) -> Result<(), DriverError> {
    // SAFETY: all of its fields may be zero.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocols.to_be();
    address.sll_ifindex = interface.cast_signed();
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is alive and of the size given.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    match bound {
        0 => Ok(()),
        _ => Err(failed("a packet socket of the interface", CAPABILITY)(
            io::Error::last_os_error(),
        )),
    }
}

/// Lets so many frames have memory at a socket, as far as this process may: `force` is the option
/// for who may have any.
fn enlarge(socket: &OwnedFd, force: i32, option: i32, frames: usize, longest: usize) {
    let octets = i32::try_from(frames * (longest + OVERHEAD)).unwrap_or(i32::MAX / 2);
    if set_number(socket, libc::SOL_SOCKET, force, octets).is_err() {
        // The kernel gives as much as it may.
        let _has_less = set_number(socket, libc::SOL_SOCKET, option, octets);
    }
}

/// What a packet takes of the kernel's memory beside its octets.
const OVERHEAD: usize = 1024;
const ALL_PROTOCOLS: u16 = libc::ETH_P_ALL as u16;
const FILTER: &str = "a filter of packets";
const CAPABILITY: &str = "cap_net_raw";
