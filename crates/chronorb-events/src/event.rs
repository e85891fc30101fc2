//! Events and the constants of their types.

/// The source that matches every source, in filters and in events.
pub const ANY_SOURCE: i32 = 0;
/// The type that matches every type, in filters and in events (`ACE_ES_EVENT_ANY`).
pub const ANY_TYPE: i32 = 0;
/// The type of the event of a one-shot timer.
pub const TIMEOUT: i32 = 4;
/// The type of the event of an interval timer.
pub const INTERVAL_TIMEOUT: i32 = 5;
/// The type of the event of a deadline timer.
pub const DEADLINE_TIMEOUT: i32 = 6;
/// The type of the event that tells a consumer how many events it has lost. TAO's channel has no
/// such event, and does not use the number.
pub const EVENTS_LOST: i32 = 15;
/// The first type that applications may use. Types from 1 to 15 are reserved.
pub const FIRST_USER_TYPE: i32 = 16;

/// The part of an event that filters look at (`RtecEventComm::EventHeader`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Header {
    /// The supplier. [`ANY_SOURCE`] passes every filter of sources.
    pub source: i32,
    /// The type. [`ANY_TYPE`] passes every filter of types.
    pub event_type: i32,
    /// The number of channels that the event may still be forwarded to.
    pub ttl: i32,
    /// The time of creation in units of 100 ns. For the event of a timer, the time at which it
    /// was due.
    pub creation_time: u64,
}

/// An event: its header, and a body that the channel carries without looking at it.
///
/// Groups of events keep clones, so a body that is costly to clone stands behind an `Arc`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event<B> {
    /// The part that filters look at.
    pub header: Header,
    /// The data.
    pub body: B,
}

impl<B> Event<B> {
    /// An event of a source and a type.
    pub fn new(source: i32, event_type: i32, body: B) -> Self {
        let header = Header {
            source,
            event_type,
            ..Header::default()
        };
        Self { header, body }
    }
}
