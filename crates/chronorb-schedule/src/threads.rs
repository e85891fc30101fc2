//! Threads: the waits of requests for a thread of their lane, and the threads that lanes need.
//!
//! A request keeps its thread until its operation ends, also while the operation waits for a call.
//! A lane serves each request at once, as far as its processor lets it, if it has a thread more
//! than there can be waiting ones: then a thread of the lane executes whenever there is work for
//! it. Such a lane is no part of the analysis. A lane that is to have fewer is a queue: a request
//! waits for a thread while others have all of them.
//!
//! # The wait for a thread
//! Suppose that a request comes at t, and that no thread is free until t + w. Then all k threads
//! serve other requests in that time: those that were there at t, or came before t + w. Each keeps
//! its thread for at most its *residence*: the longest time from the start of its first step to the
//! end of its last one. So k w is at most the sum of the residences of so many requests, in any
//! order of the queue. The least w for which that holds is the wait.
//!
//! A residence is a difference of responses, which holds if each transaction ends within its
//! period. If one does not, or an operation of the lane calls back into it by way of another lane,
//! the wait has no bound.
//!
//! # The thread of an activity
//! An operation with a period that waits for calls is executed by one thread, or as many as it
//! declares. If it can take longer than its period, its jobs wait for each other more and more.

use std::collections::BTreeMap;

use chronorb_sched::{Load, Response, Time};

use crate::frames::Frame;
use crate::task_sets::TaskSets;

/// Threads that are too few.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ThreadShortage {
    /// The operation with a period that takes longer, or one of the lane.
    pub operation: usize,
    /// The owner of the threads.
    pub owner: ThreadOwner,
    /// The number of threads that there are.
    pub threads: u32,
    /// The number with which no request waits for a thread; `None` if no number is enough.
    pub needed: Option<u64>,
}

impl ThreadShortage {
    /// Whether both are of the same threads.
    pub(crate) fn is_of_same(&self, other: &Self) -> bool {
        (self.owner, self.operation) == (other.owner, other.operation)
    }
}

/// The owner of threads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ThreadOwner {
    /// The activity of an operation with a period.
    Activity,
    /// The declared lane of an operation.
    Lane,
}

/// The waits for threads that hold with some responses.
struct Waits {
    /// Those of each frame.
    of_frames: Vec<Time>,
    shortages: Vec<ThreadShortage>,
}

impl TaskSets {
    /// The executions of operations that have a thread, in the order in which they begin.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Sets the waits of frames as those of their first steps. Returns whether any changed.
    pub(crate) fn set_waits(&mut self, waits: &[Time]) -> bool {
        let mut of_steps: BTreeMap<(usize, usize), Time> = BTreeMap::new();
        for (frame, wait) in self.frames.iter().zip(waits) {
            let sum = of_steps
                .entry((frame.transaction, frame.first))
                .or_default();
            *sum = sum.saturating_add(*wait);
        }
        let mut has_changed = false;
        for ((transaction, step), wait) in of_steps {
            let step = &mut self.transactions[transaction].transaction.steps[step];
            has_changed |= step.wait != wait;
            step.wait = wait;
        }
        has_changed
    }

    /// Returns the waits for threads with these responses, at least `before` each, and the threads
    /// that are too few.
    pub(crate) fn thread_waits(
        &self,
        responses: &[Vec<Response>],
        before: &[Time],
    ) -> (Vec<Time>, Vec<ThreadShortage>) {
        let mut waits = Waits {
            of_frames: before.to_vec(),
            shortages: Vec::new(),
        };
        for pool in 0..self.pools.threads.len() {
            self.wait_for_lane(responses, pool, before, &mut waits);
        }
        self.wait_for_activities(responses, &mut waits);
        (waits.of_frames, waits.shortages)
    }

    /// Returns the least number of threads with which no request of the lane of an operation waits
    /// for one; `None` if no number is enough.
    pub(crate) fn threads_needed(
        &self,
        responses: &[Vec<Response>],
        operation: usize,
    ) -> Option<u64> {
        self.needed(responses, self.pools.of_operation[operation])
    }

    fn wait_for_activities(&self, responses: &[Vec<Response>], waits: &mut Waits) {
        for (number, frame) in self.frames.iter().enumerate() {
            let transaction = &self.transactions[frame.transaction];
            let is_activity =
                frame.caller.is_none() && frame.first == 0 && !transaction.is_declared;
            if !is_activity || !frame.waits {
                continue;
            }
            let threads = self.pools.of_activity[frame.operation];
            let response = responses[frame.transaction][frame.last];
            // Without a bound, something else is the reason.
            let Some(time) = response.time() else {
                continue;
            };
            let needed = time.div_ceil(transaction.transaction.period);
            if needed > threads.into() {
                waits.of_frames[number] = Time::MAX;
                waits.shortages.push(ThreadShortage {
                    operation: frame.operation,
                    owner: ThreadOwner::Activity,
                    threads,
                    needed: Some(needed),
                });
            }
        }
    }

    fn wait_for_lane(
        &self,
        responses: &[Vec<Response>],
        pool: usize,
        before: &[Time],
        waits: &mut Waits,
    ) {
        let Some(threads) = self.pools.threads[pool] else {
            return;
        };
        let needed = self.needed(responses, pool);
        if needed.is_some_and(|needed| needed <= threads.into()) {
            return;
        }
        let own: Vec<_> = self.frames_of(pool).collect();
        if let Some(first) = own
            .iter()
            .find(|it| self.frames[**it].waits)
            .or_else(|| own.first())
        {
            waits.shortages.push(ThreadShortage {
                operation: self.frames[*first].operation,
                owner: ThreadOwner::Lane,
                threads,
                needed,
            });
        }
        let residences = own
            .iter()
            .map(|it| self.residence(responses, *it, before[*it]));
        let residences: Option<Vec<_>> = residences.collect();
        let is_nested = own.iter().any(|it| self.comes_back(*it, pool));
        for number in &own {
            let frame = &self.frames[*number];
            let wait = residences
                .as_deref()
                .filter(|_| !is_nested)
                .and_then(|residences| {
                    let others = own.iter().zip(residences);
                    let others =
                        others.filter(|(other, _)| self.frames[**other].branch != frame.branch);
                    let others: Vec<_> = others.map(|(_, load)| *load).collect();
                    longest_wait(
                        &others,
                        threads.into(),
                        self.transactions[frame.transaction].transaction.period,
                    )
                });
            let wait = wait.unwrap_or(Time::MAX);
            waits.of_frames[*number] = waits.of_frames[*number].max(wait);
        }
    }

    fn frames_of(&self, pool: usize) -> impl Iterator<Item = usize> {
        let frames = self.frames.iter().enumerate();
        let own = frames.filter(move |(_, it)| self.pools.of_operation[it.operation] == pool);
        own.map(|(number, _)| number)
    }

    /// Whether a frame of a lane is called, by way of other lanes, by one that waits for it and
    /// keeps a thread meanwhile. A call within the lane is executed by the thread of its caller.
    fn comes_back(&self, frame: usize, pool: usize) -> bool {
        let caller = |it: &usize| self.frames[*it].caller;
        let is_own = |it: &usize| self.pools.of_operation[self.frames[*it].operation] == pool;
        let mut callers = std::iter::successors(caller(&frame), caller);
        callers.by_ref().find(|it| !is_own(it)).is_some() && callers.any(|it| is_own(&it))
    }

    /// The number of threads of a lane that a frame and those that wait for it have, as far as
    /// they wait for calls.
    fn nested(&self, frame: usize, pool: usize) -> u64 {
        let callers = std::iter::successors(Some(frame), |it| self.frames[*it].caller);
        let own = callers.filter(|it| {
            let it = &self.frames[*it];
            it.waits && self.pools.of_operation[it.operation] == pool
        });
        own.count() as u64
    }

    /// Returns the least number of threads with which a lane is never without one that can
    /// execute: one more than can wait at once. `None` if that has no bound.
    fn needed(&self, responses: &[Vec<Response>], pool: usize) -> Option<u64> {
        // The frames of a branch that wait at once are nested. Jobs of the branch overlap as often
        // as it takes longer than its period.
        let mut branches: BTreeMap<usize, (u64, Time)> = BTreeMap::new();
        for number in self.frames_of(pool).filter(|it| self.frames[*it].waits) {
            let frame = &self.frames[number];
            let period = self.transactions[frame.transaction].transaction.period;
            let jobs = responses[frame.transaction][frame.last]
                .time()?
                .div_ceil(period);
            let (nested, most) = branches.entry(frame.branch).or_default();
            *nested = self.nested(number, pool).max(*nested);
            *most = jobs.max(*most);
        }
        let waiting = branches.values();
        let waiting = waiting.map(|(nested, jobs)| nested.saturating_mul(*jobs));
        Some(waiting.fold(1, u64::saturating_add))
    }

    /// Returns the residences of the jobs of a frame as a load: each job is there from its arrival
    /// to its end. `None` if they have no bound.
    fn residence(&self, responses: &[Vec<Response>], frame: usize, wait: Time) -> Option<Load> {
        let frame = &self.frames[frame];
        let transaction = &self.transactions[frame.transaction].transaction;
        let end = responses[frame.transaction][frame.last].time()?;
        let first = &transaction.steps[frame.first];
        let release = match first.after.or_else(|| frame.first.checked_sub(1)) {
            Some(before) => responses[frame.transaction][before].time()?,
            None => transaction.jitter,
        };
        let cost = end.checked_sub(release)?.checked_sub(wait)?;
        (end <= transaction.period).then_some(Load {
            cost,
            period: transaction.period,
            jitter: end,
        })
    }
}

/// Returns the longest wait for one of several threads; `None` if it is not below the limit.
fn longest_wait(others: &[Load], threads: u64, limit: Time) -> Option<Time> {
    let mut wait = 0;
    while wait < limit {
        let work = others.iter().fold(0, |sum: Time, load| {
            sum.saturating_add(load.work_within(wait))
        });
        let longer = work / threads;
        if longer <= wait {
            return Some(wait);
        }
        wait = longer;
    }
    None
}
