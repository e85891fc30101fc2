//! Locks that operations on several processors of a node take: the multiprocessor priority ceiling
//! protocol (Rajkumar 1990), with the suspensions of Lakshmanan, de Niz and Rajkumar (2009).
//!
//! # Rules
//! A section of such a lock runs above all lanes of its processor. Sections of several locks on one
//! processor do not preempt each other: the one that is ready first is next. A thread that finds
//! the lock held suspends itself, and the most urgent waiting one is next; equally urgent ones in
//! their order. Sections are not nested, and are not held over calls.
//!
//! # The bounds
//! * **A section**, from the moment at which its thread has the lock, takes at most its own time,
//!   the longest section of each other lock on its processor, since each has one holder at most
//!   that is ahead, and the work outside of the file on that processor, which may have begun.
//! * **A wait** for a lock takes at most the longest section of a less urgent operation, which has
//!   the lock, and those of all jobs of other operations that have not ended at its start or arrive
//!   before its end: W = L + Σ ⌈(W + R) / T⌉ H.
//! * **Less urgent work.** While a job is ready, less urgent jobs of its processor execute nothing
//!   but sections, and each has one at most for which it waits or which it is in. So each delays it
//!   once, and once more after each wait. The same holds for a local lock with a ceiling, and for
//!   work outside of the file.
//! * **More urgent work** counts with its sections. It suspends itself, so the analysis counts each
//!   of its jobs that has not ended ([`Step::suspending`](chronorb_sched::Step::suspending)).
//!
//! An operation takes each lock once in any of its pieces that has room for it, so each such step
//! has the wait. Steps of one branch follow each other, so they do not wait for each other. All of
//! that holds if the requests of a transaction end within its period; otherwise there is no bound.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use chronorb_sched::{AnalysisError, Load, Response, Time};

use crate::frames::Frame;
use crate::schedule::Schedule;
use crate::task_sets::{LockRequest, NamedTransaction, StepWork, TaskSets};

/// The terms of all sums of an analysis, at most.
pub(crate) const MOST_TERMS: u64 = 1 << 28;

impl Schedule {
    /// Returns the locks that operations on several processors of a node take, by node and name.
    pub(crate) fn shared_locks(&self) -> HashSet<(usize, &str)> {
        let mut first = HashMap::new();
        let mut shared = HashSet::new();
        for operation in &self.operations {
            let node = self.processors[operation.processor].node;
            for it in &operation.locks {
                let key = (node, it.lock.as_str());
                if *first.entry(key).or_insert(operation.processor) != operation.processor {
                    shared.insert(key);
                }
            }
        }
        shared
    }
}

impl LockRequest {
    /// Returns the requests of all frames.
    pub(crate) fn all(
        schedule: &Schedule,
        transactions: &[NamedTransaction],
        frames: &[Frame],
        priorities: &[u32],
    ) -> Vec<Self> {
        let shared = schedule.shared_locks();
        if shared.is_empty() {
            return Vec::new();
        }
        let mut numbers = HashMap::new();
        let mut requests = Vec::new();
        for (number, frame) in frames.iter().enumerate() {
            let operation = &schedule.operations[frame.operation];
            let node = schedule.processors[operation.processor].node;
            let key = |lock| (node, lock);
            let locks = operation.locks.iter();
            for it in locks.filter(|it| shared.contains(&key(it.lock.as_str()))) {
                let next = numbers.len();
                requests.push(Self {
                    frame: number,
                    branch: frame.branch,
                    transaction: frame.transaction,
                    lock: *numbers.entry(key(it.lock.as_str())).or_insert(next),
                    processor: operation.processor,
                    priority: priorities[frame.operation],
                    length: it.time,
                    steps: steps_with_room(&transactions[frame.transaction], frame, it.time),
                });
            }
        }
        requests
    }

    /// Returns the response of the last step in which it can be; zero before the first analysis.
    fn response(&self, responses: &[Vec<Response>]) -> Response {
        let responses = responses.get(self.transaction);
        let last = responses.zip(self.steps.last());
        last.map_or(Response::Bounded(0), |(responses, last)| responses[*last])
    }
}

/// Returns the steps of a frame in which a section of a length can be: those of an execution
/// without a wait for a call that takes at least as long.
fn steps_with_room(named: &NamedTransaction, frame: &Frame, length: Time) -> Vec<usize> {
    let steps = &named.transaction.steps;
    let work = StepWork::Execution {
        operation: frame.operation,
    };
    let own = (frame.first..=frame.last).filter(|it| named.works[*it] == work);
    let mut all = Vec::new();
    let mut run: Vec<usize> = Vec::new();
    let mut room: Time = 0;
    let mut end = |run: &mut Vec<usize>, room: &mut Time| {
        if std::mem::take(room) >= length {
            all.append(run);
        }
        run.clear();
    };
    for step in own {
        let before = steps[step].after.or_else(|| step.checked_sub(1));
        if run.last().is_some_and(|last| before != Some(*last)) {
            end(&mut run, &mut room);
        }
        run.push(step);
        room = room.saturating_add(steps[step].cost);
    }
    end(&mut run, &mut room);
    all
}

/// Sections of less urgent operations on a processor.
#[derive(Debug, Default)]
struct LessUrgent {
    /// The longest one of each branch.
    of_branches: BTreeMap<usize, Time>,
    sum: Time,
}

impl TaskSets {
    /// Marks the steps that wait for locks of several processors, and the frames of such steps.
    pub(crate) fn mark_suspended(&mut self) {
        for it in &self.requests {
            self.frames[it.frame].waits = true;
            for step in &it.steps {
                let steps = &mut self.transactions[it.transaction].transaction.steps;
                steps[*step].suspends = true;
            }
        }
    }

    /// Sets the blocking of all steps with these responses; none are those before the first
    /// analysis. `base` has the steps with their blocking by locks of one processor. In the last
    /// round, one that still grows has no bound. Returns whether any changed.
    pub(crate) fn set_blocking(
        &mut self,
        base: &Self,
        responses: &[Vec<Response>],
        is_last: bool,
        left: &mut u64,
    ) -> Result<bool, AnalysisError> {
        if self.requests.is_empty() {
            return Ok(false);
        }
        let waits = self.lock_waits(responses, left)?;
        // The number of requests of each step, and the time of their waits.
        let mut of_steps: HashMap<(usize, usize), (u64, Time)> = HashMap::new();
        for (it, wait) in self.requests.iter().zip(waits) {
            for step in &it.steps {
                let (count, sum) = of_steps.entry((it.transaction, *step)).or_default();
                *count += 1;
                *sum = sum.saturating_add(wait);
            }
        }
        let branches = self.branches();
        let processors: HashSet<_> = self.requests.iter().map(|it| it.processor).collect();
        let mut levels: HashMap<(usize, u32), LessUrgent> = HashMap::new();
        let mut has_changed = false;
        for transaction in 0..self.transactions.len() {
            for step in 0..self.transactions[transaction].works.len() {
                let named = &base.transactions[transaction];
                let its = &named.transaction.steps[step];
                let known = self.transactions[transaction].transaction.steps[step].blocking;
                if !processors.contains(&its.resource)
                    || named.works[step].executed().is_none()
                    || known == Time::MAX
                {
                    continue;
                }
                let level = (its.resource, its.priority);
                let below = match levels.entry(level) {
                    Entry::Occupied(it) => it.into_mut(),
                    Entry::Vacant(it) => {
                        take(left, self.requests.len())?;
                        it.insert(self.less_urgent(level, responses))
                    }
                };
                let response = responses.get(transaction).map(|it| it[step]);
                let is_alone =
                    response.is_none_or(|response| response.meets(named.transaction.period));
                let own = branches.get(&(transaction, step)).filter(|_| is_alone);
                let own = own.and_then(|branch| below.of_branches.get(branch));
                let sections = match below.sum {
                    Time::MAX => Time::MAX,
                    sum => sum - own.unwrap_or(&0),
                };
                let (count, waits) = of_steps
                    .get(&(transaction, step))
                    .copied()
                    .unwrap_or((0, 0));
                let outside = self.resources[its.resource].resource.blocking;
                let blocking = sections
                    .saturating_add(its.blocking.max(outside))
                    .saturating_mul(count + 1)
                    .saturating_add(waits);
                let step = &mut self.transactions[transaction].transaction.steps[step];
                if step.blocking != blocking {
                    has_changed = true;
                    step.blocking = if is_last { Time::MAX } else { blocking };
                }
            }
        }
        Ok(has_changed)
    }

    /// Returns the longest wait of each request.
    fn lock_waits(
        &self,
        responses: &[Vec<Response>],
        left: &mut u64,
    ) -> Result<Vec<Time>, AnalysisError> {
        let mut by_lock: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        // The longest section of each lock on each processor.
        let mut longest: BTreeMap<usize, BTreeMap<usize, Time>> = BTreeMap::new();
        for (number, it) in self.requests.iter().enumerate() {
            by_lock.entry(it.lock).or_default().push(number);
            let of_processor = longest.entry(it.processor).or_default();
            let of_lock = of_processor.entry(it.lock).or_default();
            *of_lock = it.length.max(*of_lock);
        }
        let section = |it: &LockRequest| {
            let others = longest[&it.processor].iter();
            let others = others.filter(|(lock, _)| **lock != it.lock);
            let outside = self.resources[it.processor].resource.blocking;
            let alone = it.length.saturating_add(outside);
            others.fold(alone, |sum, (_, length)| sum.saturating_add(*length))
        };
        let sections: Vec<_> = self.requests.iter().map(section).collect();
        let mut waits = Vec::with_capacity(self.requests.len());
        for it in &self.requests {
            let period = self.period(it);
            let (mut below, mut above) = (0, Vec::new());
            let users = &by_lock[&it.lock];
            take(left, users.len())?;
            let mut has_bound = it.response(responses).meets(period);
            for user in users {
                let other = &self.requests[*user];
                let response = other.response(responses);
                has_bound &= response.meets(self.period(other));
                if other.branch == it.branch {
                    continue;
                }
                if other.priority < it.priority {
                    below = sections[*user].max(below);
                } else {
                    above.push(Load {
                        cost: sections[*user],
                        period: self.period(other),
                        jitter: response.time().unwrap_or(Time::MAX),
                    });
                }
            }
            let mut wait = if has_bound { below } else { Time::MAX };
            while wait < period {
                take(left, above.len())?;
                let longer = above.iter().fold(below, |sum: Time, load| {
                    sum.saturating_add(load.work_within(wait))
                });
                if longer <= wait {
                    break;
                }
                wait = longer;
            }
            // The operation takes longer than its period, then.
            waits.push(if wait < period { wait } else { Time::MAX });
        }
        Ok(waits)
    }

    fn period(&self, request: &LockRequest) -> Time {
        self.transactions[request.transaction].transaction.period
    }

    /// Returns the branch of each step that executes an operation.
    fn branches(&self) -> HashMap<(usize, usize), usize> {
        let mut branches = HashMap::new();
        for frame in &self.frames {
            let works = &self.transactions[frame.transaction].works;
            for (step, work) in works
                .iter()
                .enumerate()
                .take(frame.last + 1)
                .skip(frame.first)
            {
                if work.executed() == Some(frame.operation) {
                    branches.insert((frame.transaction, step), frame.branch);
                }
            }
        }
        branches
    }

    fn less_urgent(
        &self,
        (processor, priority): (usize, u32),
        responses: &[Vec<Response>],
    ) -> LessUrgent {
        let mut below = LessUrgent::default();
        let requests = self.requests.iter();
        for it in requests.filter(|it| it.processor == processor && it.priority < priority) {
            let has_bound = it.response(responses).meets(self.period(it));
            let length = if has_bound { it.length } else { Time::MAX };
            let of_branch = below.of_branches.entry(it.branch).or_default();
            *of_branch = length.max(*of_branch);
        }
        let all = below.of_branches.values();
        below.sum = all.fold(0, |sum: Time, length| sum.saturating_add(*length));
        below
    }
}

/// Takes terms from those that are left.
fn take(left: &mut u64, terms: usize) -> Result<(), AnalysisError> {
    let terms = u64::try_from(terms).unwrap_or(u64::MAX);
    *left = left.checked_sub(terms).ok_or(AnalysisError::TooComplex)?;
    Ok(())
}
