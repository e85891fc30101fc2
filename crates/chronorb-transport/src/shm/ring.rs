//! One direction of a connection: a ring of octets in shared memory, with one producer and one
//! consumer, neither of which trusts the other.
//!
//! Each side advances one word that it alone writes: the number of octets it has produced, or
//! consumed. The lowest two bits of that word tell how the *other* side waits for it to advance
//! ([`Wait`]). The side that advances the word exchanges it, and thereby clears the wake-up request
//! in the same instruction. The side that wants to sleep sets its request by a compare-exchange,
//! which fails if the word has advanced since it was read. So no wake-up is lost, and a message
//! costs its producer one atomic instruction.
//!
//! Each value of the other side is read once, and checked; known values are kept in the process's
//! own memory. The octets are copied out before they are interpreted.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::sync::atomic::AtomicU32 as OwnWord;

use super::memory::Octets;
use super::sync::{AtomicU32, Ordering};

/// The words of a direction that both sides share, besides the octets.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Words {
    /// The position of the producer, and how the consumer waits.
    pub(super) tail: Line<AtomicU32>,
    /// Whether the producer will put in nothing more, beside the word that is looked at anyway.
    pub(super) ended: AtomicU32,
    /// The position of the consumer, and how the producer waits.
    pub(super) head: Line<AtomicU32>,
}

/// On a line of its own; two of them, since processors fetch lines in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

/// A direction, as both sides see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<'m> {
    pub(super) words: &'m Words,
    pub(super) octets: Octets<'m>,
}

/// The way in which a side waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(super) enum Wait {
    /// The side does not wait, or polls.
    Not = 0,
    /// Waiting at the word: a futex.
    Word = 1,
    /// Waiting for an octet on the socket.
    Doorbell = 2,
    /// The side has ended.
    Gone = 3,
}

/// The other side broke the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Rubbish;

/// The outcome of requesting a wake-up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WakeRequest {
    /// The request is set: sleep as long as the word has this value.
    Until(u32),
    /// There is no need to wait.
    Needless,
    /// This side has ended.
    Gone,
}

/// The side that puts in.
#[derive(Debug)]
pub(super) struct Producer {
    /// The producer's position.
    tail: Own,
    /// The last known position of the consumer.
    head: Own,
    /// The producer's way of waiting, as far as it knows.
    wait: Own,
}

/// The side that takes out.
#[derive(Debug)]
pub(super) struct Consumer {
    /// The consumer's position.
    head: Own,
    /// Up to where it has let the producer know.
    released: Own,
    /// The last known position of the producer.
    tail: Own,
    /// The consumer's way of waiting, as far as it knows.
    wait: Own,
}

impl Words {
    /// Words of zeroes become those of an empty ring, whose consumer waits for the doorbell.
    pub(super) fn begin(&self) {
        self.tail.0.store(Wait::Doorbell as u32, Ordering::Relaxed);
        self.head.0.store(Wait::Not as u32, Ordering::Relaxed);
        self.ended.store(0, Ordering::Relaxed);
    }

    /// Whether the producer has ended.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0
    }

    /// Ends the producer. Returns how the consumer waited; it must be woken.
    pub(super) fn end(&self) -> Wait {
        self.ended.store(1, Ordering::Release);
        excuse(&self.tail.0)
    }

    /// Ends the consumer. Returns how the producer waited; it must be woken.
    pub(super) fn abandon(&self) -> Wait {
        excuse(&self.head.0)
    }
}

/// Marks the side that waits at a word as one that has ended; returns how it waited.
pub(super) fn leave(word: &AtomicU32) -> Wait {
    wait_of(word.fetch_or(Wait::Gone as u32, Ordering::AcqRel))
}

/// Takes the wish to be woken away; returns it.
fn excuse(word: &AtomicU32) -> Wait {
    wait_of(word.fetch_and(!WAIT, Ordering::AcqRel))
}

/// Clears the wake-up request of a thread that sleeps at a word; returns whether there was one.
pub(super) fn rouse(word: &AtomicU32) -> bool {
    let present = word.load(Ordering::Relaxed);
    // A thread that changes it at the same time wakes the sleeper, or is the sleeper.
    wait_of(present) == Wait::Word
        && word
            .compare_exchange(
                present,
                present & !WAIT,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
}

impl Producer {
    /// Makes the producer of an unused ring.
    pub(super) fn new() -> Self {
        Self {
            tail: Own::new(0),
            head: Own::new(0),
            wait: Own::new(Wait::Not as u32),
        }
    }

    /// Writes as much of two consecutive pieces as fits. Returns the number of octets, and how the
    /// consumer waits; it must be woken.
    #[inline]
    pub(super) fn put(
        &self,
        ring: Ring<'_>,
        first: &[u8],
        second: &[u8],
    ) -> Result<(usize, Wait), Rubbish> {
        let tail = self.tail.get();
        let mut free = ring.octets.len() - distance(self.head.get(), tail);
        if free < first.len() + second.len() {
            self.look(ring)?;
            free = ring.octets.len() - distance(self.head.get(), tail);
        }
        let first = &first[..first.len().min(free)];
        let second = &second[..second.len().min(free - first.len())];
        let n = first.len() + second.len();
        if n == 0 {
            return Ok((0, Wait::Not));
        }
        ring.octets.write(tail, first);
        let between = ahead(tail, first.len());
        if !second.is_empty() {
            ring.octets.write(between, second);
        }
        let new = ahead(between, second.len());
        let before = ring
            .words
            .tail
            .0
            .swap(word(new, Wait::Not), Ordering::AcqRel);
        self.tail.set(new);
        if position_of(before) == tail {
            Ok((n, wait_of(before)))
        } else {
            Err(Rubbish)
        }
    }

    /// Looks where the consumer is. Returns whether he has moved on, and took away a wish for
    /// the doorbell then.
    fn look(&self, ring: Ring<'_>) -> Result<bool, Rubbish> {
        let found = ring.words.head.0.load(Ordering::Acquire);
        self.see(found)
    }

    fn see(&self, found: u32) -> Result<bool, Rubbish> {
        let (head, tail) = (self.head.get(), self.tail.get());
        let new = position_of(found);
        // Between where he was and where this side is.
        if distance(new, tail) > distance(head, tail) {
            return Err(Rubbish);
        }
        let moved = new != head;
        if moved {
            self.head.set(new);
            self.wait.set(Wait::Not as u32);
        }
        Ok(moved)
    }

    /// Asks to be woken when there is room again; the ring must have been found full.
    pub(super) fn arm(&self, ring: Ring<'_>, wait: Wait) -> Result<WakeRequest, Rubbish> {
        if distance(self.head.get(), self.tail.get()) < ring.octets.len() {
            return Ok(WakeRequest::Needless);
        }
        let found = exchange_wait(&ring.words.head.0, self.head.get(), &self.wait, wait)?;
        match found {
            WordState::Still(armed) => Ok(armed),
            WordState::Moved(found) => self.see(found).map(|_| WakeRequest::Needless),
        }
    }
}

impl Producer {
    /// Whether it waits like this, as far as it knows.
    pub(super) fn waits(&self, wait: Wait) -> bool {
        self.wait.get() == wait as u32
    }
}

impl Consumer {
    /// Makes the consumer of an unused ring.
    pub(super) fn new() -> Self {
        Self {
            head: Own::new(0),
            released: Own::new(0),
            tail: Own::new(0),
            wait: Own::new(Wait::Doorbell as u32),
        }
    }

    /// Takes out as much as is there and has room. Returns how much that is, perhaps nothing.
    #[inline]
    pub(super) fn take(&self, ring: Ring<'_>, room: &mut [u8]) -> Result<usize, Rubbish> {
        let head = self.head.get();
        let mut there = distance(head, self.tail.get());
        if there < room.len() {
            self.see(ring, ring.words.tail.0.load(Ordering::Acquire))?;
            there = distance(head, self.tail.get());
        }
        let n = there.min(room.len());
        if n > 0 {
            ring.octets.read(head, &mut room[..n]);
            self.head.set(ahead(head, n));
        }
        Ok(n)
    }

    #[inline]
    fn see(&self, ring: Ring<'_>, found: u32) -> Result<bool, Rubbish> {
        let (head, tail) = (self.head.get(), self.tail.get());
        let new = position_of(found);
        let there = distance(head, new);
        if there < distance(head, tail) || there > ring.octets.len() {
            return Err(Rubbish);
        }
        let moved = new != tail;
        if moved {
            self.tail.set(new);
            self.wait.set(Wait::Not as u32);
        }
        Ok(moved)
    }

    /// Whether so much was taken out that the producer should know of it soon.
    #[inline]
    pub(super) fn owes_much(&self, ring: Ring<'_>) -> bool {
        distance(self.released.get(), self.head.get()) >= ring.octets.len() / 2
    }

    /// Publishes the consumer's position. Returns how the producer waits; it must be woken.
    ///
    /// The position is published when the ring is empty, and after many octets. So it does not
    /// delay a message, and at least half of the ring is always free to a producer whose octets
    /// were consumed.
    #[inline]
    pub(super) fn release(&self, ring: Ring<'_>) -> Result<Wait, Rubbish> {
        let (released, head) = (self.released.get(), self.head.get());
        if released == head {
            return Ok(Wait::Not);
        }
        let before = ring
            .words
            .head
            .0
            .swap(word(head, Wait::Not), Ordering::AcqRel);
        self.released.set(head);
        if position_of(before) == released {
            Ok(wait_of(before))
        } else {
            Err(Rubbish)
        }
    }

    /// Asks to be woken when there is something; the ring must have been found empty.
    pub(super) fn arm(&self, ring: Ring<'_>, wait: Wait) -> Result<WakeRequest, Rubbish> {
        if self.tail.get() != self.head.get() {
            return Ok(WakeRequest::Needless);
        }
        match exchange_wait(&ring.words.tail.0, self.tail.get(), &self.wait, wait)? {
            WordState::Still(armed) => Ok(armed),
            WordState::Moved(found) => self.see(ring, found).map(|_| WakeRequest::Needless),
        }
    }

    /// Whether it waits like this, as far as it knows.
    #[inline]
    pub(super) fn waits(&self, wait: Wait) -> bool {
        self.wait.get() == wait as u32
    }

    /// Whether something is there; any thread may ask.
    pub(super) fn has_something(&self, ring: Ring<'_>) -> bool {
        position_of(ring.words.tail.0.load(Ordering::Acquire)) != self.head.get()
    }
}

/// The state of a word before a request was set.
enum WordState {
    Still(WakeRequest),
    /// The word, which was moved on.
    Moved(u32),
}

/// Sets the wake-up request in a word, as long as that is at `position`. `own` is the last known
/// request.
fn exchange_wait(
    at: &AtomicU32,
    position: u32,
    own: &Own,
    wait: Wait,
) -> Result<WordState, Rubbish> {
    let wanted = word(position, wait);
    let mut expected = position << WAIT_BITS | own.get();
    // Only this side changes its request, except for a thread that calls its thread away or ends
    // it, which is rare.
    for _ in 0..MOST_CHANGES {
        let exchanged = at.compare_exchange(expected, wanted, Ordering::AcqRel, Ordering::Acquire);
        match exchanged {
            Ok(_) => {
                own.set(wait as u32);
                return Ok(WordState::Still(WakeRequest::Until(wanted)));
            }
            Err(found) if position_of(found) != position => return Ok(WordState::Moved(found)),
            Err(found) if wait_of(found) == Wait::Gone => {
                return Ok(WordState::Still(WakeRequest::Gone));
            }
            Err(found) => expected = found,
        }
    }
    Err(Rubbish)
}

/// A number of one side, in its own memory. One thread at a time changes it.
#[derive(Debug)]
struct Own(OwnWord);

impl Own {
    fn new(value: u32) -> Self {
        Self(OwnWord::new(value))
    }

    #[inline]
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

#[inline]
fn word(position: u32, wait: Wait) -> u32 {
    position << WAIT_BITS | wait as u32
}

#[inline]
fn position_of(word: u32) -> u32 {
    word >> WAIT_BITS
}

#[inline]
fn wait_of(word: u32) -> Wait {
    match word & WAIT {
        0 => Wait::Not,
        1 => Wait::Word,
        2 => Wait::Doorbell,
        _ => Wait::Gone,
    }
}

/// The position that lies `n` octets after another one.
#[inline]
fn ahead(position: u32, n: usize) -> u32 {
    // Less than the ring has octets.
    position.wrapping_add(n as u32) & POSITIONS
}

/// Returns the number of octets between two positions.
#[inline]
fn distance(from: u32, to: u32) -> usize {
    (to.wrapping_sub(from) & POSITIONS) as usize
}

/// The number of bits of a word that tell how a side waits.
const WAIT_BITS: u32 = 2;
const WAIT: u32 = (1 << WAIT_BITS) - 1;
/// Positions are counted modulo this and one, which every size of a ring divides.
const POSITIONS: u32 = u32::MAX >> WAIT_BITS;
/// The number of concurrent changes of a request that are tolerated while it is set.
const MOST_CHANGES: usize = 8;
