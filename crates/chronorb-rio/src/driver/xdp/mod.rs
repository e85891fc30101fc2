//! AF_XDP: the driver that bypasses the kernel's network stack.
//!
//! The interface runs a [program](crate::bpf::classifier) for each packet. It classifies the packet
//! and puts it into the ring of the class's socket. A flood of one class fills only its own ring;
//! the kernel counts the lost packets and does no further work for them. Other packets go to the
//! kernel, whose stack never sees the packets of classes.
//!
//! * The frames of all classes are one piece of memory, allocated when the driver is opened. Each
//!   class has a share of it. Later, only the rings of a class are allocated, when it opens.
//! * If the interface has several receive queues, a class has a socket and a ring for each. It
//!   takes one frame from each in turn, so a flood of one queue does not delay the others. The
//!   interface hashes addresses and ports, so packets of one flow use one queue and stay in order;
//!   packets of several flows may overtake each other. Each ring has room for all packets of the
//!   class, since all of its flows may use one queue. The memory for incoming packets therefore
//!   grows with the number of queues; fewer queues (`ethtool -L INTERFACE combined 2`) need less.
//! * All packets are sent by the first queue. No packet waits there, so a second queue would not be
//!   faster, and packets stay in order.
//! * Queues that are added to the interface while it is open have no sockets. The kernel gets their
//!   packets, and those of classes are counted. After a change of the queues, the interface has to
//!   be opened again. The kernel refuses to remove queues meanwhile.
//! * Frames of more than 3,822 octets use several pieces (Linux 6.6). Without them, Linux 5.18 is
//!   enough.
//! * Outgoing packets bypass the queueing disciplines of the interface.
//! * A change of rules replaces the program between two packets. It takes the kernel some
//!   milliseconds, during which packets are still processed.
//! * The driver does not learn whether checksums were verified. A virtual interface whose peer
//!   offloads checksums (the default; `ethtool -K PEER tx off` disables it) delivers packets
//!   without any. VLAN tags that the peer offloads are not seen (`ethtool -K PEER txvlan off`).
//! * In the kernel's stack ([`XdpMode::Generic`]), packets that the peer of a virtual interface has
//!   not segmented (TSO, GSO) are too long for a frame and are lost. An interface that merges
//!   packets (GRO) is refused.
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
use super::bpf::{Attachment, Map, Program, ProgramLink};
use super::home::Home;
use super::socket::failed;
use super::table::Table;
use super::{Driver, DriverError, Link, MAX_QUEUE, longest_frame, queue_of};
use crate::bpf::classifier::{Classifier, Maps};
use crate::class::{ClassId, MAX_CLASSES, Rule};
use crate::path::Path;

/// An interface opened with AF_XDP.
#[derive(Debug)]
pub(crate) struct Xdp {
    state: Arc<State>,
}

/// Options for opening an interface with AF_XDP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct XdpOptions {
    /// The hook of the program.
    pub mode: XdpMode,
    /// The room for packets in each direction, over all classes: the sum of their queue lengths,
    /// each counted as at least 64. The room for incoming packets exists once per receive queue.
    pub packets: usize,
}

/// The hook at which the program of an interface runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum XdpMode {
    /// The interface's driver if it supports XDP, otherwise the kernel's stack.
    #[default]
    Auto,
    /// The interface's driver.
    Native,
    /// The kernel's stack.
    Generic,
}

impl Default for XdpOptions {
    /// Returns room for eight classes with queues of 512 packets. For packets of 1,500 octets it
    /// takes 8 MiB of memory for outgoing packets, and 8 MiB for each receive queue.
    fn default() -> Self {
        Self {
            mode: XdpMode::Auto,
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

/// The rules, and the program made from them.
#[derive(Debug)]
struct Classes {
    table: Table,
    /// Dropped first, so that no further packet arrives.
    attached: ProgramLink,
    sockets: Map,
}

impl Xdp {
    /// Opens an interface of this network namespace with all of its present receive queues. If it
    /// was closed a moment ago, this may wait until the kernel has released it.
    ///
    /// # Errors
    /// [`DriverError`]: there is no such interface, it does not support XDP, another program is
    /// attached, or a right is missing.
    pub(crate) fn open(interface: &str, options: XdpOptions) -> Result<Self, DriverError> {
        let link = Link::read(&mut Netlink::open()?, interface)?;
        // An interface that does not report its queues has one.
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

/// Accessors for tests.
#[cfg(test)]
impl Xdp {
    /// Returns the hook of the program.
    pub(crate) fn attachment(&self) -> Attachment {
        self.state.attachment
    }

    /// Returns the number of receive queues at the time of opening.
    pub(crate) fn receive_queues(&self) -> u32 {
        self.state.queues()
    }

    /// Returns the number of packets that were classified as `class` since the interface was
    /// opened, including lost ones.
    pub(crate) fn matched(&self, class: ClassId) -> u64 {
        let queues = 0..self.receive_queues();
        let by_queues: u64 = queues.map(|queue| self.matched_by(class, queue)).sum();
        by_queues + self.strayed(class)
    }

    /// Returns how many of these used a receive queue; 0 for a queue that was added later.
    pub(crate) fn matched_by(&self, class: ClassId, queue: u32) -> u64 {
        if queue < self.receive_queues() {
            self.state.count(class, queue)
        } else {
            0
        }
    }

    /// Returns how many of these used queues that were added later. They went to the kernel.
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
        // A class that is already open is reported before a lack of room.
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
        // From here on the packets of the class go to the kernel.
        classes.take_back(class, self);
        classes.change_surely(self, |table| table.close(class));
    }

    /// Returns the number of receive queues at the time of opening.
    fn queues(&self) -> u32 {
        self.pool.layout.queues
    }

    /// Returns the counter of a class at a queue of the maps.
    fn count(&self, class: ClassId, queue: u32) -> u64 {
        let count = self.counters.count(Maps::place(class, queue));
        count.unwrap_or_default()
    }

    /// Returns the number of the class's packets that arrived at receive queues without a socket.
    fn strayed(&self, class: ClassId) -> u64 {
        self.count(class, self.queues())
    }
}

impl Classes {
    /// Directs the packets of a class to its sockets.
    fn give(&self, class: ClassId, sockets: &ClassSockets) -> Result<(), DriverError> {
        for (queue, socket) in (0..).zip(sockets.all()) {
            (self.sockets.set_socket(Maps::place(class, queue), socket))
                .map_err(failed("the socket of a class in its map", CAPABILITIES))?;
        }
        Ok(())
    }

    /// Removes the sockets of a class from the map.
    fn take_back(&self, class: ClassId, state: &State) {
        for queue in 0..state.queues() {
            let _was_there = self.sockets.remove_socket(Maps::place(class, queue));
        }
    }

    /// Changes the rules and the program. On an error, nothing is changed.
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

    /// Removes rules. If the kernel has no memory for the new program, the former one stays until
    /// the next change.
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

/// Compiles the rules and loads the program.
fn program(table: &Table, link: &Link, maps: Maps) -> Result<Program, DriverError> {
    let what = "an XDP program";
    let unsupported = |source| DriverError::Unsupported { what, source };
    let classifier = Classifier::new(table.rules(), link.hardware, &link.addresses)
        .map_err(|error| unsupported(io::Error::other(error)))?;
    let instructions =
        (classifier.xdp(maps)).map_err(|error| unsupported(io::Error::other(error)))?;
    Program::xdp(&instructions).map_err(|error| match error.source.raw_os_error() {
        // Without CAP_PERFMON, the verifier rejects a harmless program of a process that may load
        // programs.
        Some(libc::EPERM | libc::EACCES) if !may_load() => DriverError::Denied {
            what,
            capability: CAPABILITIES,
        },
        _ => unsupported(io::Error::other(error)),
    })
}

/// Returns whether the calling thread may load a program that reads packets.
fn may_load() -> bool {
    let needed = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|its| its.effective.contains(needed))
}

/// Attaches a program at the first requested hook that is available.
fn attach(
    program: &Program,
    interface: u32,
    mode: XdpMode,
) -> Result<(ProgramLink, Attachment), DriverError> {
    let ways: &[Attachment] = match mode {
        XdpMode::Auto => &[Attachment::Native, Attachment::Generic],
        XdpMode::Native => &[Attachment::Native],
        XdpMode::Generic => &[Attachment::Generic],
    };
    let mut refused = io::Error::from(io::ErrorKind::Unsupported);
    for way in ways {
        match ProgramLink::new(program, interface, *way) {
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

/// Refuses an interface that merges packets (GRO). The generic hook runs after merging, and a frame
/// has no room for merged packets.
fn check_merging(interface: &str) -> Result<(), DriverError> {
    match Offloads::of(interface) {
        Ok(Offloads {
            generic_receive: true,
            ..
        }) => Err(DriverError::Unsupported {
            what: "AF_XDP in the kernel's stack on an interface that puts packets together",
            source: io::Error::other(format!("turn that off: `ethtool -K {interface} gro off`")),
        }),
        // An interface that does not report merging does not merge.
        Ok(_) | Err(_) => Ok(()),
    }
}
