//! Dispatching on lanes: each has a thread, a queue, and the consumers of one priority.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chronorb::Orb;
use chronorb::outbox::OutboxOverflow;
use chronorb_events::{Event, Next, Overflow, Program, Put, Queue};
use chronorb_rt::log::{self, Level, Limit};
use chronorb_rt::{Deadline, Gate, Monotonic, PiMutex, SpawnError, ThreadBuilder};

use super::{ConnectionCounts, ConnectionId, Consumer, Dispatch, Reactive};
use crate::clock::Clock;
use crate::options::LaneOptions;

/// Gives each event to the lanes that have consumers, the most urgent first. The thread of a lane
/// filters it, pushes it, and fires the timers of its consumers.
pub(crate) struct Lanes<B> {
    lanes: Box<[Arc<DispatchLane<B>>]>,
}

struct DispatchLane<B> {
    consumers: Reactive<B>,
    clock: Arc<dyn Clock>,
    /// Whether its thread fires timers. In virtual time the program does.
    has_timers: bool,
    block: Duration,
    number: AtomicUsize,
    /// Locked for moments only.
    state: PiMutex<LaneState<B>>,
    /// Advances when its thread is to look, while it sleeps.
    work: Gate,
    /// Advances when there may be room or nothing is left to do, while threads wait for that.
    progress: Gate,
}

struct LaneState<B> {
    events: Queue<Event<B>>,
    /// The events that the queue had lost when each consumer connected.
    lost_before: HashMap<ConnectionId, u64>,
    /// The threads that wait for progress.
    waiters: usize,
    /// Whether the thread pushes an event.
    is_busy: bool,
    is_asleep: bool,
    is_over: bool,
}

impl<B: Clone + Default + Send + Sync + 'static> Lanes<B> {
    /// Starts the threads of lanes. In virtual time they fire no timers.
    pub(crate) fn start(
        options: &[LaneOptions],
        orb: &Orb,
        clock: &Arc<dyn Clock>,
        is_virtual: bool,
        patience: Duration,
    ) -> Result<Self, SpawnError> {
        let lane = |options: &LaneOptions| {
            let (overflow, block) = match options.overflow {
                OutboxOverflow::DropOldest => (Overflow::DropOldest, Duration::ZERO),
                OutboxOverflow::DropNewest => (Overflow::DropNewest, Duration::ZERO),
                OutboxOverflow::Block(limit) => (Overflow::Block, limit),
            };
            Arc::new(DispatchLane {
                consumers: Reactive::new(clock.clone(), patience),
                clock: clock.clone(),
                has_timers: !is_virtual,
                block,
                number: AtomicUsize::new(0),
                state: PiMutex::new(LaneState {
                    events: Queue::new(options.capacity, overflow),
                    lost_before: HashMap::new(),
                    waiters: 0,
                    is_busy: false,
                    is_asleep: false,
                    is_over: false,
                }),
                work: Gate::new(0),
                progress: Gate::new(0),
            })
        };
        // An error drops the lanes whose threads have started, which ends these.
        let this = Self {
            lanes: options.iter().map(lane).collect(),
        };
        for (index, (lane, options)) in this.lanes.iter().zip(options).enumerate() {
            let (lane, current, priority) = (lane.clone(), orb.rt_current(), options.priority);
            let thread = ThreadBuilder::new(format!("events.{index}")).prefault_stack(true);
            thread.spawn(move || {
                if let Some(priority) = priority
                    && let Err(exception) = current.set_priority(priority)
                {
                    log::tell(&log::Event {
                        level: Level::Warn,
                        cause: "a lane of an event channel has ordinary scheduling",
                        peer: &index,
                        number: i64::from(priority.value()),
                        detail: &exception,
                        limit: Limit::PEER,
                    });
                }
                lane.run();
            })?;
        }
        Ok(this)
    }

    /// The lane of a connection, and its name there.
    fn find(&self, id: ConnectionId) -> (&DispatchLane<B>, ConnectionId) {
        let number = self.lanes.len() as u64;
        let lane = (id.0 % number) as usize;
        (&self.lanes[lane], ConnectionId(id.0 / number))
    }
}

impl<B: Clone + Default + Send + Sync> DispatchLane<B> {
    /// Puts an event into the queue by its policy.
    fn put(&self, event: &Event<B>) {
        let mut item = event.clone();
        let mut deadline = None;
        let mut state = self.state.lock();
        loop {
            if state.is_over {
                return;
            }
            let Put::Full(back) = state.events.put(item, 0) else {
                break;
            };
            let until = *deadline.get_or_insert_with(|| Deadline::after(self.block));
            if until.has_passed() {
                state.events.give_up();
                break;
            }
            item = back;
            state.waiters += 1;
            let seen = self.progress.get();
            drop(state);
            self.progress.wait_while(seen, until);
            state = self.state.lock();
            state.waiters -= 1;
        }
        let is_asleep = std::mem::take(&mut state.is_asleep);
        drop(state);
        if is_asleep {
            self.work.advance();
        }
    }

    fn wake(&self) {
        if std::mem::take(&mut self.state.lock().is_asleep) {
            self.work.advance();
        }
    }

    fn run(&self) {
        loop {
            let mut state = self.state.lock();
            if state.is_over {
                return;
            }
            let next = state.events.take();
            state.is_busy = next.is_some();
            let has_waiters = state.waiters > 0;
            let seen = self.work.get();
            // A change after this point advances the gate.
            state.is_asleep = next.is_none();
            drop(state);
            if has_waiters {
                self.progress.advance();
            }
            match next {
                Some(Next::Event(event)) => self.consumers.push(&event),
                // The queue counts what was lost.
                Some(Next::Gap(_)) => {}
                None => self.sleep(seen),
            }
        }
    }

    /// Fires timers that are due, or sleeps until there is something to do.
    fn sleep(&self, seen: u32) {
        let due = self.consumers.next_due().filter(|_| self.has_timers);
        if due.is_some_and(|due| due <= self.clock.now()) {
            self.consumers.expire();
            return;
        }
        let due = Monotonic::from_nanos(due.unwrap_or(u64::MAX));
        self.work.wait_while(seen, Deadline::at(due));
    }

    fn flush(&self, deadline: Deadline) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.is_over || (state.events.is_empty() && !state.is_busy) {
                return true;
            }
            if deadline.has_passed() {
                return false;
            }
            state.waiters += 1;
            let seen = self.progress.get();
            drop(state);
            self.progress.wait_while(seen, deadline);
            state = self.state.lock();
            state.waiters -= 1;
        }
    }

    fn stop(&self) {
        self.state.lock().is_over = true;
        self.work.advance();
        self.progress.advance();
    }
}

impl<B: Clone + Default + Send + Sync + 'static> Dispatch<B> for Lanes<B> {
    fn connect(
        &self,
        lane: usize,
        consumer: Arc<dyn Consumer<B>>,
        program: Arc<Program>,
    ) -> ConnectionId {
        let index = lane.min(self.lanes.len() - 1);
        let lane = &self.lanes[index];
        let id = lane.consumers.connect(0, consumer, program);
        let mut state = lane.state.lock();
        let lost = state.events.lost();
        state.lost_before.insert(id, lost);
        drop(state);
        lane.number.fetch_add(1, Ordering::SeqCst);
        lane.wake();
        ConnectionId(id.0 * self.lanes.len() as u64 + index as u64)
    }

    fn reconnect(
        &self,
        id: ConnectionId,
        consumer: Arc<dyn Consumer<B>>,
        program: Arc<Program>,
    ) -> bool {
        let (lane, id) = self.find(id);
        let is_there = lane.consumers.reconnect(id, consumer, program);
        lane.wake();
        is_there
    }

    fn disconnect(&self, id: ConnectionId) {
        let (lane, id) = self.find(id);
        if lane.state.lock().lost_before.remove(&id).is_some() {
            lane.number.fetch_sub(1, Ordering::SeqCst);
        }
        lane.consumers.disconnect(id);
    }

    fn suspend(&self, id: ConnectionId) {
        let (lane, id) = self.find(id);
        lane.consumers.suspend(id);
    }

    fn resume(&self, id: ConnectionId) {
        let (lane, id) = self.find(id);
        lane.consumers.resume(id);
        lane.wake();
    }

    fn push(&self, event: &Event<B>) {
        for lane in &self.lanes {
            if lane.number.load(Ordering::SeqCst) > 0 {
                lane.put(event);
            }
        }
    }

    fn next_due(&self) -> Option<u64> {
        let due = self.lanes.iter().map(|lane| lane.consumers.next_due());
        due.flatten().min()
    }

    fn expire(&self) {
        for lane in &self.lanes {
            // Events that came before the timers are filtered before them.
            lane.flush(Deadline::at(Monotonic::from_nanos(u64::MAX)));
            lane.consumers.expire();
        }
    }

    fn flush(&self, deadline: Deadline) -> bool {
        self.lanes.iter().all(|lane| lane.flush(deadline))
    }

    fn stop(&self) {
        self.lanes.iter().for_each(|lane| lane.stop());
    }

    fn counts(&self, id: ConnectionId) -> Option<ConnectionCounts> {
        let (lane, id) = self.find(id);
        let mut counts = lane.consumers.counts(id)?;
        let state = lane.state.lock();
        let before = state.lost_before.get(&id)?;
        counts.lost += state.events.lost() - before;
        counts.queued += u32::try_from(state.events.len()).unwrap_or(u32::MAX);
        Some(counts)
    }
}

impl<B> Drop for Lanes<B> {
    fn drop(&mut self) {
        for lane in &self.lanes {
            lane.state.lock().is_over = true;
            lane.work.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use chronorb_events::{Filter, Limits, Rules};

    use super::*;
    use crate::clock::SystemClock;

    const LONG: Duration = Duration::from_secs(120);

    /// A consumer that waits in each push until its gate is open.
    #[derive(Default)]
    struct GatedConsumer {
        open: Gate,
        begun: Gate,
        types: PiMutex<Vec<i32>>,
    }

    impl Consumer<()> for GatedConsumer {
        fn push(&self, set: &[Event<()>]) {
            self.begun.set(1);
            self.open.wait_while(0, Deadline::after(LONG));
            let types = set.iter().map(|event| event.header.event_type);
            self.types.lock().extend(types);
        }
    }

    fn lanes(options: &[LaneOptions]) -> (Orb, Lanes<()>) {
        let orb = Orb::init(&mut vec!["test".to_owned()]).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let lanes = Lanes::start(options, &orb, &clock, false, LONG).unwrap();
        (orb, lanes)
    }

    fn connect(
        lanes: &Lanes<()>,
        lane: usize,
        filter: &Filter,
    ) -> (Arc<GatedConsumer>, ConnectionId) {
        let consumer = Arc::new(GatedConsumer::default());
        let program = Program::compile(filter, Rules::Corrected, &Limits::default());
        let id = lanes.connect(lane, consumer.clone(), Arc::new(program.unwrap()));
        (consumer, id)
    }

    #[test]
    fn a_consumer_delays_its_own_lane_only() {
        let (_orb, lanes) = lanes(&[LaneOptions::default(); 2]);
        let (urgent, _) = connect(&lanes, 0, &Filter::Everything);
        let (slow, _) = connect(&lanes, 1, &Filter::Everything);
        urgent.open.set(1);
        for event_type in 20..24 {
            lanes.push(&Event::new(1, event_type, ()));
        }
        slow.begun.wait_while(0, Deadline::after(LONG));
        assert!(lanes.lanes[0].flush(Deadline::after(LONG)));
        assert_eq!(*urgent.types.lock(), [20, 21, 22, 23]);
        assert!(!lanes.flush(Deadline::after(Duration::ZERO)));
        slow.open.set(1);
        assert!(lanes.flush(Deadline::after(LONG)));
        assert_eq!(*slow.types.lock(), [20, 21, 22, 23]);
    }

    #[test]
    fn what_a_lane_loses_is_counted() {
        let cases = [
            (OutboxOverflow::DropOldest, [20, 24, 25]),
            (OutboxOverflow::DropNewest, [20, 21, 22]),
            (OutboxOverflow::Block(Duration::ZERO), [20, 21, 22]),
        ];
        for (overflow, expected) in cases {
            let options = LaneOptions {
                capacity: 2,
                overflow,
                ..LaneOptions::default()
            };
            let (_orb, lanes) = lanes(&[options]);
            let (consumer, id) = connect(&lanes, 7, &Filter::Everything);
            lanes.push(&Event::new(1, 20, ()));
            // The thread has the first one, and two wait.
            consumer.begun.wait_while(0, Deadline::after(LONG));
            for event_type in 21..26 {
                lanes.push(&Event::new(1, event_type, ()));
            }
            let counts = lanes.counts(id).unwrap();
            assert_eq!((counts.lost, counts.queued), (3, 2));
            consumer.open.set(1);
            assert!(lanes.flush(Deadline::after(LONG)));
            assert_eq!(*consumer.types.lock(), expected);
            let counts = lanes.counts(id).unwrap();
            assert_eq!((counts.events, counts.lost, counts.queued), (3, 3, 0));
            // A later consumer has lost nothing.
            let (_, id) = connect(&lanes, 0, &Filter::Everything);
            assert_eq!(lanes.counts(id).unwrap().lost, 0);
        }
    }

    #[test]
    fn a_supplier_waits_for_room_until_its_limit() {
        let options = LaneOptions {
            capacity: 1,
            overflow: OutboxOverflow::Block(LONG),
            ..LaneOptions::default()
        };
        let (_orb, lanes) = lanes(&[options]);
        let (consumer, id) = connect(&lanes, 0, &Filter::Everything);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for event_type in 20..30 {
                    lanes.push(&Event::new(1, event_type, ()));
                }
            });
            consumer.begun.wait_while(0, Deadline::after(LONG));
            consumer.open.set(1);
        });
        assert!(lanes.flush(Deadline::after(LONG)));
        assert_eq!(*consumer.types.lock(), (20..30).collect::<Vec<_>>());
        lanes.disconnect(id);
        assert_eq!(lanes.counts(id), None);
        lanes.push(&Event::new(1, 30, ()));
        assert_eq!(consumer.types.lock().len(), 10);
    }

    #[test]
    fn its_thread_fires_the_timers_of_a_lane() {
        let (_orb, lanes) = lanes(&[LaneOptions::default()]);
        let interval = Filter::each(Duration::from_millis(1));
        let (consumer, _) = connect(&lanes, 0, &interval);
        consumer.open.set(1);
        assert_eq!(consumer.begun.wait_while(0, Deadline::after(LONG)), 1);
        lanes.stop();
        assert!(
            lanes.flush(Deadline::after(LONG)),
            "a lane that has ended drops events"
        );
    }
}
