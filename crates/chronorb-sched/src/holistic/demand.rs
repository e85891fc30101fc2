//! The work of many tasks as a function of time and priority.
//!
//! A search adds up the work of all tasks of at least a priority, for one time after another. With
//! thousands of tasks on a resource the sums are nearly all of the time of an analysis. They are
//! then made in advance: the releases of all tasks up to a horizon are sorted, and put into a
//! binary indexed tree (Fenwick 1994) over the tasks by priority, whose nodes have the work of
//! their tasks up to each release. A sum is a binary search in each of at most log n nodes. It is
//! the same number as that of the loads, which are added up as such beyond the horizon.

use std::cmp::{Ordering, Reverse};

use super::state::StepState;
use crate::rta::{Response, Work};
use crate::task::{Load, Task, Time};
use crate::utilisation::Bounds;

/// The fewest steps of a resource that are worth a tree.
const LEAST_STEPS: usize = 48;
/// The releases up to the horizon, for each task.
const RELEASES: u128 = 4;
/// The time of a binary search, in terms of a sum.
const SEARCH: usize = 8;

/// The tasks of the resources that have many of them.
#[derive(Debug, Default)]
pub(super) struct Demand {
    levels: Vec<Option<Levels>>,
}

impl Demand {
    /// Creates the demand for an analysis of steps, given by the resource of each.
    pub(super) fn new(resources: impl Iterator<Item = usize>, tasks: &[Vec<Task>]) -> Self {
        let mut counts = vec![0; tasks.len()];
        for resource in resources {
            counts[resource] += 1;
        }
        let each = tasks.iter().zip(counts);
        let each = each.map(|(tasks, count)| (count >= LEAST_STEPS).then(|| Levels::new(tasks)));
        Self {
            levels: each.collect(),
        }
    }

    /// Returns the tasks of a resource; `None` if they are too few.
    pub(super) fn levels(&self, resource: usize) -> Option<&Levels> {
        self.levels.get(resource)?.as_ref()
    }

    /// Takes over the jitters and responses of a round. Returns the number of releases.
    pub(super) fn update(
        &mut self,
        tasks: &[Vec<Task>],
        owners: &[Vec<(usize, usize)>],
        states: &[Vec<StepState>],
    ) -> usize {
        let mut releases = 0;
        for (resource, levels) in self.levels.iter_mut().enumerate() {
            if let Some(levels) = levels {
                let each = tasks[resource].iter().zip(&owners[resource]);
                let each: Vec<_> = each
                    .map(|(task, owner)| (task, &states[owner.0][owner.1]))
                    .collect();
                releases += levels.update(&each);
            }
        }
        releases
    }
}

/// The tasks of a resource by priority, the most urgent ones first.
#[derive(Debug)]
pub(super) struct Levels {
    /// The number of each task.
    order: Vec<usize>,
    priorities: Vec<u32>,
    /// The longest part of the tasks from each one on.
    longest: Vec<Time>,
    /// The comparison of the work up to each task with the resource, if it is a simple one.
    shares: Vec<Option<Ordering>>,
    /// Each job is released within its jitter.
    released: Releases,
    /// Each job ends within its response.
    pending: Releases,
    /// The most urgent priority of tasks without a bound of the release.
    late_release: Option<u32>,
    /// The most urgent priority of tasks without a bound of the response.
    late_response: Option<u32>,
}

impl Levels {
    fn new(tasks: &[Task]) -> Self {
        let mut order: Vec<_> = (0..tasks.len()).collect();
        order.sort_by_key(|it| Reverse(tasks[*it].priority));
        let mut bounds = Bounds::default();
        let shares = order.iter().map(|it| {
            bounds.add(tasks[*it].load());
            bounds.compare()
        });
        let shares = shares.collect();
        let mut longest = vec![0; tasks.len() + 1];
        for (position, it) in order.iter().enumerate().rev() {
            longest[position] = tasks[*it].longest_part().max(longest[position + 1]);
        }
        Self {
            priorities: order.iter().map(|it| tasks[*it].priority).collect(),
            order,
            longest,
            shares,
            released: Releases::default(),
            pending: Releases::default(),
            late_release: None,
            late_response: None,
        }
    }

    fn update(&mut self, tasks: &[(&Task, &StepState)]) -> usize {
        let latest = |response: fn(&StepState) -> Response| {
            let late = tasks
                .iter()
                .filter(|it| response(it.1) == Response::Unbounded);
            late.map(|it| it.0.priority).max()
        };
        self.late_release = latest(|it| it.delay);
        self.late_response = latest(|it| it.response);
        let by_priority = || self.order.iter().map(|it| tasks[*it]);
        let released = by_priority().map(|(task, _)| task.load());
        let pending = by_priority().map(|(task, state)| pending_load(task, state));
        self.released.update(released) + self.pending.update(pending)
    }

    /// Returns the number of tasks of at least a priority.
    fn count(&self, priority: u32) -> usize {
        self.priorities.partition_point(|it| *it >= priority)
    }

    /// Returns the longest part of a job of tasks below a priority, without preemption.
    pub(super) fn longest_below(&self, priority: u32) -> Time {
        self.longest[self.count(priority)]
    }

    /// Returns how the work of at least a priority compares to the resource; `None` if only the
    /// exact comparison tells.
    pub(super) fn share(&self, priority: u32) -> Option<Ordering> {
        match self.count(priority).checked_sub(1) {
            Some(last) => self.shares[last],
            None => Some(Ordering::Less),
        }
    }

    /// Whether all tasks of at least a priority have a bound of their releases.
    pub(super) fn has_releases(&self, priority: u32) -> bool {
        self.late_release < Some(priority)
    }

    /// Whether all tasks of at least a priority have a bound of their responses.
    pub(super) fn has_responses(&self, priority: u32) -> bool {
        self.late_response < Some(priority)
    }

    /// Returns the work of tasks of at least a priority, but for some of them, by their releases.
    pub(super) fn released(&self, priority: u32, left_out: Vec<Load>) -> LevelWork<'_> {
        LevelWork {
            releases: &self.released,
            count: self.count(priority),
            left_out,
        }
    }

    /// Returns the work of tasks of at least a priority, but for some of them, that is pending at
    /// some moment or released after it.
    pub(super) fn pending(&self, priority: u32, left_out: Vec<Load>) -> LevelWork<'_> {
        LevelWork {
            releases: &self.pending,
            count: self.count(priority),
            left_out,
        }
    }
}

/// Returns the load of a task whose jobs are pending for as long as their responses. A response
/// without a bound counts as zero.
pub(super) fn pending_load(task: &Task, state: &StepState) -> Load {
    let response = state.response.time().unwrap_or(0);
    let released = task.jitter.saturating_add(state.offset);
    Load {
        jitter: response.max(released) - state.offset,
        ..task.load()
    }
}

/// The work of the first tasks of a resource.
#[derive(Debug)]
pub(super) struct LevelWork<'a> {
    releases: &'a Releases,
    count: usize,
    left_out: Vec<Load>,
}

impl LevelWork<'_> {
    fn add(&self, base: Time, work: u128, jobs: impl Fn(&Load) -> Time) -> Option<Time> {
        let left_out = sum(&self.left_out, jobs);
        Time::try_from(u128::from(base) + work - left_out).ok()
    }
}

impl Work for LevelWork<'_> {
    fn terms(&self, time: Time) -> usize {
        let all = match self.releases.horizon {
            Some(horizon) if time <= horizon => SEARCH * self.count.count_ones() as usize,
            _ => self.count,
        };
        all + self.left_out.len()
    }

    fn within(&self, base: Time, time: Time) -> Option<Time> {
        let jobs = |load: &Load| load.jobs_within(time);
        let work = self.releases.before(self.count, time, time);
        let work = work.map_or_else(|| sum(&self.releases.loads[..self.count], jobs), u128::from);
        self.add(base, work, jobs)
    }

    fn through(&self, base: Time, time: Time) -> Option<Time> {
        let jobs = |load: &Load| load.jobs_through(time);
        let work = self
            .releases
            .before(self.count, time, time.saturating_add(1));
        let work = work.map_or_else(|| sum(&self.releases.loads[..self.count], jobs), u128::from);
        self.add(base, work, jobs)
    }
}

/// Adds up the work of loads. That of one is cut to far more than 64 bits.
fn sum(loads: &[Load], jobs: impl Fn(&Load) -> Time) -> u128 {
    let work = |load| (u128::from(jobs(load)) * u128::from(load.cost)).min(1 << 96);
    loads.iter().map(work).sum()
}

/// The releases of loads up to a horizon.
#[derive(Debug, Default)]
struct Releases {
    loads: Vec<Load>,
    /// The longest time that the nodes know; `None` if they know none.
    horizon: Option<Time>,
    /// The nodes of the tree: times of releases plus one, zero for those before the start, each
    /// with the work of the node up to it.
    nodes: Vec<Vec<(Time, Time)>>,
}

impl Releases {
    /// Replaces the loads. Returns the number of releases.
    fn update(&mut self, loads: impl Iterator<Item = Load>) -> usize {
        let loads: Vec<_> = loads.collect();
        if loads == self.loads {
            return loads.len();
        }
        self.loads = loads;
        self.horizon = self.reach();
        let Some(horizon) = self.horizon else {
            return self.loads.len();
        };
        let mut releases = Vec::with_capacity(self.loads.len() * (RELEASES as usize + 2));
        for (position, load) in self.loads.iter().enumerate() {
            let early = load.jitter.div_ceil(load.period);
            if early > 0 {
                releases.push((0, position, early * load.cost));
            }
            let mut time = early * load.period - load.jitter;
            while time <= horizon {
                releases.push((time + 1, position, load.cost));
                time += load.period;
            }
        }
        releases.sort_unstable_by_key(|it| it.0);
        self.nodes.resize_with(self.loads.len(), Vec::new);
        self.nodes.iter_mut().for_each(Vec::clear);
        for (time, position, work) in &releases {
            let mut node = position + 1;
            while let Some(all) = self.nodes.get_mut(node - 1) {
                match all.last_mut() {
                    Some(last) if last.0 == *time => last.1 += work,
                    last => {
                        let before = last.map_or(0, |it| it.1);
                        all.push((*time, before + work));
                    }
                }
                node += node & node.wrapping_neg();
            }
        }
        releases.len()
    }

    /// Returns a horizon with about [`RELEASES`] releases of each load; `None` for times so long
    /// that their sums may exceed 64 bits.
    fn reach(&self) -> Option<Time> {
        const UNIT: u32 = 64;
        const LONGEST: u128 = 1 << 60;
        let rates = self.loads.iter();
        let rate: u128 = rates.map(|it| (1 << UNIT) / u128::from(it.period)).sum();
        let horizon = ((self.loads.len() as u128 * RELEASES) << UNIT) / rate.max(1);
        let horizon = horizon.min(LONGEST / 2);
        let each = self.loads.iter().map(|it| {
            let time = horizon + u128::from(it.jitter) + u128::from(it.period);
            let jobs = time / u128::from(it.period) + 1;
            let work = jobs.checked_mul(it.cost.into())?;
            (time.max(work) <= LONGEST).then_some(work)
        });
        let work = each.sum::<Option<u128>>()?;
        let horizon = Time::try_from(horizon).ok()?;
        (work <= LONGEST).then_some(horizon)
    }

    /// Returns the work of the first loads up to a key, for a time; `None` beyond the horizon.
    fn before(&self, count: usize, time: Time, key: Time) -> Option<Time> {
        if time > self.horizon? {
            return None;
        }
        let (mut node, mut work) = (count, 0);
        while node > 0 {
            let all = &self.nodes[node - 1];
            let releases = all.partition_point(|it| it.0 <= key);
            work += releases.checked_sub(1).map_or(0, |last| all[last].1);
            node &= node - 1;
        }
        Some(work)
    }
}
