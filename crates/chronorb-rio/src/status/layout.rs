//! Where in a page what lies. Everything is a word of eight octets, in the byte order of the
//! machine.
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

/// What is counted of a class since it was opened, and only grows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(usize)]
pub enum Count {
    /// Packets that came in and were processed.
    PacketsIn,
    /// Octets of these, from the Ethernet header on.
    OctetsIn,
    /// Packets that went out.
    PacketsOut,
    /// Octets of these, from the Ethernet header on.
    OctetsOut,
    /// Packets lost since the queue was full.
    QueueFull,
    /// Packets dropped since they contradicted themselves, or had a wrong checksum.
    Malformed,
    /// Packets dropped since they were of no connection.
    NoConnection,
    /// Packets lost since there was no room for them, or no socket where they came in.
    NoBuffers,
    /// Packets dropped that asked for a connection when there were as many as there may be.
    SynOverLimit,
    /// Connections that gave way to others, half-open or not.
    Refused,
    /// Connections that were established.
    Established,
    /// Segments that were sent again, and those that ask a peer for a sign of life.
    Retransmissions,
    /// Periods that have begun.
    Periods,
    /// Periods that began while the one before was not done with.
    Overruns,
}

/// What a class has at a time; the most of it since the class was opened is kept too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(usize)]
pub enum Level {
    /// Frames that were waiting in its queue when its thread looked.
    Queue,
    /// Frames that its thread left there, because its budget was used up, with those that had come
    /// meanwhile.
    LeftOver,
    /// Packets that the present period has processed.
    BudgetUsed,
    /// Connections that are established.
    Open,
    /// Connections that are being established.
    HalfOpen,
}

impl Count {
    /// All of them.
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

    /// Those of packets that were lost or dropped.
    pub const DROPS: [Self; 5] = [
        Self::QueueFull,
        Self::Malformed,
        Self::NoConnection,
        Self::NoBuffers,
        Self::SynOverLimit,
    ];
}

impl Level {
    /// All of them.
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
/// Changes with the layout.
pub(super) const VERSION: u64 = 2;

pub(super) const MAGIC_AT: usize = 0;
pub(super) const VERSION_AT: usize = 1;
pub(super) const INTERFACE_AT: usize = 2;
/// Names of interfaces have at most 15 octets.
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
/// Two words each: now, and most.
pub(super) const LEVELS: usize = COUNTS + Count::ALL.len();
/// How many latencies were below 2⁰, 2¹, … ns, and not in the bucket before. The last has all that
/// are longer.
pub(super) const LATENCIES: usize = LEVELS + 2 * Level::ALL.len();
pub(super) const BUCKETS: usize = 40;
pub(super) const LONGEST: usize = LATENCIES + BUCKETS;
/// Words of a class: whole cache lines.
pub(super) const CLASS: usize = (LONGEST + 1).next_multiple_of(8);
/// Words of a page.
pub(super) const PAGE: usize = HEAD + MAX_CLASSES * CLASS;
