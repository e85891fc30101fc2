//! The layout of a page. It consists of words of eight octets, in the byte order of the machine.
//!
//! ```text
//! 0        magic
//! 1        version of the layout
//! 2..4     the interface's name
//! 8        class 0: CLASS words, of which the first
//!            0      which opening of the class this is, 1 and up; 0 while it is closed
//!            1..5   name                    9   period, ns
//!            5      mode of processing     10   processor + 1; 0 for any
//!            6      policy                 11   octets of the queue's frames, each way
//!            7      native priority        12   connections that it may have
//!            8      budget or cap, packets
//!            16..   counts, levels (now and most), latencies by powers of two, longest latency
//! 8+CLASS  class 1, and so on to MAX_CLASSES
//! ```

use crate::class::MAX_CLASSES;

/// A counter of a class since it was opened, which only grows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(usize)]
pub enum Count {
    /// Packets that were received and processed.
    PacketsIn,
    /// Octets of these, from the Ethernet header on.
    OctetsIn,
    /// Packets that were sent.
    PacketsOut,
    /// Octets of these, from the Ethernet header on.
    OctetsOut,
    /// Packets lost because the queue was full.
    QueueFull,
    /// Packets dropped because they were malformed or had a wrong checksum.
    Malformed,
    /// Packets dropped because they belong to no connection.
    NoConnection,
    /// Packets lost because there was no buffer for them, or no socket at their queue.
    NoBuffers,
    /// Connection requests dropped because the maximum number of connections was reached.
    SynOverLimit,
    /// Connections that were dropped for others, half-open or established.
    Refused,
    /// Connections that were established.
    Established,
    /// Retransmitted segments, and keep-alive probes.
    Retransmissions,
    /// Periods that have begun.
    Periods,
    /// Periods that began before the work of the one before was finished.
    Overruns,
}

/// A quantity of a class that rises and falls. Its maximum since the class was opened is kept too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(usize)]
pub enum Level {
    /// Frames in the queue when the thread began a step.
    Queue,
    /// Frames that the thread left in the queue because its budget was used up, including those
    /// that arrived meanwhile.
    LeftOver,
    /// Packets processed in the present period.
    BudgetUsed,
    /// Established connections.
    Open,
    /// Half-open connections.
    HalfOpen,
}

impl Count {
    /// All counters.
    pub const ALL: [Self; 14] = [
        Self::PacketsIn,
        Self::OctetsIn,
        Self::PacketsOut,
        Self::OctetsOut,
        Self::QueueFull,
        Self::Malformed,
        Self::NoConnection,
        Self::NoBuffers,
        Self::SynOverLimit,
        Self::Refused,
        Self::Established,
        Self::Retransmissions,
        Self::Periods,
        Self::Overruns,
    ];

    /// The counters of packets that were lost or dropped.
    pub const DROPS: [Self; 5] = [
        Self::QueueFull,
        Self::Malformed,
        Self::NoConnection,
        Self::NoBuffers,
        Self::SynOverLimit,
    ];
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 5] = [
        Self::Queue,
        Self::LeftOver,
        Self::BudgetUsed,
        Self::Open,
        Self::HalfOpen,
    ];
}

/// "chronRIO" in ASCII, in the machine's byte order.
pub(super) const MAGIC: u64 = 0x4f49_526e_6f72_6863;
/// The version of the layout.
pub(super) const VERSION: u64 = 2;

pub(super) const MAGIC_AT: usize = 0;
pub(super) const VERSION_AT: usize = 1;
pub(super) const INTERFACE_AT: usize = 2;
/// The words of an interface's name, which has at most 15 octets.
pub(super) const INTERFACE_WORDS: usize = 2;
pub(super) const HEAD: usize = 8;

pub(super) const OPENING: usize = 0;
pub(super) const NAME: usize = 1;
pub(super) const NAME_WORDS: usize = 4;
pub(super) const MODE: usize = 5;
pub(super) const POLICY: usize = 6;
pub(super) const PRIORITY: usize = 7;
pub(super) const PACKETS: usize = 8;
pub(super) const PERIOD: usize = 9;
pub(super) const CPU: usize = 10;
pub(super) const QUEUE: usize = 11;
pub(super) const CONNECTIONS: usize = 12;
pub(super) const COUNTS: usize = 16;
/// The first word of the levels, which have two words each: the present value and the maximum.
pub(super) const LEVELS: usize = COUNTS + Count::ALL.len();
/// The first word of the latency histogram. Bucket i counts latencies below 2ⁱ ns that are not in a
/// bucket before; the last one also counts all longer ones.
pub(super) const LATENCIES: usize = LEVELS + 2 * Level::ALL.len();
pub(super) const BUCKETS: usize = 40;
pub(super) const LONGEST: usize = LATENCIES + BUCKETS;
/// The number of words of a class: whole cache lines.
pub(super) const CLASS: usize = (LONGEST + 1).next_multiple_of(8);
/// The number of words of a page.
pub(super) const PAGE: usize = HEAD + MAX_CLASSES * CLASS;
