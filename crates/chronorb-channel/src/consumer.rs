//! The traits of consumers and of what events carry.

use chronorb_events::Event;

/// The body of an event: what the channel carries without looking at it.
///
/// Implemented for every type that fulfils the bounds. The events of timers have the default.
pub trait Body: Clone + Default + Send + Sync + 'static {}

impl<B: Clone + Default + Send + Sync + 'static> Body for B {}

/// A consumer that is called with its events.
///
/// Implemented for closures, which are told neither losses nor the end.
///
/// A panic on a lane ends the delivery and is counted. A panic in a direct delivery reaches the
/// supplier.
pub trait Consumer<B>: Send + Sync + 'static {
    /// Takes a set of events, in order of their arrival. A subscription without groups delivers one
    /// event at a time.
    fn push(&self, set: &[Event<B>]);

    /// Whether the consumer takes a delivery now. A lane asks before each event of the queue. After
    /// `false` the events wait there, while the lane serves others, until the consumer
    /// [says](crate::Waker::wake) that it is ready. Sets that timers complete are pushed all the
    /// same.
    fn is_ready(&self) -> bool {
        true
    }

    /// Learns that this number of events was lost before the next one.
    fn lost(&self, number: u64) {
        let _ = number;
    }

    /// Learns that the channel has ended the subscription: it was closed, or the queue overflowed
    /// under [`Overflow::Disconnect`](chronorb_events::Overflow::Disconnect). Not called after
    /// [`Subscription::disconnect`](crate::Subscription::disconnect).
    fn disconnected(&self) {}
}

impl<B, F: Fn(&[Event<B>]) + Send + Sync + 'static> Consumer<B> for F {
    fn push(&self, set: &[Event<B>]) {
        self(set);
    }
}
