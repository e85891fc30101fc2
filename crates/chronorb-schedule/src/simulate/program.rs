//! The program of an operation: its pieces, calls and critical sections.

use super::random::Choices;
use crate::schedule::{Schedule, Time};

/// The points of all programs, at most.
const MAX_POINTS: usize = 1 << 20;

/// A point of a frame, which it reaches by executing.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Point {
    /// The end of the time for which it goes on before more urgent work.
    Yield,
    /// The release of its lock.
    Release,
    /// A call, by the index in its operation.
    Call(usize),
    /// The taking of a lock.
    Take(usize),
    /// The end.
    End,
}

/// The execution between two-way calls.
#[derive(Debug)]
struct Piece {
    start: Time,
    length: Time,
    /// The parts of the piece between its calls.
    parts: Vec<Part>,
}

/// The execution between two calls.
#[derive(Debug)]
struct Part {
    longest: Time,
    least: Time,
    /// The call at its end.
    call: Option<usize>,
}

/// A critical section within the execution time of an operation.
#[derive(Clone, Copy, Debug)]
struct SectionPlace {
    lock: usize,
    /// The piece and the time in it.
    start: (usize, Time),
    end: (usize, Time),
}

/// The program of an operation.
#[derive(Debug)]
pub(super) struct Program {
    pieces: Vec<Piece>,
    /// The longest and the least execution of all pieces.
    cost: Time,
    least: Time,
    overhead: Time,
    /// The locks with the time for which each is held.
    locks: Vec<(usize, Time)>,
}

impl Program {
    /// Returns the programs of all operations, with the numbers of their locks; `None` if they make
    /// too many calls.
    pub(super) fn all(
        schedule: &Schedule,
        lock_number: impl Fn(usize, &str) -> usize,
    ) -> Option<Vec<Self>> {
        let mut left = MAX_POINTS;
        let programs = schedule.operations.iter().map(|it| {
            let node = schedule.processors[it.processor].node;
            let locks = it.locks.iter();
            let locks = locks.map(|used| (lock_number(node, &used.lock), used.time));
            let mut program = Self {
                pieces: Vec::new(),
                cost: it.cost,
                least: it.least.min(it.cost),
                overhead: schedule.nodes[node].overhead,
                locks: locks.collect(),
            };
            program.add_calls(it, &mut left)?;
            Some(program)
        });
        programs.collect()
    }

    fn add_calls(&mut self, operation: &crate::Operation, left: &mut usize) -> Option<()> {
        let calls = operation.calls.iter().map(|call| u64::from(call.count));
        let even = operation.cost.div_ceil(calls.fold(1, u64::saturating_add));
        let (mut start, mut now): (Time, Time) = (0, 0);
        let mut parts = Vec::new();
        for (number, call) in operation.calls.iter().enumerate() {
            for _ in 0..call.count {
                *left = left.checked_sub(1)?;
                let before = call.before.unwrap_or(even).min(operation.cost - now);
                now += before;
                parts.push(Part {
                    longest: before,
                    least: call.least.min(before),
                    call: Some(number),
                });
                if !call.oneway {
                    self.pieces.push(Piece {
                        start,
                        length: now - start,
                        parts: std::mem::take(&mut parts),
                    });
                    start = now;
                }
            }
        }
        parts.push(Part {
            longest: operation.cost - now,
            least: 0,
            call: None,
        });
        self.pieces.push(Piece {
            start,
            length: operation.cost - start,
            parts,
        });
        Some(())
    }

    /// Returns the points of one execution, each with the execution time before it.
    pub(super) fn points(&self, choices: &mut Choices) -> Vec<(Time, Point)> {
        let sections = self.sections(choices);
        let mut points = Vec::with_capacity(self.pieces.len() + 2 * sections.len() + 1);
        // The start of each piece, without its overhead, and the time that it takes.
        let mut taken = Vec::with_capacity(self.pieces.len());
        let mut now: Time = 0;
        // The longest time of the parts that are left, and what is missing of the least one.
        let (mut left, mut missing) = (self.cost, self.least);
        for piece in &self.pieces {
            if piece.length > 0 {
                now = now.saturating_add(self.overhead);
            }
            let start = now;
            for part in &piece.parts {
                left -= part.longest;
                let least = part.least.max(missing.saturating_sub(left));
                let time = choices.between(least, part.longest);
                missing = missing.saturating_sub(time);
                now = now.saturating_add(time);
                points.extend(part.call.map(|call| (now, Point::Call(call))));
            }
            taken.push((start, now - start));
        }
        let place = |(piece, time): (usize, Time)| {
            let (start, all) = taken[piece];
            start + part(time, all, self.pieces[piece].length)
        };
        for section in sections {
            let (start, end) = (place(section.start), place(section.end));
            if start < end {
                points.push((start, Point::Take(section.lock)));
                points.push((end, Point::Release));
            }
        }
        points.push((now, Point::End));
        // The sort is stable, so calls at one place stay in their order.
        points.sort_by_key(|(at, point)| (*at, point.rank()));
        points
    }

    /// Chooses places for the critical sections.
    fn sections(&self, choices: &mut Choices) -> Vec<SectionPlace> {
        let mut locks = self.locks.clone();
        choices.shuffle(&mut locks);
        let by_chance = self.divided(&locks, |fitting| choices.index(fitting));
        // What does not fit by chance may fit in the order of the file.
        let divided = by_chance.or_else(|| self.divided(&self.locks, |_| 0));
        let Some(of_pieces) = divided else {
            return self.sections_over_calls(&locks, choices);
        };
        let mut sections = Vec::with_capacity(locks.len());
        for (number, (own, piece)) in of_pieces.iter().zip(&self.pieces).enumerate() {
            let held: Time = own.iter().map(|(_, time)| time).sum();
            for (lock, start, end) in spread(own, piece.length - held, choices) {
                sections.push(SectionPlace {
                    lock,
                    start: (number, start),
                    end: (number, end),
                });
            }
        }
        sections
    }

    /// Divides locks among the pieces; `choose` chooses from a number of pieces with room. Returns
    /// `None` if one fits into none.
    fn divided(
        &self,
        locks: &[(usize, Time)],
        mut choose: impl FnMut(usize) -> usize,
    ) -> Option<Vec<Vec<(usize, Time)>>> {
        let mut rooms: Vec<_> = self.pieces.iter().map(|piece| piece.length).collect();
        let mut of_pieces = vec![Vec::new(); rooms.len()];
        for (lock, time) in locks {
            let fitting = (0..rooms.len()).filter(|piece| rooms[*piece] >= *time);
            let fitting: Vec<_> = fitting.collect();
            if fitting.is_empty() {
                return None;
            }
            let piece = fitting[choose(fitting.len())];
            rooms[piece] -= time;
            of_pieces[piece].push((*lock, *time));
        }
        Some(of_pieces)
    }

    /// Chooses places in the whole execution, because a section fits into no piece.
    fn sections_over_calls(
        &self,
        locks: &[(usize, Time)],
        choices: &mut Choices,
    ) -> Vec<SectionPlace> {
        let last = &self.pieces[self.pieces.len() - 1];
        let held = locks
            .iter()
            .fold(0, |sum: Time, it| sum.saturating_add(it.1));
        let room = (last.start + last.length).saturating_sub(held);
        let start_of = |time: Time| {
            let piece = self
                .pieces
                .partition_point(|it| it.start + it.length <= time);
            (piece, time - self.pieces[piece].start)
        };
        let end_of = |time: Time| {
            let piece = self
                .pieces
                .partition_point(|it| it.start + it.length < time);
            (piece, time - self.pieces[piece].start)
        };
        let sections = spread(locks, room, choices).into_iter();
        let sections = sections.map(|(lock, start, end)| SectionPlace {
            lock,
            start: start_of(start),
            end: end_of(end),
        });
        sections.collect()
    }
}

impl Point {
    const fn rank(self) -> u8 {
        match self {
            Self::Yield => 0,
            Self::Release => 1,
            Self::Call(_) => 2,
            Self::Take(_) => 3,
            Self::End => 4,
        }
    }
}

/// Returns the start and end of sections one after another, with `room` between them.
fn spread(locks: &[(usize, Time)], room: Time, choices: &mut Choices) -> Vec<(usize, Time, Time)> {
    let mut gaps: Vec<_> = locks.iter().map(|_| choices.up_to(room)).collect();
    gaps.sort_unstable();
    let mut held = 0;
    let sections = locks.iter().zip(gaps).map(|((lock, time), gap)| {
        let start = gap + held;
        held += time;
        (*lock, start, start + time)
    });
    sections.collect()
}

/// Returns the part of `time` in a piece that takes `taken` of its length.
fn part(time: Time, taken: Time, length: Time) -> Time {
    if length == 0 {
        return 0;
    }
    let part = u128::from(time) * u128::from(taken) / u128::from(length);
    Time::try_from(part).unwrap_or(taken)
}
