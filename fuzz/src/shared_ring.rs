//! The ring of shared memory, between a side that keeps to the protocol and one that need not.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use arbitrary::{Arbitrary, Unstructured};
use ring::{Consumer, Line, Producer, Ring, Rubbish, Wait, Words, leave, rouse};

use crate::values::variant;

#[allow(dead_code, reason = "not all of it has to do with what a peer writes")]
#[path = "../../crates/chronorb-transport/src/shm/ring.rs"]
mod ring;

mod sync {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering};
}

/// The substitute for the mapped memory, which reports accesses beyond it.
mod memory {
    use std::sync::atomic::{AtomicU8, Ordering};

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Octets<'m>(pub(super) &'m [AtomicU8]);

    impl<'m> Octets<'m> {
        pub(super) fn len(self) -> usize {
            self.0.len()
        }

        fn at(self, position: u32, len: usize) -> impl Iterator<Item = &'m AtomicU8> {
            assert!(len <= self.0.len(), "more than the ring has");
            let begin = position as usize % self.0.len();
            (begin..begin + len).map(move |index| &self.0[index % self.0.len()])
        }

        pub(super) fn read(self, position: u32, room: &mut [u8]) {
            let cells = self.at(position, room.len());
            for (octet, cell) in room.iter_mut().zip(cells) {
                *octet = cell.load(Ordering::Relaxed);
            }
        }

        pub(super) fn write(self, position: u32, octets: &[u8]) {
            for (octet, cell) in octets.iter().zip(self.at(position, octets.len())) {
                cell.store(*octet, Ordering::Relaxed);
            }
        }
    }
}

/// Lets a peer write `data` into the words of two rings, between what a side does that keeps to the
/// protocol; and lets two sides that do exchange octets, of which none may be lost or changed.
pub fn shared_ring(data: &[u8]) {
    let mut steps = Unstructured::new(data);
    match steps.arbitrary() {
        Ok(true) => drop(between_honest_sides(&mut steps)),
        Ok(false) => drop(against_a_hostile_one(&mut steps)),
        Err(_) => {}
    }
}

struct SharedMemory {
    words: Words,
    octets: Vec<AtomicU8>,
}

impl SharedMemory {
    fn new(len: usize) -> Self {
        let this = Self {
            words: Words {
                tail: Line(AtomicU32::new(0)),
                ended: AtomicU32::new(0),
                head: Line(AtomicU32::new(0)),
            },
            octets: (0..len).map(|_| AtomicU8::new(0)).collect(),
        };
        this.words.begin();
        this
    }

    fn ring(&self) -> Ring<'_> {
        Ring {
            words: &self.words,
            octets: memory::Octets(&self.octets),
        }
    }
}

enum Honest {
    Put(u8, u8),
    Take(u8),
    Release,
    Arm(bool, bool),
}

impl<'d> Arbitrary<'d> for Honest {
    fn arbitrary(u: &mut Unstructured<'d>) -> arbitrary::Result<Self> {
        Ok(match variant(u, 4)? {
            0 => Self::Put(u.arbitrary()?, u.arbitrary()?),
            1 => Self::Take(u.arbitrary()?),
            2 => Self::Release,
            _ => Self::Arm(u.arbitrary()?, u.arbitrary()?),
        })
    }
}

fn between_honest_sides(steps: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let shared = SharedMemory::new(64);
    let ring = shared.ring();
    let (producer, consumer) = (Producer::new(), Consumer::new());
    let (mut sent, mut received) = (0_u64, 0_u64);
    let octet = |at: u64| (at * 31 % 251) as u8;
    while !steps.is_empty() {
        match steps.arbitrary()? {
            Honest::Put(first, second) => {
                let octets: Vec<_> = (0..u64::from(first) + u64::from(second))
                    .map(|index| octet(sent + index))
                    .collect();
                let (first, second) = octets.split_at(first.into());
                let (put, _) = producer.put(ring, first, second).expect("an honest peer");
                assert!(put <= octets.len());
                sent += put as u64;
            }
            Honest::Take(room) => {
                let mut room = vec![0; room.into()];
                let taken = consumer.take(ring, &mut room).expect("an honest peer");
                assert_eq!(taken as u64, (room.len() as u64).min(sent - received));
                for octet_of in &room[..taken] {
                    assert_eq!(*octet_of, octet(received));
                    received += 1;
                }
            }
            Honest::Release => drop(consumer.release(ring).expect("an honest peer")),
            Honest::Arm(of_consumer, at_word) => {
                let wait = if at_word { Wait::Word } else { Wait::Doorbell };
                let armed = if of_consumer {
                    consumer.arm(ring, wait)
                } else {
                    producer.arm(ring, wait)
                };
                armed.expect("an honest peer");
            }
        }
    }
    Ok(())
}

enum Hostile {
    Write { word: u8, value: u32 },
    WriteNear { word: u8, ahead: i8, wait: u8 },
    Put(u16, u8),
    Take(u16),
    Release,
    Arm(bool, u8),
    End,
    Leave,
    Rouse,
}

impl<'d> Arbitrary<'d> for Hostile {
    fn arbitrary(u: &mut Unstructured<'d>) -> arbitrary::Result<Self> {
        Ok(match variant(u, 9)? {
            0 => Self::Write {
                word: u.arbitrary()?,
                value: u.arbitrary()?,
            },
            1 => Self::WriteNear {
                word: u.arbitrary()?,
                ahead: u.arbitrary()?,
                wait: u.arbitrary()?,
            },
            2 => Self::Put(u.arbitrary()?, u.arbitrary()?),
            3 => Self::Take(u.arbitrary()?),
            4 => Self::Release,
            5 => Self::Arm(u.arbitrary()?, u.arbitrary()?),
            6 => Self::End,
            7 => Self::Leave,
            _ => Self::Rouse,
        })
    }
}

fn against_a_hostile_one(steps: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    const LEN: usize = 4096;
    let (there, back) = (SharedMemory::new(LEN), SharedMemory::new(LEN));
    let (producer, consumer) = (Producer::new(), Consumer::new());
    let words = [
        &there.words.tail.0,
        &there.words.head.0,
        &back.words.tail.0,
        &back.words.head.0,
    ];
    while !steps.is_empty() {
        let done: Result<(), Rubbish> = match steps.arbitrary()? {
            Hostile::Write { word, value } => {
                words[usize::from(word) % 4].store(value, Ordering::Relaxed);
                Ok(())
            }
            Hostile::WriteNear { word, ahead, wait } => {
                let word = words[usize::from(word) % 4];
                let position = word.load(Ordering::Relaxed) >> 2;
                let position = position.wrapping_add_signed(ahead.into());
                word.store(position << 2 | u32::from(wait & 3), Ordering::Relaxed);
                Ok(())
            }
            Hostile::Put(first, second) => {
                let (first, second) = (vec![1; first.into()], vec![2; second.into()]);
                producer.put(there.ring(), &first, &second).map(|(put, _)| {
                    assert!(put <= LEN.min(first.len() + second.len()));
                })
            }
            Hostile::Take(room) => {
                let mut room = vec![0; room.into()];
                let taken = consumer.take(back.ring(), &mut room);
                taken.map(|taken| assert!(taken <= LEN.min(room.len())))
            }
            Hostile::Release => consumer.release(back.ring()).map(drop),
            Hostile::Arm(of_consumer, wait) => {
                let wait = [Wait::Not, Wait::Word, Wait::Doorbell][usize::from(wait) % 3];
                let armed = if of_consumer {
                    consumer.arm(back.ring(), wait)
                } else {
                    producer.arm(there.ring(), wait)
                };
                armed.map(drop)
            }
            Hostile::End => {
                let _ = (there.words.end(), back.words.abandon());
                Ok(())
            }
            Hostile::Leave => {
                let _ = (leave(&back.words.tail.0), leave(&there.words.head.0));
                Ok(())
            }
            Hostile::Rouse => {
                let _ = rouse(&back.words.tail.0);
                Ok(())
            }
        };
        if done.is_err() {
            // The connection ends.
            return Ok(());
        }
    }
    Ok(())
}
