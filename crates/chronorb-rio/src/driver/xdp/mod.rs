//! AF_XDP: the driver that passes the kernel's network stack by.
//!
//! The interface runs a [program](crate::bpf::classifier) for each packet, which finds its class
//! and puts it into the ring of that class's socket. A flood of one class fills its own ring, and
//! the kernel counts what is lost there; nothing is done for it beyond that. What is of no class
//! goes to the kernel, whose stack does not see the packets of classes at all.
//!
//! * The frames of all classes are one piece of memory, made when the driver is opened, of which
//!   each class has its share. Nothing is allocated after that but rings, when a class opens.
//! * Where the interface has several receive queues, a class has a socket and a ring for each, and
//!   takes from them in turn, a frame at a time: a flood by one of them holds up no other. The
//!   interface keeps the packets of a flow in one queue, by its hash of addresses and ports, and so
//!   in order; those of several flows may overtake each other. Each ring has room for all packets
//!   of the class, since its flows may all come by one. So the memory for what comes in is there
//!   once for each queue: fewer of them (`ethtool -L INTERFACE combined 2`) take less.
//! * All goes out by the first queue: nothing waits there, so that a second one would make nothing
//!   faster, and it keeps the order.
//! * Queues that the interface gets while it is open have no sockets. The kernel has what comes by
//!   them, and the packets of classes among it are [counted](Xdp::strayed): who changes the queues
//!   opens the interface again. The kernel refuses to take queues away meanwhile.
//! * Frames of more than 3,822 octets come and go in pieces (Linux 6.6); else 5.18 will do.
//! * What goes out passes none of the interface's queues.
//! * Rules change with a new program, between one packet and the next. The kernel takes its time
//!   for that, some milliseconds, in which packets go on.
//! * Nobody tells whether checksums were found right. A virtual interface whose peer leaves them to
//!   it (as it does unless told not to, `ethtool -K PEER tx off`) hands on packets without any; and
//!   VLAN tags are not seen that the peer leaves to it (`ethtool -K PEER txvlan off`).
//! * In the kernel's stack ([`Mode::Generic`]) packets come as they are there: those that a virtual
//!   interface's peer has not cut (TSO, GSO) are too long for a frame and are lost, and an
//!   interface that puts packets together (GRO) is refused.
//! * `CAP_NET_ADMIN`, `CAP_BPF`, `CAP_PERFMON` and `CAP_NET_RAW` are needed.

mod memory;
mod pool;
mod queue;
mod receiver;
mod shared;
mod socket;
mod sync;
mod transmitter;

use std::io;
use std::sync::Arc;

use chronorb_net::{Netlink, Offloads, receive_queues};
use chronorb_rt::PiMutex;
use rustix::thread::{CapabilitySet, capabilities};

use self::pool::{Layout, Pool};
use self::queue::CAPABILITIES;
use self::receiver::XdpReceiver;
use self::socket::ClassSockets;
use self::transmitter::XdpTransmitter;
use super::bpf::{Attached, Attachment, Map, Program};
use super::home::Home;
use super::socket::failed;
use super::table::Table;
use super::{Driver, DriverError, Link, MAX_QUEUE, longest_frame, queue_of};
use crate::bpf::classifier::{Classifier, Maps};
use crate::class::{ClassId, MAX_CLASSES, Rule};
use crate::path::Path;

/// An interface that is open by AF_XDP.
#[derive(Debug)]
pub(crate) struct Xdp {
    state: Arc<State>,
}

/// How an interface shall be opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Where the program runs.
    pub mode: Mode,
    /// So many packets have room each way, over all classes: the sum of their queues, of which each
    /// counts as 64 at least. What comes in has as much room for each receive queue of the
    /// interface.
    pub packets: usize,
}

/// Where the program of an interface runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// In the interface's driver if that can do it, otherwise in the kernel's stack.
    #[default]
    Auto,
    /// In the interface's driver.
    Native,
    /// In the kernel's stack.
    Generic,
}

impl Default for Options {
    /// Room for eight classes with queues of 512 packets. Where these have 1,500 octets it takes 8
    /// MiB of memory for what goes out, and 8 MiB for each receive queue.
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            packets: 8 * 512,
        }
    }
}

#[derive(Debug)]
struct State {
    link: Link,
    home: Home,
    #[cfg(test)]
    attachment: Attachment,
    classes: PiMutex<Classes>,
    counters: Map,
    pool: Arc<Pool>,
}

/// The rules, and the program that follows from them.
#[derive(Debug)]
struct Classes {
    table: Table,
    /// Ends first of all, so that no packet comes any more.
    attached: Attached,
    sockets: Map,
}

impl Xdp {
    /// Opens an interface of this network namespace, by all receive queues that it has now. Where
    /// somebody has closed it just now, this may wait for the kernel to be done with it.
    ///
    /// # Errors
    /// [`DriverError`]: there is no such interface, it cannot do this, another program is on it, or a right is missing.
    pub(crate) fn open(interface: &str, options: Options) -> Result<Self, DriverError> {
        let link = Link::read(&mut Netlink::open()?, interface)?;
        // Who does not tell has one.
        let queues = receive_queues(interface).unwrap_or_default().max(1);
        if options.packets > MAX_CLASSES * MAX_QUEUE {
            return Err(DriverError::LongQueue(options.packets));
        }
        let layout = Layout::new(longest_frame(&link), options.packets, queues);
        let layout = layout.ok_or_else(|| DriverError::Unsupported {
            what: "AF_XDP with packets of this length",
            source: io::Error::other(format!("an MTU of {} is too large", link.mtu)),
        })?;
        let map = |map: io::Result<Map>| map.map_err(failed("a BPF map", CAPABILITIES));
        let sockets = map(Map::of_sockets(Maps::places(queues)))?;
        let counters = map(Map::of_counters(Maps::places(queues)))?;
        let table = Table::new();
        let maps = Maps {
            sockets: sockets.descriptor(),
            counters: counters.descriptor(),
            queues,
        };
        let program = program(&table, &link, maps)?;
        let (attached, attachment) = attach(&program, link.index, options.mode)?;
        if attachment == Attachment::Generic {
            check_merging(interface)?;
        }
        let pool = Pool::new(layout, link.index, attachment == Attachment::Native)?;
        let classes = Classes {
            table,
            attached,
            sockets,
        };
        let state = State {
            link,
            home: Home::here()?,
            #[cfg(test)]
            attachment,
            classes: PiMutex::new(classes),
            counters,
            pool: Arc::new(pool),
        };
        Ok(Self {
            state: Arc::new(state),
        })
    }
}

/// What tests ask for.
#[cfg(test)]
impl Xdp {
    /// Where the program runs.
    pub(crate) fn attachment(&self) -> Attachment {
        self.state.attachment
    }

    /// How many receive queues the interface had when it was opened.
    pub(crate) fn receive_queues(&self) -> u32 {
        self.state.queues()
    }

    /// How many packets were found to be of a class, whatever became of them then, since the
    /// interface was opened.
    pub(crate) fn matched(&self, class: ClassId) -> u64 {
        let queues = 0..self.receive_queues();
        let by_queues: u64 = queues.map(|queue| self.matched_by(class, queue)).sum();
        by_queues + self.strayed(class)
    }

    /// How many of these came by a receive queue; 0 for one that there was not when the interface
    /// was opened.
    pub(crate) fn matched_by(&self, class: ClassId, queue: u32) -> u64 {
        if queue < self.receive_queues() {
            self.state.count(class, queue)
        } else {
            0
        }
    }

    /// How many of these came by receive queues that there were not when the interface was opened:
    /// the kernel has them.
    pub(crate) fn strayed(&self, class: ClassId) -> u64 {
        self.state.strayed(class)
    }
}

impl Driver for Xdp {
    fn link(&self) -> &Link {
        &self.state.link
    }

    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError> {
        let state = &self.state;
        let interface = state.link.index;
        let mut classes = state.classes.lock();
        // What is open is told before there might be no room for it again.
        classes.table.clone().open(class, rules)?;
        let queue = queue_of(queue)?;
        let sockets = || ClassSockets::open(state.pool.clone(), interface, queue);
        let sockets = state.home.enter(sockets)??;
        let opened = (classes.give(class, &sockets))
            .and_then(|()| classes.change(state, |table| table.open(class, rules)));
        if let Err(error) = opened {
            classes.take_back(class, state);
            return Err(error);
        }
        drop(classes);
        let sockets = Arc::new(sockets);
        let receiver = XdpReceiver::new(class, sockets.clone(), state.clone());
        let transmitter = XdpTransmitter::new(sockets, longest_frame(&state.link));
        Ok(Path {
            receiver: Box::new(receiver),
            transmitter: Box::new(transmitter),
        })
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        let mut classes = self.state.classes.lock();
        classes.change(&self.state, |table| table.add(rule))
    }

    #[cfg(test)]
    fn remove(&self, rule: &Rule) {
        let mut classes = self.state.classes.lock();
        classes.change_surely(&self.state, |table| table.remove(rule));
    }

    #[cfg(test)]
    fn set_unknown(&self, unknown: crate::class::Unknown) -> Result<(), DriverError> {
        let mut classes = self.state.classes.lock();
        classes.change(&self.state, |table| table.set_unknown(unknown))
    }
}

impl State {
    fn close(&self, class: ClassId) {
        let mut classes = self.classes.lock();
        // From here on its packets go to the kernel, whatever the program says.
        classes.take_back(class, self);
        classes.change_surely(self, |table| table.close(class));
    }

    /// The interface's receive queues, as there were when it was opened.
    fn queues(&self) -> u32 {
        self.pool.layout.queues
    }

    /// How many packets of a class there were where the maps have this queue.
    fn count(&self, class: ClassId, queue: u32) -> u64 {
        let count = self.counters.count(Maps::place(class, queue));
        count.unwrap_or_default()
    }

    /// How many of them came by queues that have no sockets.
    fn strayed(&self, class: ClassId) -> u64 {
        self.count(class, self.queues())
    }
}

impl Classes {
    /// Has the packets of a class sent to its sockets.
    fn give(&self, class: ClassId, sockets: &ClassSockets) -> Result<(), DriverError> {
        for (queue, socket) in (0..).zip(sockets.all()) {
            (self.sockets.set_socket(Maps::place(class, queue), socket))
                .map_err(failed("the socket of a class in its map", CAPABILITIES))?;
        }
        Ok(())
    }

    /// Has them sent to no socket any more.
    fn take_back(&self, class: ClassId, state: &State) {
        for queue in 0..state.queues() {
            let _was_there = self.sockets.remove_socket(Maps::place(class, queue));
        }
    }

    /// Changes the rules, and with them the program; where that fails, all is as before.
    fn change(
        &mut self,
        state: &State,
        change: impl FnOnce(&mut Table) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut table = self.table.clone();
        change(&mut table)?;
        self.install(state, &table)?;
        self.table = table;
        Ok(())
    }

    /// Changes the rules to fewer. If the kernel has no memory for the program, the next change
    /// brings it.
    fn change_surely(&mut self, state: &State, change: impl FnOnce(&mut Table)) {
        change(&mut self.table);
        let _brought_later = self.install(state, &self.table);
    }

    fn install(&self, state: &State, table: &Table) -> Result<(), DriverError> {
        let maps = Maps {
            sockets: self.sockets.descriptor(),
            counters: state.counters.descriptor(),
            queues: state.queues(),
        };
        let program = program(table, &state.link, maps)?;
        (self.attached.replace(&program)).map_err(failed("another XDP program", CAPABILITIES))
    }
}

/// The program of these rules, in the kernel.
fn program(table: &Table, link: &Link, maps: Maps) -> Result<Program, DriverError> {
    let what = "an XDP program";
    let unsupported = |source| DriverError::Unsupported { what, source };
    let classifier = Classifier::new(table.rules(), link.hardware, &link.addresses)
        .map_err(|error| unsupported(io::Error::other(error)))?;
    let instructions =
        (classifier.xdp(maps)).map_err(|error| unsupported(io::Error::other(error)))?;
    Program::xdp(&instructions).map_err(|error| match error.source.raw_os_error() {
        // For who may load programs, but lacks CAP_PERFMON, the verifier finds fault with a
        // harmless one.
        Some(libc::EPERM | libc::EACCES) if !may_load() => DriverError::Denied {
            what,
            capability: CAPABILITIES,
        },
        _ => unsupported(io::Error::other(error)),
    })
}

/// Whether the calling thread has the rights to load a program that reads packets.
fn may_load() -> bool {
    let needed = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|its| its.effective.contains(needed))
}

/// Has the interface run a program, in the first of the ways that are asked for and can be had.
fn attach(
    program: &Program,
    interface: u32,
    mode: Mode,
) -> Result<(Attached, Attachment), DriverError> {
    let ways: &[Attachment] = match mode {
        Mode::Auto => &[Attachment::Native, Attachment::Generic],
        Mode::Native => &[Attachment::Native],
        Mode::Generic => &[Attachment::Generic],
    };
    let mut refused = io::Error::from(io::ErrorKind::Unsupported);
    for way in ways {
        match Attached::new(program, interface, *way) {
            Ok(attached) => return Ok((attached, *way)),
            Err(error) => refused = error,
        }
        if matches!(refused.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) {
            return Err(DriverError::Taken);
        }
        if let Some(libc::EPERM) = refused.raw_os_error() {
            break;
        }
    }
    match refused.raw_os_error() {
        Some(libc::EPERM) => Err(failed("an XDP program", CAPABILITIES)(refused)),
        _ => Err(DriverError::Unsupported {
            what: "an XDP program on this interface",
            source: refused,
        }),
    }
}

/// In the kernel's stack packets come after they were put together, and a frame has no room for
/// several.
fn check_merging(interface: &str) -> Result<(), DriverError> {
    match Offloads::of(interface) {
        Ok(Offloads {
            generic_receive: true,
            ..
        }) => Err(DriverError::Unsupported {
            what: "AF_XDP in the kernel's stack on an interface that puts packets together",
            source: io::Error::other(format!("turn that off: `ethtool -K {interface} gro off`")),
        }),
        // Who does not tell does not do it.
        Ok(_) | Err(_) => Ok(()),
    }
}
