//! Dispatching on the thread that pushes: of the supplier, or of the timers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_events::{Event, Lane, Program, SubscriptionId};
use chronorb_rt::{Deadline, PiMutex};

use super::gate::PushGate;
use super::{ConnectionCounts, ConnectionId, Consumer, Dispatch};
use crate::clock::Clock;

/// Filters under a lock, and pushes to the consumers in turn after the lock is released.
///
/// The slowest consumer determines the pace of its suppliers.
pub(crate) struct Reactive<B> {
    clock: Arc<dyn Clock>,
    /// The longest time that a disconnection waits for pushes in progress.
    patience: Duration,
    state: PiMutex<State<B>>,
}

struct State<B> {
    lane: Lane<B>,
    /// By subscription, as the lane names it.
    consumers: HashMap<SubscriptionId, Arc<ConnectedConsumer<B>>>,
    connections: HashMap<ConnectionId, Connection>,
    next_id: u64,
    /// Empty batches whose memory is used again.
    spare: Vec<Batch<B>>,
}

struct Connection {
    subscription: SubscriptionId,
    link: Arc<Link>,
    is_suspended: bool,
}

/// A consumer with one program.
struct ConnectedConsumer<B> {
    consumer: Arc<dyn Consumer<B>>,
    link: Arc<Link>,
}

/// The part of a connection that stays when its program is replaced.
#[derive(Default)]
struct Link {
    gate: PushGate,
    sets: AtomicU64,
    events: AtomicU64,
}

/// The deliveries of one event.
struct Batch<B> {
    events: Vec<Event<B>>,
    /// Consumers, and the ends of their sets.
    sets: Vec<(Arc<ConnectedConsumer<B>>, usize)>,
}

/// The batches that are kept: as many as threads push at the same time, within reason.
const SPARE: usize = 16;

impl<B: Clone + Default> Reactive<B> {
    pub(crate) fn new(clock: Arc<dyn Clock>, patience: Duration) -> Self {
        let state = State {
            lane: Lane::new(),
            consumers: HashMap::new(),
            connections: HashMap::new(),
            next_id: 1,
            spare: Vec::new(),
        };
        Self {
            clock,
            patience,
            state: PiMutex::new(state),
        }
    }

    /// Collects the deliveries of one step of the lane, and makes them.
    fn dispatch(
        &self,
        step: impl FnOnce(&mut Lane<B>, &mut dyn FnMut(SubscriptionId, &[Event<B>])),
    ) {
        let mut state = self.state.lock();
        let mut batch = state.spare.pop().unwrap_or_default();
        let State {
            lane, consumers, ..
        } = &mut *state;
        step(lane, &mut |id, set| {
            if let Some(consumer) = consumers.get(&id) {
                batch.events.extend_from_slice(set);
                batch.sets.push((consumer.clone(), batch.events.len()));
            }
        });
        drop(state);
        batch.deliver();
        let mut state = self.state.lock();
        if state.spare.len() < SPARE {
            state.spare.push(batch);
        }
    }
}

impl<B> Default for Batch<B> {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            sets: Vec::new(),
        }
    }
}

impl<B> Batch<B> {
    fn deliver(&mut self) {
        let mut begin = 0;
        for (connected, end) in self.sets.drain(..) {
            let set = &self.events[begin..end];
            begin = end;
            let link = &connected.link;
            let Some(_push) = link.gate.enter() else {
                continue;
            };
            // Before the push, which may end the connection and with it the counts.
            link.sets.fetch_add(1, Ordering::Relaxed);
            link.events.fetch_add(set.len() as u64, Ordering::Relaxed);
            connected.consumer.push(set);
        }
        self.events.clear();
    }
}

impl<B: Clone + Default> State<B> {
    fn subscribe(
        &mut self,
        consumer: Arc<dyn Consumer<B>>,
        program: Arc<Program>,
        link: Arc<Link>,
        now: u64,
    ) -> SubscriptionId {
        let subscription = self.lane.subscribe(program, 0, now);
        let connected = Arc::new(ConnectedConsumer { consumer, link });
        self.consumers.insert(subscription, connected);
        subscription
    }

    fn unsubscribe(&mut self, subscription: SubscriptionId) {
        self.lane.unsubscribe(subscription);
        self.consumers.remove(&subscription);
    }
}

impl<B: Clone + Default + Send + Sync> Dispatch<B> for Reactive<B> {
    fn connect(
        &self,
        _: usize,
        consumer: Arc<dyn Consumer<B>>,
        program: Arc<Program>,
    ) -> ConnectionId {
        let mut state = self.state.lock();
        let id = ConnectionId(state.next_id);
        state.next_id += 1;
        let link = Arc::new(Link::default());
        let subscription = state.subscribe(consumer, program, link.clone(), self.clock.now());
        let connection = Connection {
            subscription,
            link,
            is_suspended: false,
        };
        state.connections.insert(id, connection);
        id
    }

    fn reconnect(
        &self,
        id: ConnectionId,
        consumer: Arc<dyn Consumer<B>>,
        program: Arc<Program>,
    ) -> bool {
        let mut state = self.state.lock();
        let Some(connection) = state.connections.get(&id) else {
            return false;
        };
        let (link, before) = (connection.link.clone(), connection.subscription);
        let is_suspended = connection.is_suspended;
        let subscription = state.subscribe(consumer, program, link, self.clock.now());
        state.unsubscribe(before);
        if is_suspended {
            state.lane.suspend(subscription);
        }
        if let Some(connection) = state.connections.get_mut(&id) {
            connection.subscription = subscription;
        }
        true
    }

    fn disconnect(&self, id: ConnectionId) {
        let mut state = self.state.lock();
        let Some(connection) = state.connections.remove(&id) else {
            return;
        };
        state.unsubscribe(connection.subscription);
        drop(state);
        connection.link.gate.close(self.patience);
    }

    fn suspend(&self, id: ConnectionId) {
        let state = &mut *self.state.lock();
        if let Some(connection) = state.connections.get_mut(&id) {
            connection.is_suspended = true;
            state.lane.suspend(connection.subscription);
        }
    }

    fn resume(&self, id: ConnectionId) {
        let state = &mut *self.state.lock();
        if let Some(connection) = state.connections.get_mut(&id) {
            connection.is_suspended = false;
            state.lane.resume(connection.subscription, self.clock.now());
        }
    }

    fn push(&self, event: &Event<B>) {
        let now = self.clock.now();
        self.dispatch(|lane, deliver| lane.push(event, now, deliver));
    }

    fn next_due(&self) -> Option<u64> {
        self.state.lock().lane.next_due()
    }

    fn expire(&self) {
        let now = self.clock.now();
        self.dispatch(|lane, deliver| lane.expire(now, deliver));
    }

    fn flush(&self, _: Deadline) -> bool {
        // A push has returned when its events are pushed.
        true
    }

    fn stop(&self) {}

    fn counts(&self, id: ConnectionId) -> Option<ConnectionCounts> {
        let state = self.state.lock();
        let link = &state.connections.get(&id)?.link;
        Some(ConnectionCounts {
            sets: link.sets.load(Ordering::Relaxed),
            events: link.events.load(Ordering::Relaxed),
            ..ConnectionCounts::default()
        })
    }
}
