//! A clock in virtual time, and consumers that note what they get.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_channel::{Channel, Clock, Consumer, Event, Lane};
use chronorb_rt::PiMutex;

/// The longest wait of a test that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A clock that a test sets, in milliseconds.
#[derive(Clone, Default)]
pub(crate) struct TestClock(Arc<AtomicU64>);

impl TestClock {
    pub(crate) fn set(&self, milliseconds: u64) {
        self.0.store(milliseconds * 1_000_000, Ordering::SeqCst);
    }

    pub(crate) fn advance(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A note of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// The sources and types of a set.
    Set(Vec<(i32, i32)>),
    Lost(u64),
    Disconnected,
}

/// A consumer that notes what it gets; clones share the notes.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<PiMutex<Vec<Note>>>);

impl Notes {
    /// The notes since the last call.
    pub(crate) fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.0.lock())
    }

    /// The types of all events since the last call, and that there was nothing else.
    pub(crate) fn types(&self) -> Vec<i32> {
        let type_of = |note| match note {
            Note::Set(set) => set.into_iter().map(|(_, event_type)| event_type),
            other => panic!("{other:?} among sets"),
        };
        self.take().into_iter().flat_map(type_of).collect()
    }
}

impl<B: Send + Sync + 'static> Consumer<B> for Notes {
    fn push(&self, set: &[Event<B>]) {
        self.0.lock().push(Note::Set(headers(set)));
    }

    fn lost(&self, number: u64) {
        self.0.lock().push(Note::Lost(number));
    }

    fn disconnected(&self) {
        self.0.lock().push(Note::Disconnected);
    }
}

pub(crate) fn headers<B>(set: &[Event<B>]) -> Vec<(i32, i32)> {
    let header = |event: &Event<B>| (event.header.source, event.header.event_type);
    set.iter().map(header).collect()
}

/// A set of one event.
pub(crate) fn one(source: i32, event_type: i32) -> Note {
    Note::Set(vec![(source, event_type)])
}

/// A channel with this number of lanes, without threads.
pub(crate) fn stepped(lanes: usize) -> (Channel<u64>, TestClock) {
    let clock = TestClock::default();
    let mut builder = Channel::builder();
    for lane in 0..lanes {
        builder = builder.lane(Lane::new(format!("lane {lane}")));
    }
    let channel = builder.without_threads(Arc::new(clock.clone()));
    (channel, clock)
}
