//! The ring of shared memory and the ways of sleeping at it, by the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p chronorb-transport --release --test loom`.
#![cfg(loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use ring::{Consumer, Line, Producer, Ring, Wait, WakeRequest, Words, rouse};

#[path = "loom/fan_out.rs"]
mod fan_out;

#[allow(dead_code, reason = "not all of it is modelled")]
#[path = "../src/shm/ring.rs"]
mod ring;

/// The atomics of what is shared.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
}

/// The model's substitute for the mapped memory.
mod memory {
    use loom::cell::UnsafeCell;

    /// Octets that loom sees when they are read and written.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Octets<'m> {
        pub(super) cells: &'m [UnsafeCell<u8>],
    }

    impl Octets<'_> {
        pub(super) fn len(self) -> usize {
            self.cells.len()
        }

        fn cell(&self, position: u32, index: usize) -> &UnsafeCell<u8> {
            &self.cells[(position as usize + index) % self.cells.len()]
        }

        #[allow(unsafe_code, reason = "loom asks for it")]
        pub(super) fn read(self, position: u32, room: &mut [u8]) {
            for (index, octet) in room.iter_mut().enumerate() {
                // SAFETY: loom tells where another thread writes meanwhile.
                *octet = self.cell(position, index).with(|at| unsafe { *at });
            }
        }

        #[allow(unsafe_code, reason = "loom asks for it")]
        pub(super) fn write(self, position: u32, octets: &[u8]) {
            for (index, octet) in octets.iter().enumerate() {
                // SAFETY: as in `read`.
                self.cell(position, index)
                    .with_mut(|at| unsafe { *at = *octet });
            }
        }
    }
}

/// The state that two processes share, and the kernel's part.
struct SharedState {
    words: Words,
    cells: [UnsafeCell<u8>; RING],
    kernel: Mutex<Kernel>,
    change: Condvar,
}

#[derive(Default)]
struct Kernel {
    /// Octets on the sockets of the consumer and the producer.
    bells: [u32; 2],
}

const CONSUMER: usize = 0;
const PRODUCER: usize = 1;
const RING: usize = 2;

impl SharedState {
    fn new() -> Arc<Self> {
        let words = Words {
            tail: Line(AtomicU32::new(0)),
            ended: AtomicU32::new(0),
            head: Line(AtomicU32::new(0)),
        };
        words.begin();
        Arc::new(Self {
            words,
            cells: [UnsafeCell::new(0), UnsafeCell::new(0)],
            kernel: Mutex::new(Kernel::default()),
            change: Condvar::new(),
        })
    }

    fn ring(&self) -> Ring<'_> {
        Ring {
            words: &self.words,
            octets: memory::Octets { cells: &self.cells },
        }
    }

    /// As the kernel: the value is compared under the lock that wakers take.
    fn sleep(&self, at: &AtomicU32, value: u32) {
        let mut kernel = self.kernel.lock().unwrap();
        while at.load(Ordering::Relaxed) == value {
            kernel = self.change.wait(kernel).unwrap();
        }
    }

    fn wake(&self, whom: usize, wait: Wait) {
        match wait {
            Wait::Word => {
                let _kernel = self.kernel.lock().unwrap();
                self.change.notify_all();
            }
            Wait::Doorbell => {
                self.kernel.lock().unwrap().bells[whom] += 1;
                self.change.notify_all();
            }
            Wait::Not | Wait::Gone => {}
        }
    }

    /// An edge-triggered wait on the socket, which tells of each octet once.
    fn await_bell(&self, whom: usize, heard: &mut u32) {
        let mut kernel = self.kernel.lock().unwrap();
        while kernel.bells[whom] == *heard {
            kernel = self.change.wait(kernel).unwrap();
        }
        *heard = kernel.bells[whom];
    }

    fn wait(&self, whom: usize, at: &AtomicU32, armed: WakeRequest, wait: Wait, heard: &mut u32) {
        if let WakeRequest::Until(value) = armed {
            match wait {
                Wait::Word => self.sleep(at, value),
                _ => self.await_bell(whom, heard),
            }
        }
    }
}

/// Puts in these octets, and waits so for room.
fn produce(shared: &SharedState, octets: &[u8], wait: Wait) {
    let (producer, ring) = (Producer::new(), shared.ring());
    let (mut sent, mut heard) = (0, 0);
    while sent < octets.len() {
        let (n, waiting) = producer.put(ring, &octets[sent..], &[]).unwrap();
        shared.wake(CONSUMER, waiting);
        sent += n;
        if sent < octets.len() {
            let armed = producer.arm(ring, wait).unwrap();
            shared.wait(PRODUCER, &ring.words.head.0, armed, wait, &mut heard);
        }
    }
}

/// Takes out so many octets, and waits so for them.
fn consume(shared: &SharedState, len: usize, wait: Wait) -> Vec<u8> {
    let (consumer, ring) = (Consumer::new(), shared.ring());
    let (mut received, mut heard) = (Vec::new(), 0);
    while received.len() < len {
        let mut room = [0; RING];
        let n = consumer.take(ring, &mut room).unwrap();
        received.extend_from_slice(&room[..n]);
        if consumer.owes_much(ring) || n == 0 {
            shared.wake(PRODUCER, consumer.release(ring).unwrap());
        }
        if n == 0 {
            let armed = consumer.arm(ring, wait).unwrap();
            shared.wait(CONSUMER, &ring.words.tail.0, armed, wait, &mut heard);
        }
    }
    received
}

fn all_arrives(consuming: Wait, producing: Wait) {
    // Bounded, because switches between instructions that no other thread sees teach nothing.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let shared = SharedState::new();
        let octets = [1, 2, 3, 4, 5];
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || produce(&shared, &octets, producing))
        };
        assert_eq!(consume(&shared, octets.len(), consuming), octets);
        other.join().unwrap();
    });
}

#[test]
fn who_sleeps_at_the_word_is_woken() {
    all_arrives(Wait::Word, Wait::Word);
}

#[test]
fn who_waits_for_the_doorbell_hears_it() {
    all_arrives(Wait::Doorbell, Wait::Doorbell);
}

#[test]
fn the_two_may_wait_in_different_ways() {
    all_arrives(Wait::Doorbell, Wait::Word);
    all_arrives(Wait::Word, Wait::Doorbell);
}

#[test]
fn the_end_wakes_who_sleeps() {
    loom::model(|| {
        let shared = SharedState::new();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let ring = shared.ring();
                let (_, wait) = Producer::new().put(ring, &[1], &[]).unwrap();
                shared.wake(CONSUMER, wait);
                shared.wake(CONSUMER, ring.words.end());
            })
        };
        let (consumer, ring) = (Consumer::new(), shared.ring());
        let mut received = 0;
        loop {
            received += consumer.take(ring, &mut [0]).unwrap();
            if let WakeRequest::Until(value) = consumer.arm(ring, Wait::Word).unwrap() {
                if ring.words.has_ended() {
                    received += consumer.take(ring, &mut [0]).unwrap();
                    break;
                }
                shared.sleep(&ring.words.tail.0, value);
            }
        }
        assert_eq!(received, 1, "the end comes after what was put in");
        other.join().unwrap();
    });
}

#[test]
fn who_is_called_away_does_not_sleep_on() {
    loom::model(|| {
        let shared = SharedState::new();
        let interrupted = Arc::new(AtomicBool::new(false));
        let other = {
            let (shared, interrupted) = (Arc::clone(&shared), Arc::clone(&interrupted));
            thread::spawn(move || {
                interrupted.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if rouse(&shared.words.tail.0) {
                    shared.wake(CONSUMER, Wait::Word);
                }
            })
        };
        let (consumer, ring) = (Consumer::new(), shared.ring());
        loop {
            let armed = consumer.arm(ring, Wait::Word).unwrap();
            fence(Ordering::SeqCst);
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
            if let WakeRequest::Until(value) = armed {
                shared.sleep(&ring.words.tail.0, value);
            }
        }
        other.join().unwrap();
    });
}
