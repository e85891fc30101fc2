//! The part of a channel between its proxies and its consumers: filters, and the threads that push.

mod gate;
mod lanes;
mod reactive;

use std::sync::Arc;

use chronorb_events::{Event, Program};
use chronorb_rt::Deadline;

pub(crate) use lanes::Lanes;
pub(crate) use reactive::Reactive;

/// A consumer, as the channel pushes to it.
pub(crate) trait Consumer<B>: Send + Sync {
    /// Takes a set of events, in order of their arrival. Does not wait longer than its own limit.
    fn push(&self, set: &[Event<B>]);
}

/// The number of a connected consumer. Numbers are not used again.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct ConnectionId(u64);

/// Counts of a connected consumer since it connected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ConnectionCounts {
    /// The sets that were given to the consumer.
    pub(crate) sets: u64,
    /// The events in these sets.
    pub(crate) events: u64,
    /// The events that were lost, because they found a queue full.
    pub(crate) lost: u64,
    /// The events that wait in a queue.
    pub(crate) queued: u32,
}

/// Filters events and dispatches them to the consumers.
///
/// The events of one supplier reach a consumer in order.
pub(crate) trait Dispatch<B>: Send + Sync {
    /// Connects a consumer to a lane, by its number. Its timers count from now.
    fn connect(
        &self,
        lane: usize,
        consumer: Arc<dyn Consumer<B>>,
        program: Arc<Program>,
    ) -> ConnectionId;

    /// Replaces a connected consumer and its program. Each event is filtered by one of the two.
    /// Returns whether the connection is there.
    fn reconnect(
        &self,
        id: ConnectionId,
        consumer: Arc<dyn Consumer<B>>,
        program: Arc<Program>,
    ) -> bool;

    /// Disconnects a consumer. No push begins after it has returned, unless it was called within a
    /// push: then pushes that other threads have begun may go on.
    fn disconnect(&self, id: ConnectionId);

    /// Stops the events and timers of a consumer.
    fn suspend(&self, id: ConnectionId);

    /// Lets a suspended consumer go on. Its deadlines count from now.
    fn resume(&self, id: ConnectionId);

    /// Takes an event of a supplier.
    fn push(&self, event: &Event<B>);

    /// The time at which the next timer is due, in nanoseconds of the channel's clock.
    fn next_due(&self) -> Option<u64>;

    /// Fires the timers that are due.
    fn expire(&self);

    /// Waits until the events that were taken are pushed, at most until the deadline. Returns
    /// whether they are.
    fn flush(&self, deadline: Deadline) -> bool;

    /// Ends the threads of the dispatching. Later events are dropped.
    fn stop(&self);

    /// Returns the counts of a connected consumer.
    fn counts(&self, id: ConnectionId) -> Option<ConnectionCounts>;
}
