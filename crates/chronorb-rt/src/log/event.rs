//! Events, and how often they are told.

use core::fmt;
use core::time::Duration;

/// How much an event matters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// A part of the program does not work.
    Error,
    /// Something is wrong, and the program goes on.
    Warn,
    /// Something that happens seldom in the ordinary course.
    Info,
    /// What explains other events.
    Debug,
}

/// An event: what happened, with whom, and why.
#[derive(Clone, Copy)]
pub struct Event<'e> {
    /// How much it matters.
    pub level: Level,
    /// What happened, in few words that are always the same: `rejected connection`.
    pub cause: &'static str,
    /// The other side, or what else it is about: an address, an operation; 64 octets of it are
    /// kept.
    pub peer: &'e dyn fmt::Display,
    /// A number whose meaning depends on the cause: an error number, a priority, a count; 0 where
    /// there is none.
    pub number: i64,
    /// What is known besides; 512 octets of it are kept.
    pub detail: &'e dyn fmt::Display,
    /// How often the same is told.
    pub limit: Limit,
}

/// How often events of one cause about one peer are told. The others are counted, and told as one
/// line at the end of the time.
///
/// Peers of one host are one: the port does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The events that are told within the time.
    pub burst: u32,
    /// The time, from the first event on.
    pub time: Duration,
}

impl Limit {
    /// Five events in ten seconds.
    pub const PEER: Self = Self {
        burst: 5,
        time: Duration::from_secs(10),
    };
    /// One event in an hour.
    pub const ONCE: Self = Self {
        burst: 1,
        time: Duration::from_secs(3600),
    };
    /// All events.
    pub const NONE: Self = Self {
        burst: u32::MAX,
        time: Duration::ZERO,
    };
}
