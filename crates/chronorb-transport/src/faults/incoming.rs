//! Incoming octets, held until they are due.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use chronorb_rt::Monotonic;

use super::fate::Fates;
use crate::IoError;

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct HeldInput {
    fates: Fates,
    held: VecDeque<HeldPortion>,
    held_octets: usize,
    /// The error that follows the octets.
    end: Option<IoError>,
    /// The buffer to read into.
    room: Vec<u8>,
}

#[derive(Debug)]
struct HeldPortion {
    due: Monotonic,
    octets: Vec<u8>,
    taken: usize,
}

impl HeldInput {
    pub(super) fn new(fates: Fates) -> Self {
        Self {
            fates,
            held: VecDeque::new(),
            held_octets: 0,
            end: None,
            room: vec![0; LARGEST_READ],
        }
    }

    /// Takes due octets; `None` if there are none yet.
    pub(super) fn take(&mut self, room: &mut [u8]) -> Option<Result<usize, IoError>> {
        let Some(first) = self.held.front() else {
            return self.end.map(Err);
        };
        if first.due > Monotonic::now() {
            return None;
        }
        let left = first.octets.len() - first.taken;
        let moved = self.fates.cut(left.min(room.len()));
        let first = &mut self.held[0];
        room[..moved].copy_from_slice(&first.octets[first.taken..first.taken + moved]);
        first.taken += moved;
        if first.taken == first.octets.len() {
            self.held_octets -= first.octets.len();
            self.held.pop_front();
        }
        Some(Ok(moved))
    }

    /// When the next of it is due.
    pub(super) fn next_due(&self) -> Option<Monotonic> {
        let first = self.held.front().map(|held| held.due);
        first.or_else(|| self.end.map(|_| Monotonic::from_nanos(1)))
    }

    /// Whether there is anything to take, now or later.
    pub(super) fn holds(&self) -> bool {
        self.next_due().is_some()
    }

    /// Whether reading must pause.
    pub(super) fn is_full(&self) -> bool {
        self.end.is_some() || self.held_octets >= MOST_HELD
    }

    /// Reads by `receive`, and draws the faults of the octets. Returns whether the connection must
    /// end.
    pub(super) fn read(
        &mut self,
        receive: impl Fn(&mut [u8]) -> Result<usize, IoError>,
    ) -> Result<bool, IoError> {
        let mut len = match receive(&mut self.room) {
            Ok(len) => len,
            Err(IoError::WouldBlock) => return Err(IoError::WouldBlock),
            Err(IoError::TimedOut) => return Err(IoError::TimedOut),
            Err(end) => {
                self.end = Some(end);
                return Ok(false);
            }
        };
        if !self.fates.carries_messages {
            return Ok(self.admit_from_room(0..len));
        }
        // There may be several messages, and the rest of one that is longer than the room follows
        // at once.
        let mut at = 0;
        let mut ends = false;
        while at < len {
            let whole = (self.fates.messages.len)(&self.room[at..len]);
            let end = at + whole.map_or(len - at, |whole| whole.max(1));
            if end <= len {
                ends |= self.admit_from_room(at..end);
                at = end;
                continue;
            }
            if end - at > self.fates.messages.max {
                break;
            }
            self.room.resize(self.room.len().max(end), 0);
            match receive(&mut self.room[len..end]) {
                Ok(more) => len += more,
                Err(_) => break,
            }
        }
        Ok(ends)
    }

    fn admit_from_room(&mut self, portion: Range<usize>) -> bool {
        let room = std::mem::take(&mut self.room);
        let ends = self.admit(&room[portion]);
        self.room = room;
        ends
    }

    fn admit(&mut self, portion: &[u8]) -> bool {
        let fate = self.fates.of(portion);
        for _ in 0..fate.times {
            self.hold(&fate.octets, fate.waits);
        }
        if fate.ends {
            self.end = Some(IoError::Closed);
        }
        fate.ends
    }

    fn hold(&mut self, octets: &[u8], waits: bool) {
        let is_whole = || (self.fates.messages.len)(octets) == Some(octets.len());
        if octets.is_empty() || self.fates.carries_messages && !is_whole() {
            // A transport of messages never delivers other octets.
            return;
        }
        let mut due = self.fates.due().unwrap_or(Monotonic::from_nanos(0));
        let mut at = self.held.len();
        if self.fates.carries_messages {
            if waits {
                due = due.max(Monotonic::now()) + OVERTAKEN_WITHIN;
            }
            at = self.held.partition_point(|held| held.due <= due);
        } else if let Some(last) = self.held.back() {
            // A stream keeps its order.
            due = due.max(last.due);
        }
        self.held_octets += octets.len();
        let octets = octets.to_vec();
        let taken = 0;
        self.held.insert(at, HeldPortion { due, octets, taken });
    }
}

/// The time that a message waits for another one to overtake it.
pub(super) const OVERTAKEN_WITHIN: Duration = Duration::from_millis(5);

const LARGEST_READ: usize = 64 * 1024;
/// The greatest number of octets to hold. More are left in the transport, which then blocks the
/// peer, or loses messages.
const MOST_HELD: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::super::dice::Dice;
    use super::super::plan::{Direction, FaultPlans};
    use super::*;
    use crate::{Carriage, Messages};

    /// Messages of three octets that begin with their length.
    const OF_THREE: Messages = Messages {
        len: |octets| (octets.first() == Some(&3)).then_some(3),
        max: 3,
    };

    const DATAGRAMS: Carriage = Carriage::Messages {
        largest: 1000,
        many_peers: false,
    };

    fn plan(faults: &str) -> Direction {
        let plans = FaultPlans::parse(faults).expect("a plan");
        plans.of("any").expect("that of all").incoming.clone()
    }

    /// Returns the messages 0, 1, … in the order of their delivery.
    fn come(faults: &str, messages: u8) -> Vec<u8> {
        let dice = Dice::new(7, 0, 0);
        let fates = Fates::new(&plan(faults), dice, OF_THREE, DATAGRAMS);
        let mut incoming = HeldInput::new(fates);
        let mut come = Vec::new();
        for number in 0..messages {
            let received = |room: &mut [u8]| {
                room[..3].copy_from_slice(&[3, number, 0]);
                Ok(3)
            };
            incoming.read(received).expect("it comes");
            while let Some(Ok(taken)) = incoming.take(&mut [0; 2]) {
                assert_eq!(taken, 2, "what does not fit follows");
                let mut rest = [0; 2];
                assert_eq!(incoming.take(&mut rest), Some(Ok(1)));
                come.push(number);
            }
        }
        while let Some(due) = incoming.next_due() {
            chronorb_rt::sleep_until(due);
            let mut room = [0; 3];
            assert_eq!(incoming.take(&mut room), Some(Ok(3)));
            come.push(room[1]);
        }
        assert_eq!(incoming.held_octets, 0);
        come
    }

    #[test]
    fn messages_are_lost_and_doubled() {
        assert_eq!(come("seed=1", 5), [0, 1, 2, 3, 4]);
        assert_eq!(come("loss=1", 5), []);
        assert_eq!(come("duplicate=1", 2), [0, 0, 1, 1]);
        let some = come("loss=0.5", 100);
        assert!((30..70).contains(&some.len()), "{}", some.len());
    }

    #[test]
    fn messages_are_overtaken_and_come_at_last() {
        let mut all = come("reorder=0.3", 40);
        assert!(!all.is_sorted(), "{all:?}");
        all.sort_unstable();
        assert_eq!(all, (0..40).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_whole_message_any_more_does_not_come() {
        assert_eq!(come("truncate=1", 5), []);
        assert_eq!(come("insert=1", 5), []);
    }
}
