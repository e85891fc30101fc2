//! Packet sockets (packet(7)): the driver for every interface that Linux has.
//!
//! Each class has its own socket, with its own ring that the kernel fills, and a filter made from
//! the rules. A flood of one class fills only its own ring, and the kernel counts the lost packets.
//! Outgoing packets pass the queues of the interface, where
//! [`set_priority`](crate::path::Transmitter::set_priority) orders them.
//!
//! * The kernel processes all packets too and would answer those to ports that it does not know; a
//!   [guard](super::guard) keeps it silent. Thus each packet costs twice, and packets that no class
//!   wants still reach the kernel.
//! * The filters of all classes run for each packet, so the cost grows with the number of classes.
//! * Frames that a virtual interface has not yet segmented (TSO, GSO), or has merged (GRO), arrive
//!   whole, up to 64 KiB. They have no checksums and are [marked as
//!   checked](crate::path::Frame::is_checked). They use memory in addition to the ring. A process
//!   without `CAP_NET_ADMIN` gets at most `net.core.rmem_max` of it; frames that find no memory
//!   count as failed.
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
use self::ring::PacketRing;
use self::transmitter::PacketTransmitter;
use super::home::Home;
use super::socket::{attach_filter, failed, set_number, socket};
use super::table::Table;
use super::{Driver, DriverError, Link, longest_frame, queue_of};
use crate::bpf::classifier::Classifier;
use crate::class::{ClassId, MAX_CLASSES, Rule};
use crate::path::{Path, ReceiveCounts};

/// An interface opened with packet sockets.
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

/// The rules, and the sockets of the classes with the filters made from them.
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
        // A missing right is reported now, and not when the first class opens.
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
        // A socket bound to no protocol receives nothing.
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
        let ring = PacketRing::map(&incoming, longest, queue)
            .map_err(failed("a ring of packets", CAPABILITY))?;
        let mut classes = state.classes.lock();
        classes.change(link, |table| table.open(class, rules))?;
        // Packets arrive from here on; the filter is already attached.
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
            long: [0].repeat(PacketReceiver::LONGEST).into(),
            was_empty: false,
            counts: ReceiveCounts::default(),
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
    /// Changes the rules and the filters. On an error, nothing is changed.
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
            // The sockets that refused the new filter still have the former one.
            let _refused_again = self.attach_all(link);
        }
        attached
    }

    /// Removes rules. If the kernel has no memory for a filter, the former one stays until the next
    /// change.
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

/// Makes a socket receive exactly the packets of this class.
fn attach(classifier: &Classifier, class: ClassId, socket: &OwnedFd) -> Result<(), DriverError> {
    let attached = match classifier.filter(class) {
        Ok(program) => attach_filter(socket, &program),
        Err(error) => Err(io::Error::other(error)),
    };
    attached.map_err(failed(FILTER, CAPABILITY))
}

/// Creates a packet socket that receives nothing yet.
fn packet_socket() -> Result<OwnedFd, DriverError> {
    socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(failed("a packet socket", CAPABILITY))
}

/// Binds a socket to this interface, to receive packets of these protocols and to send.
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

/// Enlarges the buffer of a socket to this many frames, as far as the process may. `force` is the
/// option for privileged processes.
fn enlarge(socket: &OwnedFd, force: i32, option: i32, frames: usize, longest: usize) {
    let octets = i32::try_from(frames * (longest + OVERHEAD)).unwrap_or(i32::MAX / 2);
    if set_number(socket, libc::SOL_SOCKET, force, octets).is_err() {
        // Without the privilege, the kernel limits the size.
        let _has_less = set_number(socket, libc::SOL_SOCKET, option, octets);
    }
}

/// The kernel's memory for a packet in addition to its octets.
const OVERHEAD: usize = 1024;
const ALL_PROTOCOLS: u16 = libc::ETH_P_ALL as u16;
const FILTER: &str = "a filter of packets";
const CAPABILITY: &str = "cap_net_raw";
