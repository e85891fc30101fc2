//! AF_XDP: the driver that passes the kernel's network stack by.
//!
//! The interface runs a [program](crate::bpf::classifier) for each packet, which finds its class and puts it into the
//! ring of that class's socket. A flood of one class fills its own ring, and the kernel counts what is lost there;
//! nothing is done for it beyond that. What is of no class goes to the kernel, whose stack does not see the
//! packets of classes at all.
//!
//! * The frames of all classes are one piece of memory, made when the driver is opened, of which each class has its
//!   share. Nothing is allocated after that but rings, when a class opens.
//! * Frames of more than 3,822 octets come and go in pieces (Linux 6.6); else 5.18 will do.
//! * The interface must have one receive queue.
//! * What goes out passes none of the interface's queues.
//! * Rules change with a new program, between one packet and the next. The kernel takes its time for that, some milliseconds,
//!   in which packets go on.
//! * Nobody tells whether checksums were found right. A virtual interface whose peer leaves them to it (as it does unless told
//!   not to, `ethtool -K PEER tx off`) hands on packets without any; and VLAN tags are not seen that the peer leaves to it
//!   (`ethtool -K PEER txvlan off`).
//! * In the kernel's stack ([`Mode::Generic`]) packets come as they are there: those that a virtual interface's peer has not cut
//!   (TSO, GSO) are too long for a frame and are lost, and an interface that puts packets together (GRO) is refused.
//! * `CAP_NET_ADMIN`, `CAP_BPF`, `CAP_PERFMON` and `CAP_NET_RAW` are needed.

mod memory;
mod pool;
mod receiver;
mod shared;
mod socket;
mod sync;
mod transmitter;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use chronorb_rt::{Offloads, PiMutex, receive_queues};
use rustix::thread::{CapabilitySet, capabilities};

use self::pool::{Layout, Pool};
use self::receiver::XdpReceiver;
use self::socket::ClassSocket;
use self::transmitter::XdpTransmitter;
use super::bpf::{Attached, Attachment, Map, Program};
use super::home::Home;
use super::socket::failed;
use super::table::Table;
use super::{Driver, DriverError, Link, MAX_QUEUE, longest_frame, queue_of};
use crate::bpf::classifier::{Classifier, Maps};
use crate::class::{ClassId, MAX_CLASSES, Rule, Unknown};
use crate::netlink::Netlink;
use crate::path::Path;

/// An interface that is open by AF_XDP.
#[derive(Debug)]
pub struct Xdp {
    state: Arc<State>,
}

/// How an interface shall be opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Where the program runs.
    pub mode: Mode,
    /// So many packets have room each way, over all classes: the sum of their queues, of which each counts as 64 at least.
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
    /// Room for eight classes with queues of 512 packets, which takes 16 MiB of memory where these have 1,500 octets.
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
    /// Opens an interface of this network namespace. Where somebody has closed it just now, this may wait for the
    /// kernel to be done with it.
    ///
    /// # Errors
    /// [`DriverError`]: there is no such interface, it cannot do this, another program is on it, or a right is missing.
    pub fn open(interface: &str, options: Options) -> Result<Self, DriverError> {
        let link = Netlink::open()?.driver_link(interface)?;
        check_queues(interface)?;
        if options.packets > MAX_CLASSES * MAX_QUEUE {
            return Err(DriverError::LongQueue(options.packets));
        }
        let layout = Layout::new(longest_frame(&link), options.packets).ok_or_else(|| {
            DriverError::Unsupported {
                what: "AF_XDP with packets of this length",
                source: io::Error::other(format!("an MTU of {} is too large", link.mtu)),
            }
        })?;
        let map = |map: io::Result<Map>| map.map_err(failed("a BPF map", CAPABILITIES));
        let sockets = map(Map::of_sockets(MAX_CLASSES as u32))?;
        let counters = map(Map::of_counters(MAX_CLASSES as u32))?;
        let table = Table::new();
        let program = program(&table, &link, &sockets, &counters)?;
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
            attachment,
            classes: PiMutex::new(classes),
            counters,
            pool: Arc::new(pool),
        };
        Ok(Self {
            state: Arc::new(state),
        })
    }

    /// Where the program runs.
    pub fn attachment(&self) -> Attachment {
        self.state.attachment
    }

    /// Whether the interface itself reads and writes frames, so that nobody copies them.
    pub fn is_zero_copy(&self) -> bool {
        self.state.pool.is_zero_copy
    }

    /// How many packets were found to be of a class, whatever became of them then, since the interface was opened.
    pub fn matched(&self, class: ClassId) -> u64 {
        let count = self.state.counters.count(class.index() as u32);
        count.unwrap_or_default()
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
        let socket = || ClassSocket::open(state.pool.clone(), interface, queue);
        let socket = state.home.enter(socket)??;
        let number = class.index() as u32;
        (classes.sockets.set_socket(number, socket.as_fd()))
            .map_err(failed("the socket of a class in its map", CAPABILITIES))?;
        let changed = classes.change(state, |table| table.open(class, rules));
        if let Err(error) = changed {
            let _was_put_in_above = classes.sockets.remove_socket(number);
            return Err(error);
        }
        drop(classes);
        let socket = Arc::new(socket);
        let receiver = XdpReceiver::new(class, socket.clone(), state.clone());
        let transmitter = XdpTransmitter::new(socket, longest_frame(&state.link));
        Ok(Path {
            receiver: Box::new(receiver),
            transmitter: Box::new(transmitter),
        })
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        let mut classes = self.state.classes.lock();
        classes.change(&self.state, |table| table.add(rule))
    }

    fn remove(&self, rule: &Rule) {
        let mut classes = self.state.classes.lock();
        classes.change_surely(&self.state, |table| table.remove(rule));
    }

    fn set_unknown(&self, unknown: Unknown) -> Result<(), DriverError> {
        let mut classes = self.state.classes.lock();
        classes.change(&self.state, |table| table.set_unknown(unknown))
    }
}

impl State {
    fn close(&self, class: ClassId) {
        let mut classes = self.classes.lock();
        // From here on its packets go to the kernel, whatever the program says.
        let _was_there = classes.sockets.remove_socket(class.index() as u32);
        classes.change_surely(self, |table| table.close(class));
    }
}

impl Classes {
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

    /// Changes the rules to fewer. If the kernel has no memory for the program, the next change brings it.
    fn change_surely(&mut self, state: &State, change: impl FnOnce(&mut Table)) {
        change(&mut self.table);
        let _brought_later = self.install(state, &self.table);
    }

    fn install(&self, state: &State, table: &Table) -> Result<(), DriverError> {
        let program = program(table, &state.link, &self.sockets, &state.counters)?;
        (self.attached.replace(&program)).map_err(failed("another XDP program", CAPABILITIES))
    }
}

/// The program of these rules, in the kernel.
fn program(
    table: &Table,
    link: &Link,
    sockets: &Map,
    counters: &Map,
) -> Result<Program, DriverError> {
    let what = "an XDP program";
    let unsupported = |source| DriverError::Unsupported { what, source };
    let maps = Maps {
        sockets: sockets.descriptor(),
        counters: counters.descriptor(),
    };
    let classifier = Classifier::new(table.rules(), &link.addresses)
        .map_err(|error| unsupported(io::Error::other(error)))?;
    let instructions =
        (classifier.xdp(maps)).map_err(|error| unsupported(io::Error::other(error)))?;
    Program::xdp(&instructions).map_err(|error| match error.source.raw_os_error() {
        // For who may load programs, but lacks CAP_PERFMON, the verifier finds fault with a harmless one.
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

/// A class has one ring, and the kernel wants one for each queue.
fn check_queues(interface: &str) -> Result<(), DriverError> {
    match receive_queues(interface) {
        // Who does not tell has one.
        Ok(0 | 1) | Err(_) => Ok(()),
        Ok(queues) => Err(DriverError::Unsupported {
            what: "AF_XDP on an interface with several receive queues",
            source: io::Error::other(format!(
                "it has {queues}, set it to one: `ethtool -L {interface} combined 1`, or `rx 1`"
            )),
        }),
    }
}

/// In the kernel's stack packets come after they were put together, and a frame has no room for several.
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

/// What AF_XDP takes.
const CAPABILITIES: &str = "cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw";
