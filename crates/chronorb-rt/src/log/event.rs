//! Events, and their rate limits.

use core::fmt;
use core::time::Duration;

/// The severity of an event.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// A part of the program does not work.
    Error,
    /// Something is wrong, and the program goes on.
    Warn,
    /// Something that happens seldom in the ordinary course.
    Info,
    /// Details that explain other events.
    Debug,
}

/// An event, with its peer and its reason.
#[derive(Clone, Copy)]
pub struct Event<'e> {
    /// The severity.
    pub level: Level,
    /// A short constant text: `rejected connection`.
    pub cause: &'static str,
    /// The peer, or another subject such as an operation; at most 64 octets of it are kept.
    pub peer: &'e dyn fmt::Display,
    /// A number whose meaning depends on the cause: an error number, a priority, a count; 0 if
    /// there is none.
    pub number: i64,
    /// Further details; at most 512 octets of them are kept.
    pub detail: &'e dyn fmt::Display,
    /// The rate limit of equal events.
    pub limit: Limit,
}

/// A rate limit for events of one cause about one peer. Further events are counted, and reported in
/// one line at the end of the interval.
///
/// The port does not count: all peers of a host are one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The number of events that are reported within the time.
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
