//! The fate of one portion of octets, and the end of a direction.

use chronorb_rt::Monotonic;

use super::dice::Dice;
use super::plan::Direction;
use crate::{Carriage, Messages};

/// The plan of faults for one direction of a connection, and its progress.
#[derive(Debug)]
pub(super) struct Fates {
    pub(super) plan: Direction,
    pub(super) dice: Dice,
    pub(super) messages: Messages,
    pub(super) carries_messages: bool,
    is_stalled: bool,
    octets: u64,
    count: Count,
}

/// The fate of a portion.
#[derive(Debug)]
pub(super) struct Fate {
    /// The octets to deliver instead of the offered ones.
    pub(super) octets: Vec<u8>,
    /// The number of offered octets that the portion stands for; further ones are never delivered.
    pub(super) of: usize,
    /// The number of deliveries: 0, 1 or 2.
    pub(super) times: usize,
    /// The connection ends after them.
    pub(super) ends: bool,
    /// The next message may overtake this one.
    pub(super) waits: bool,
}

impl Fates {
    pub(super) fn new(
        plan: &Direction,
        dice: Dice,
        messages: Messages,
        carriage: Carriage,
    ) -> Self {
        Self {
            plan: plan.clone(),
            dice,
            messages,
            carries_messages: matches!(carriage, Carriage::Messages { .. }),
            is_stalled: false,
            octets: 0,
            count: Count::default(),
        }
    }

    /// Returns the due time of octets that arrive now.
    pub(super) fn due(&mut self) -> Option<Monotonic> {
        let delay = self.plan.delay?;
        let span = delay.longest - delay.shortest;
        let span = usize::try_from(span.as_nanos()).unwrap_or(usize::MAX);
        let extra = self.dice.below(span.saturating_add(1));
        Some(Monotonic::now() + delay.shortest + std::time::Duration::from_nanos(extra as u64))
    }

    /// Returns the number of `len` octets that a read or write moves, at least one.
    pub(super) fn cut(&mut self, len: usize) -> usize {
        if len > 1 && !self.carries_messages && self.dice.falls(self.plan.cut) {
            1 + self.dice.below(len)
        } else {
            len
        }
    }

    /// Throws for one message, or a portion of a stream. All of it counts as moved.
    pub(super) fn of(&mut self, portion: &[u8]) -> Fate {
        let mut fate = Fate {
            octets: portion.to_vec(),
            of: portion.len(),
            times: 1,
            ends: false,
            waits: false,
        };
        self.is_stalled |= self.dice.falls(self.plan.stall);
        if self.is_stalled {
            fate.times = 0;
            return fate;
        }
        self.bound(&mut fate);
        if self.dice.falls(self.plan.truncate) {
            fate.octets.truncate(self.dice.below(portion.len()));
            fate.ends |= !self.carries_messages;
        }
        if self.dice.falls(self.plan.flip) && !fate.octets.is_empty() {
            let at = self.dice.below(fate.octets.len());
            fate.octets[at] ^= 1 << self.dice.below(8);
        }
        if self.dice.falls(self.plan.insert) {
            let at = self.dice.below(fate.octets.len() + 1);
            let garbage = (0..1 + self.dice.below(MOST_INSERTED)).map(|_| self.dice.next() as u8);
            let garbage: Vec<u8> = garbage.collect();
            fate.octets.splice(at..at, garbage);
        }
        if self.carries_messages {
            fate.waits = self.dice.falls(self.plan.reorder);
            fate.times += usize::from(self.dice.falls(self.plan.duplicate));
            if self.dice.falls(self.plan.loss) {
                fate.times = 0;
            }
        }
        fate
    }

    /// Ends the portion where the direction has had its octets or messages.
    fn bound(&mut self, fate: &mut Fate) {
        if let Some(last) = self.plan.disconnect
            && last - self.octets.min(last) < fate.of as u64
        {
            let left = (last - self.octets.min(last)) as usize;
            // A part of a message is none.
            self.end(fate, if self.carries_messages { 0 } else { left });
        }
        if let Some(last) = self.plan.disconnect_messages {
            let left = last - self.count.done.min(last);
            let end = self.count.add(self.messages, &fate.octets, left);
            if let Some(end) = end.filter(|end| *end < fate.of) {
                self.end(fate, end);
            }
        }
        self.octets += fate.of as u64;
    }

    fn end(&self, fate: &mut Fate, at: usize) {
        fate.octets.truncate(at);
        fate.of = at;
        fate.ends = true;
    }
}

/// A counter of the messages that have passed in a stream.
#[derive(Debug, Default)]
struct Count {
    done: u64,
    /// The beginning of a message whose length is not known yet.
    head: Vec<u8>,
    /// The number of octets that remain of a message.
    left: usize,
}

impl Count {
    /// Counts the messages in `octets`; returns the end of the last one that may be delivered.
    fn add(&mut self, messages: Messages, octets: &[u8], may_come: u64) -> Option<usize> {
        let last = self.done + may_come;
        let mut at = 0;
        while at < octets.len() {
            if self.done >= last {
                return Some(at);
            }
            if self.left == 0 {
                let known = self.head.len();
                let more = (LONGEST_HEAD - known).min(octets.len() - at);
                self.head.extend_from_slice(&octets[at..at + more]);
                let Some(len) = (messages.len)(&self.head) else {
                    // The octets are no message, so the following ones cannot be counted.
                    self.head.clear();
                    return None;
                };
                if len > self.head.len() && self.head.len() < LONGEST_HEAD {
                    return None;
                }
                self.head.clear();
                self.left = len.max(known + 1) - known;
            }
            let moved = self.left.min(octets.len() - at);
            at += moved;
            self.left -= moved;
            self.done += u64::from(self.left == 0);
        }
        None
    }
}

/// A message's beginning from which its length is known ([`Messages`]).
const LONGEST_HEAD: usize = 16;
const MOST_INSERTED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that begin with their length.
    const BY_LENGTH: Messages = Messages {
        len: |octets| octets.first().map(|len| usize::from(*len)),
        max: 255,
    };

    fn fates(plan: Direction, carriage: Carriage) -> Fates {
        Fates::new(&plan, Dice::new(1, 2, 3), BY_LENGTH, carriage)
    }

    #[test]
    fn a_stream_ends_after_its_octets() {
        let plan = Direction {
            disconnect: Some(5),
            ..Direction::default()
        };
        let mut fates = fates(plan, Carriage::Stream);
        let first = fates.of(b"abc");
        assert_eq!((first.octets.as_slice(), first.ends), (&b"abc"[..], false));
        let second = fates.of(b"def");
        assert_eq!(
            (second.octets.as_slice(), second.of, second.ends),
            (&b"de"[..], 2, true)
        );
    }

    #[test]
    fn a_stream_ends_after_its_messages_wherever_they_were_cut() {
        let stream: Vec<u8> = [20, 3, 5, 40, 2]
            .iter()
            .flat_map(|len| [vec![*len], vec![0; usize::from(*len) - 1]].concat())
            .collect();
        for portion in 1..stream.len() {
            let plan = Direction {
                disconnect_messages: Some(3),
                ..Direction::default()
            };
            let mut fates = fates(plan, Carriage::Stream);
            let mut come = 0;
            for octets in stream.chunks(portion) {
                let fate = fates.of(octets);
                come += fate.octets.len();
                if fate.ends {
                    break;
                }
            }
            assert_eq!(come, 28, "in portions of {portion}");
        }
    }

    #[test]
    fn after_a_stall_nothing_comes() {
        let plan = Direction {
            stall: 1.0,
            ..Direction::default()
        };
        let mut fates = fates(plan, Carriage::Stream);
        let fate = fates.of(b"abc");
        assert_eq!((fate.times, fate.of, fate.ends), (0, 3, false));
    }

    #[test]
    fn cuts_leave_something() {
        let plan = Direction {
            cut: 1.0,
            ..Direction::default()
        };
        let mut fates = fates(plan, Carriage::Stream);
        let cuts: Vec<_> = (0..200).map(|_| fates.cut(4)).collect();
        assert!(cuts.iter().all(|cut| (1..=4).contains(cut)), "{cuts:?}");
        assert!((1..=4).all(|len| cuts.contains(&len)), "{cuts:?}");
    }
}
