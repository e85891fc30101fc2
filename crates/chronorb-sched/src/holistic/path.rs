//! The response of steps that follow each other.
//!
//! Suppose that the first step of a path is released at t, and that the last one ends at t + w. In
//! that time one of them is always there: it executes, is blocked, waits on no resource, or more
//! urgent work executes on its resource. A job of another step delays the path only while it has
//! not ended, and at most for its cost, whichever steps of the path wait for it. It counts if it is
//! at least as urgent as some step of the path on its resource, has not ended at t, and is released
//! before t + w. With offset O and response R, it arrives after t − R and before t + w − O, as that
//! of a load with jitter R − O. Steps of equal priority count whether they are first or not.
//!
//! Jobs of the steps of the path, and of those before and after it, are not among them: if all of
//! these end within the period, those of earlier arrivals have ended, and those of the same arrival
//! have ended or follow.
//!
//! A path of one step is what each job of that step waits for from its release on. Longer ones are
//! shorter bounds where the same work delays several steps, as with calls within one processor
//! (González Harbour, Klein and Lehoczky 1994 look at such a chain as one job, too).

use super::Analysis;
use super::demand::{LevelWork, pending_load};
use super::state::StepState;
use crate::error::{AnalysisError, Steps};
use crate::rta::{Preemption, Work};
use crate::task::{Load, Task, Time};

/// The steps of a path that is looked at, at most.
const LONGEST_PATH: usize = 64;

impl Analysis<'_> {
    /// Returns the shortest bound of a step along paths that end with it, without its offset; at
    /// most `limit`.
    pub(super) fn along_paths(
        &self,
        (transaction, step): (usize, usize),
        limit: Time,
        budget: &mut Steps,
    ) -> Result<Time, AnalysisError> {
        let states = &self.states[transaction];
        let state = &states[step];
        let period = self.transactions[transaction].period;
        let mut relatives = states.iter();
        if relatives.any(|it| state.is_related(it) && !it.response.meets(period)) {
            return Ok(limit);
        }
        let before = std::iter::successors(Some(step), |it| states[*it].before);
        let path: Vec<_> = before.take(LONGEST_PATH).collect();
        let resource = |step: &usize| states[*step].position.0;
        let local = path
            .iter()
            .take_while(|it| resource(it) == state.position.0);
        // The step alone, those before it on its resource, and all from the first one on a resource
        // that comes again: only there the same work can delay several steps.
        let comes_again = |it: &usize| {
            path[..*it]
                .iter()
                .any(|after| resource(after) == resource(&path[*it]))
        };
        let all = (1..path.len())
            .rev()
            .find(comes_again)
            .map_or(1, |it| it + 1);
        let lengths = [1, local.count(), all];
        let mut shortest = limit;
        for (kind, length) in lengths.into_iter().enumerate() {
            if lengths[..kind].contains(&length) {
                continue;
            }
            let path = &path[..length];
            let time = self.along(transaction, path, (shortest, kind), budget)?;
            if time.saturating_add(state.offset) <= period {
                shortest = shortest.min(time);
            }
        }
        Ok(shortest)
    }

    /// Returns the bound of the first step of a path, which has them in the order of their ends
    /// from the last one back, without its offset; at least `limit` if there is none below.
    fn along(
        &self,
        transaction: usize,
        path: &[usize],
        (limit, kind): (Time, usize),
        budget: &mut Steps,
    ) -> Result<Time, AnalysisError> {
        let states = &self.states[transaction];
        let (last, first) = (&states[path[0]], &states[path[path.len() - 1]]);
        let Some(released) = first.delay.time().map(|it| it.saturating_add(first.offset)) else {
            return Ok(limit);
        };
        let mut work: Time = 0;
        let mut others = Vec::new();
        let mut resources: Vec<(usize, u32)> = Vec::new();
        for (position, step) in path.iter().enumerate() {
            let state = &states[*step];
            let (resource, number) = state.position;
            let task = &self.tasks[resource][number];
            // The wait of the first step is a part of its release.
            let is_first = position + 1 == path.len();
            let wait = if is_first { 0 } else { state.wait };
            for time in [task.cost, self.blocking(state), wait] {
                work = work.saturating_add(time);
            }
            match resources.iter_mut().find(|it| it.0 == resource) {
                Some((_, least)) => *least = task.priority.min(*least),
                None => resources.push((resource, task.priority)),
            }
        }
        for (resource, least) in resources {
            let Some(delays) = self.delays((transaction, last), (resource, least)) else {
                return Ok(limit);
            };
            others.push((delays, self.resources[resource].preemption));
        }
        // What is not preempted any more is not delayed.
        let (resource, number) = last.position;
        let rest = match self.resources[resource].preemption {
            Preemption::Preemptive => 0,
            Preemption::NonPreemptive => self.tasks[resource][number].last_part(),
        };
        let from_release = limit
            .saturating_add(last.offset)
            .saturating_sub(released)
            .saturating_sub(rest);
        // The work of a round is at least that of the one before.
        let mut ends = last.ends.get();
        let end = bounded(work - rest, from_release, &others, &mut ends[kind], budget)?;
        last.ends.set(ends);
        let end = end.saturating_add(rest).saturating_add(released);
        Ok(end.saturating_sub(last.offset))
    }

    /// Returns the blocking of a step, also by less urgent work that is not preempted.
    pub(super) fn blocking(&self, state: &StepState) -> Time {
        let (resource, number) = state.position;
        let tasks = &self.tasks[resource];
        let own = &tasks[number];
        match self.resources[resource].preemption {
            Preemption::Preemptive => own.blocking,
            Preemption::NonPreemptive => {
                if let Some(levels) = self.demand.levels(resource) {
                    return levels.longest_below(own.priority).max(own.blocking);
                }
                let below = tasks.iter().filter(|it| it.priority < own.priority);
                below.map(Task::longest_part).fold(own.blocking, Time::max)
            }
        }
    }

    /// Returns the work on a resource of at least a priority, but of the relatives of a step.
    /// `None` if some of it has no bound.
    fn delays(
        &self,
        (transaction, state): (usize, &StepState),
        (resource, least): (usize, u32),
    ) -> Option<Delays<'_>> {
        let tasks = &self.tasks[resource];
        let levels = self.demand.levels(resource);
        if let Some(levels) = levels.filter(|it| it.has_responses(least)) {
            let relatives = self.states[transaction].iter().filter(|it| {
                let (its_resource, number) = it.position;
                let is_above = its_resource == resource && tasks[number].priority >= least;
                is_above && state.is_related(it)
            });
            let relatives = relatives.map(|it| pending_load(&tasks[it.position.1], it));
            return Some(Delays::OfLevels(levels.pending(least, relatives.collect())));
        }
        let all = tasks.iter().zip(&self.owners[resource]);
        let mut loads = Vec::new();
        for (task, owner) in all.filter(|(task, _)| task.priority >= least) {
            let other = &self.states[owner.0][owner.1];
            if owner.0 == transaction && state.is_related(other) {
                continue;
            }
            other.response.time()?;
            loads.push(pending_load(task, other));
        }
        Some(Delays::Loads(loads))
    }
}

/// The work that delays a path on a resource.
enum Delays<'a> {
    Loads(Vec<Load>),
    OfLevels(LevelWork<'a>),
}

impl Work for Delays<'_> {
    fn terms(&self, time: Time) -> usize {
        match self {
            Self::Loads(loads) => loads.as_slice().terms(time),
            Self::OfLevels(levels) => levels.terms(time),
        }
    }

    fn within(&self, base: Time, time: Time) -> Option<Time> {
        match self {
            Self::Loads(loads) => loads.as_slice().within(base, time),
            Self::OfLevels(levels) => levels.within(base, time),
        }
    }

    fn through(&self, base: Time, time: Time) -> Option<Time> {
        match self {
            Self::Loads(loads) => loads.as_slice().through(base, time),
            Self::OfLevels(levels) => levels.through(base, time),
        }
    }
}

/// Returns the least time that is `base` and the delays in it, or `limit` if it is above. It is at
/// least `from`, which is set to where a search for more work can begin.
fn bounded(
    base: Time,
    limit: Time,
    delays: &[(Delays<'_>, Preemption)],
    from: &mut Time,
    budget: &mut Steps,
) -> Result<Time, AnalysisError> {
    let mut time = base.max(*from);
    while time < limit {
        *from = time;
        budget.take(delays.iter().map(|it| it.0.terms(time)).sum())?;
        let mut each = delays.iter();
        let longer = each.try_fold(base, |sum, (delays, preemption)| match preemption {
            Preemption::Preemptive => delays.within(sum, time),
            Preemption::NonPreemptive => delays.through(sum, time),
        });
        match longer {
            Some(longer) if longer <= time => return Ok(time),
            Some(longer) => time = longer,
            None => break,
        }
    }
    Ok(limit)
}
