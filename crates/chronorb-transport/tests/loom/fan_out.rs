//! The ring of one publisher and many readers.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use ring::{Cursor, FanOutRing, FanOutWords, Next, Slot, Writer};

#[allow(dead_code, reason = "not all of it is modelled")]
#[path = "../../src/shm/fan_out/ring.rs"]
mod ring;

/// The atomics of what is shared.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

/// The model's substitute for the mapped memory.
mod memory {
    use super::{AtomicU8, Ordering};

    /// Octets that are read and written by relaxed atomics, as those of the mapping.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Octets<'m> {
        pub(super) cells: &'m [AtomicU8],
    }

    impl Octets<'_> {
        pub(super) fn len(self) -> usize {
            self.cells.len()
        }

        pub(super) fn read(self, position: u32, room: &mut [u8]) {
            let cells = self.cells[position as usize..].iter();
            for (octet, cell) in room.iter_mut().zip(cells) {
                *octet = cell.load(Ordering::Relaxed);
            }
        }

        pub(super) fn write(self, position: u32, octets: &[u8]) {
            let cells = self.cells[position as usize..].iter();
            for (octet, cell) in octets.iter().zip(cells) {
                cell.store(*octet, Ordering::Relaxed);
            }
        }
    }
}

/// The state that processes share, and the kernel's part.
struct SharedState {
    words: FanOutWords,
    slots: [Slot; SLOTS],
    cells: [AtomicU8; SLOTS * OCTETS],
    note: AtomicU32,
    /// The values of the threads that sleep, by their numbers.
    kernel: Mutex<[Option<u32>; 2]>,
    change: Condvar,
}

const SLOTS: usize = 2;
const OCTETS: usize = 2;

impl SharedState {
    fn new() -> Arc<Self> {
        let slot = || Slot {
            sequence: AtomicU64::new(0),
            len: AtomicU32::new(0),
            unused: AtomicU32::new(0),
        };
        Arc::new(Self {
            words: FanOutWords {
                tail: AtomicU64::new(0),
                bell: AtomicU32::new(0),
                ended: AtomicU32::new(0),
            },
            slots: [slot(), slot()],
            cells: std::array::from_fn(|_| AtomicU8::new(0)),
            note: AtomicU32::new(0),
            kernel: Mutex::new([None; 2]),
            change: Condvar::new(),
        })
    }

    fn ring(&self) -> FanOutRing<'_> {
        FanOutRing {
            words: &self.words,
            slots: &self.slots,
            octets: memory::Octets { cells: &self.cells },
        }
    }

    fn publish(&self, writer: &mut Writer, number: u8) {
        if writer.publish(self.ring(), &self.note, &[&[number, number]]) {
            self.wake_others(1);
        }
    }

    fn end(&self, writer: &mut Writer) {
        if writer.end(self.ring(), &self.note) {
            self.wake_others(1);
        }
    }

    /// As `word::wake_others`. The order of sleepers is that of their numbers, as if the first one
    /// had the higher priority.
    fn wake_others(&self, most: usize) {
        let present = self.words.bell.load(Ordering::Relaxed);
        let mut sleepers = self.kernel.lock().unwrap();
        let others = sleepers.iter_mut();
        let others = others.filter(|of| of.is_some_and(|value| value != present));
        others.take(most).for_each(|of| *of = None);
        self.change.notify_all();
    }

    /// As `word::sleep_in_chain`: the value is compared under the lock that wakers take.
    fn sleep(&self, number: usize, value: u32) {
        let mut sleepers = self.kernel.lock().unwrap();
        if self.words.bell.load(Ordering::Relaxed) != value {
            return;
        }
        sleepers[number] = Some(value);
        while sleepers[number].is_some() {
            sleepers = self.change.wait(sleepers).unwrap();
        }
        drop(sleepers);
        self.wake_others(2);
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(check);
}

/// Takes whatever is there. Returns the messages, and the number of the lost ones.
fn drain(shared: &SharedState, cursor: &mut Cursor) -> (Vec<u8>, u64) {
    let (mut messages, mut lost, mut room) = (Vec::new(), 0, [0; OCTETS]);
    while let Some(next) = cursor.take(shared.ring(), &mut room).unwrap() {
        match next {
            Next::Message(octets) => {
                assert_eq!(octets, OCTETS);
                assert_eq!(room[0], room[1], "a torn message");
                messages.push(room[0]);
            }
            Next::Lost(number) => lost += number,
        }
    }
    (messages, lost)
}

#[test]
fn no_message_is_torn_and_each_is_taken_or_told_lost() {
    model(|| {
        let shared = SharedState::new();
        let mut cursor = Cursor::at_end(shared.ring());
        let publisher = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut writer = Writer::default();
                for number in 1..=3 {
                    shared.publish(&mut writer, number);
                }
            })
        };
        let (mut messages, mut lost) = drain(&shared, &mut cursor);
        publisher.join().unwrap();
        let rest = drain(&shared, &mut cursor);
        messages.extend(rest.0);
        lost += rest.1;
        assert!(messages.is_sorted());
        assert_eq!(messages.len() as u64 + lost, 3);
    });
}

/// Waits until so many messages were taken or lost.
fn take(shared: &SharedState, cursor: &mut Cursor, number: usize, messages: u64) {
    let mut taken = 0;
    while taken < messages {
        let (some, lost) = drain(shared, cursor);
        taken += some.len() as u64 + lost;
        if taken < messages
            && let Some(seen) = cursor.arm(shared.ring(), &shared.note)
        {
            shared.sleep(number, seen);
        }
    }
}

#[test]
fn readers_that_sleep_are_woken() {
    model(|| {
        let shared = SharedState::new();
        let readers = [0, 1].map(|number| {
            let shared = shared.clone();
            let mut cursor = Cursor::at_end(shared.ring());
            thread::spawn(move || take(&shared, &mut cursor, number, 1))
        });
        shared.publish(&mut Writer::default(), 7);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

/// Also by a message that is published while a thread is about to sleep after the one before.
#[test]
fn a_reader_that_sleeps_is_woken_by_each_message() {
    model(|| {
        let shared = SharedState::new();
        let reader = {
            let shared = shared.clone();
            let mut cursor = Cursor::at_end(shared.ring());
            thread::spawn(move || take(&shared, &mut cursor, 0, 2))
        };
        let mut writer = Writer::default();
        shared.publish(&mut writer, 7);
        shared.publish(&mut writer, 8);
        reader.join().unwrap();
    });
}

#[test]
fn a_reader_that_sleeps_notices_the_end() {
    model(|| {
        let shared = SharedState::new();
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let cursor = Cursor::at_end(shared.ring());
                while !shared.ring().has_ended() {
                    if let Some(seen) = cursor.arm(shared.ring(), &shared.note) {
                        shared.sleep(0, seen);
                    }
                }
            })
        };
        shared.end(&mut Writer::default());
        reader.join().unwrap();
    });
}
