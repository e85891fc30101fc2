//! The assignment of priorities, bands and lanes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chronorb_sched::{Preemption, assign_by_local_deadlines, assign_optimal};

use crate::analysis::{Analysis, SettledSets, of_schedule};
use crate::error::ScheduleError;
use crate::schedule::{LaneRule, PriorityRule, Schedule};
use crate::task_sets::{StepWork, TaskSets};

/// Priorities, bands and lanes of a schedule, with their analysis.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Assignment {
    /// The level of each operation from 1 on, as the rule orders them, and then of each transaction
    /// of messages only; a greater one is more urgent. Operations of one lane have one level.
    pub ranks: Vec<u32>,
    /// The band of each of these, from 0 on; those of a band share a priority.
    pub bands: Vec<usize>,
    /// The CORBA priority of each band.
    pub priorities: Vec<i16>,
    /// The CORBA priority of all sections of locks that are taken on several processors of a node,
    /// above that of every lane; `None` without such locks, or if none is above.
    pub ceiling: Option<i16>,
    /// The lanes, by processor and priority.
    pub lanes: Vec<AssignedLane>,
    /// The analysis with the bands as priorities.
    pub analysis: Analysis,
    /// The task sets with the bands as priorities.
    pub task_sets: TaskSets,
}

/// A lane with its operations.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AssignedLane {
    /// The declared name, or one of the processor and the priority.
    pub name: String,
    /// The index of the processor.
    pub processor: usize,
    /// The band.
    pub band: usize,
    /// The number of static threads.
    pub threads: u32,
    /// The indices of the operations.
    pub operations: Vec<usize>,
}

impl Assignment {
    /// Returns the CORBA priority of an operation.
    pub fn priority(&self, operation: usize) -> i16 {
        self.priorities[self.bands[operation]]
    }

    /// Returns the bands as priorities for the analysis, from 1 on.
    pub fn band_ranks(&self) -> Vec<u32> {
        self.bands.iter().map(|band| rank(*band)).collect()
    }

    /// Returns the number of levels of all processors, each of which could have its own lane. With
    /// fewer [`lanes`](Self::lanes), some levels share one.
    pub fn levels(&self, schedule: &Schedule) -> usize {
        let operations = schedule.operations.iter().zip(&self.ranks);
        let levels: BTreeSet<_> = operations.map(|(it, rank)| (it.processor, rank)).collect();
        levels.len()
    }

    /// Returns the analysis with a lane for each level; `None` if each has its own.
    ///
    /// # Errors
    /// As for [`Schedule::to_task_sets`].
    ///
    /// # Panics
    /// If the assignment is of another schedule.
    pub fn with_own_lanes(&self, schedule: &Schedule) -> Result<Option<Analysis>, ScheduleError> {
        if self.levels(schedule) <= self.lanes.len() {
            return Ok(None);
        }
        schedule
            .to_task_sets(&self.ranks)?
            .analyse(schedule)
            .map(Some)
    }
}

impl Schedule {
    /// Returns the level of each operation by the rule of the schedule, and then of each
    /// transaction of messages only; a greater one is more urgent. Operations of a declared lane
    /// have one level.
    ///
    /// # Errors
    /// As for [`to_task_sets`](Self::to_task_sets).
    pub fn ranks(&self) -> Result<Vec<u32>, ScheduleError> {
        if self.rules.priorities == PriorityRule::Declared {
            let priority = |it: &crate::Operation| {
                let of_lane = it.lane.and_then(|lane| self.lanes[lane].priority);
                let priority = of_lane.or(it.priority).unwrap_or(0);
                u32::try_from(priority).unwrap_or(0) + 1
            };
            let of_messages = self.message_transactions();
            let of_messages =
                of_messages.map(|it| u32::try_from(it.priority.unwrap_or(0)).unwrap_or(0) + 1);
            let of_operations = self.operations.iter().map(priority);
            return Ok(of_operations.chain(of_messages).collect());
        }
        let sets = self.to_task_sets(&vec![1; self.priority_count()])?;
        let ranks = self.ranks_by_time(&sets);
        match self.rules.priorities {
            PriorityRule::Optimal => self.optimal_ranks(&sets, ranks),
            PriorityRule::Holistic => self.holistic_ranks(&sets, ranks),
            PriorityRule::DeadlineMonotonic
            | PriorityRule::RateMonotonic
            | PriorityRule::Declared => Ok(ranks),
        }
    }

    /// Assigns priorities by the rule of the schedule, divides them into the fewest bands with
    /// which all deadlines are met, unless each level is to have its own lane, and makes the lanes.
    ///
    /// If a deadline is missed even with a band for each level, the result has those bands.
    ///
    /// # Errors
    /// [`ScheduleError`] for a schedule that cannot be analysed, or more levels than priorities.
    pub fn assign(&self) -> Result<Assignment, ScheduleError> {
        let ranks = self.ranks()?;
        let mut levels: Vec<_> = ranks.clone();
        levels.sort_unstable();
        levels.dedup();
        let index = |rank: u32| levels.partition_point(|level| *level < rank);
        let own: Vec<_> = ranks.iter().map(|rank| index(*rank)).collect();
        let bands = match (self.rules.priorities, self.rules.lanes) {
            (PriorityRule::Declared, _) | (_, LaneRule::Own) => own,
            (_, LaneRule::Fewest) => self.bands(own, levels.len())?,
        };
        let (bands, priorities) = self.numbered(&bands, &ranks);
        let band_ranks: Vec<_> = bands.iter().map(|band| rank(*band)).collect();
        let settled = self.to_task_sets(&band_ranks)?.settle()?;
        // What is late is said first, with as many levels as there are.
        let shared = self.shared_locks();
        let ceiling = self.ceiling(&priorities).filter(|_| !shared.is_empty());
        if settled.result.schedulable {
            self.check_levels(priorities.len())?;
            if let (None, Some((_, lock))) = (ceiling, shared.iter().min()) {
                return Err(ScheduleError::NoCeiling {
                    lock: (*lock).to_owned(),
                    priority: priorities.last().copied().unwrap_or_default(),
                });
            }
        }
        Ok(Assignment {
            ceiling,
            lanes: self.lanes_of(&bands, &priorities, &settled)?,
            ranks,
            bands,
            priorities,
            task_sets: settled.sets.clone(),
            analysis: settled.analysis(self),
        })
    }

    /// Returns the levels by deadline or period, and importance, then name.
    fn ranks_by_time(&self, sets: &TaskSets) -> Vec<u32> {
        self.ranks_by(sets, |transaction, step| {
            let it = &sets.transactions[transaction].transaction;
            let key = if self.rules.priorities == PriorityRule::RateMonotonic {
                it.period
            } else {
                let deadline = it.steps[step].deadline.unwrap_or(it.deadline);
                deadline.saturating_sub(it.jitter)
            };
            key.into()
        })
    }

    /// Returns the levels by local deadlines, if those by deadline do not fit.
    fn holistic_ranks(&self, sets: &TaskSets, ranks: Vec<u32>) -> Result<Vec<u32>, ScheduleError> {
        let by_deadline = self.to_task_sets(&ranks)?;
        if by_deadline.fits()? {
            return Ok(ranks);
        }
        let resources = sets.analysed_resources();
        let transactions = sets.analysed_transactions();
        let mut orders = vec![(by_deadline.analysed_transactions(), ranks)];
        let best = assign_by_local_deadlines(&resources, &transactions, |trial, local| {
            let ranks = self.ranks_by(sets, |transaction, step| local[transaction][step]);
            // The priorities decide what locks block, so the steps are made anew.
            if let Ok(sets) = self.to_task_sets(&ranks) {
                trial.clone_from_slice(&sets.analysed_transactions());
                orders.push((trial.to_vec(), ranks));
            }
        });
        let (best, _) = best.map_err(of_schedule)?;
        let position = orders.iter().position(|(order, _)| *order == best);
        Ok(orders.swap_remove(position.unwrap_or(0)).1)
    }

    /// Returns the levels by the least key of the steps that execute an operation, and importance,
    /// then name.
    fn ranks_by(&self, sets: &TaskSets, key: impl Fn(usize, usize) -> u128) -> Vec<u32> {
        let mut keys = vec![u128::MAX; self.operations.len()];
        for (transaction, it) in sets.transactions.iter().enumerate() {
            for (step, work) in it.works.iter().enumerate() {
                if let Some(operation) = work.executed() {
                    keys[operation] = keys[operation].min(key(transaction, step));
                }
            }
        }
        // Each unit is a declared lane, an operation without one, or a transaction of messages.
        let mut units: BTreeMap<(u8, usize), (u128, u8, &str)> = BTreeMap::new();
        for (number, it) in self.operations.iter().enumerate() {
            let name = it.lane.map_or(&it.name, |lane| &self.lanes[lane].name);
            let unit = units
                .entry(self.unit(number))
                .or_insert((u128::MAX, 0, name));
            unit.0 = unit.0.min(keys[number]);
            unit.1 = unit.1.max(it.importance);
        }
        let declared = sets.transactions.len() - self.transactions.len();
        let of_messages = self.transactions.iter().enumerate();
        let of_messages = of_messages.filter(|(_, it)| it.has_only_messages());
        for (next, (number, it)) in of_messages.enumerate() {
            let unit = self.unit(self.operations.len() + next);
            units.insert(unit, (key(declared + number, 0), 0, &it.name));
        }
        let mut order: Vec<_> = units.into_iter().collect();
        order.sort_by_key(|(unit, (time, importance, name))| {
            (Reverse(*time), *importance, Reverse(*name), *unit)
        });
        let rank_of: BTreeMap<_, _> = (order.iter().enumerate())
            .map(|(position, (unit, _))| (*unit, rank(position)))
            .collect();
        (0..self.priority_count())
            .map(|it| rank_of[&self.unit(it)])
            .collect()
    }

    /// Returns the unit of an operation, or of a transaction of messages after the operations.
    fn unit(&self, number: usize) -> (u8, usize) {
        match self.operations.get(number).map(|it| it.lane) {
            Some(None) => (0, number),
            Some(Some(lane)) => (1, lane),
            None => (2, number),
        }
    }

    /// Replaces the levels of processors whose work is independent by those of Audsley's
    /// algorithm, if that finds an order.
    fn optimal_ranks(
        &self,
        sets: &TaskSets,
        mut ranks: Vec<u32>,
    ) -> Result<Vec<u32>, ScheduleError> {
        for processor in 0..self.processors.len() {
            let own = || {
                let all = self.operations.iter().enumerate();
                all.filter(|(_, it)| it.processor == processor)
            };
            let is_plain = own().all(|(_, it)| it.lane.is_none() && it.locks.is_empty());
            let tasks = sets.tasks(processor);
            let is_independent = tasks.len() == own().count()
                && tasks
                    .iter()
                    .all(|(_, it, _)| sets.transactions[*it].works.len() == 1);
            if !is_plain || !is_independent {
                continue;
            }
            let blocking = self.processors[processor].blocking;
            let mut only: Vec<_> = tasks.iter().map(|(task, ..)| *task).collect();
            let mut operations = Vec::new();
            for ((_, transaction, step), task) in tasks.iter().zip(&mut only) {
                let StepWork::Execution { operation } =
                    sets.transactions[*transaction].works[*step]
                else {
                    continue;
                };
                task.blocking = task.blocking.max(blocking);
                task.importance = self.operations[operation].importance;
                operations.push(operation);
            }
            let unfilled = assign_optimal(&mut only, Preemption::Preemptive);
            let unfilled = unfilled.map_err(|source| ScheduleError::Analysis {
                subject: format!("processor {}", self.processors[processor].name),
                source,
            })?;
            if unfilled == 0 {
                for (operation, task) in operations.into_iter().zip(&only) {
                    ranks[operation] = task.priority;
                }
            }
        }
        Ok(ranks)
    }

    /// Merges neighbouring levels from the least urgent one up, as many as pass.
    fn bands(&self, own: Vec<usize>, levels: usize) -> Result<Vec<usize>, ScheduleError> {
        let mut bands = own;
        if !self.passes(&bands)? {
            return Ok(bands);
        }
        // Levels below `first` are merged; the others are still their own.
        let mut first = 0;
        while first < levels {
            let merged = |end: usize| {
                let merge = move |band: &usize| {
                    if (first..end).contains(band) {
                        first
                    } else {
                        *band
                    }
                };
                bands.iter().map(merge).collect::<Vec<_>>()
            };
            // A longer band delays all of it more, so bisection finds the longest one that passes.
            let (mut good, mut bad) = (first + 1, levels + 1);
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                let trial = merged(middle);
                if self.keeps_lanes_apart(&trial) && self.passes(&trial)? {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            bands = merged(good);
            first = good;
        }
        Ok(bands)
    }

    fn passes(&self, bands: &[usize]) -> Result<bool, ScheduleError> {
        let ranks: Vec<_> = bands.iter().map(|band| rank(*band)).collect();
        self.to_task_sets(&ranks)?.fits()
    }

    /// Whether declared lanes of one processor have priorities of their own.
    fn keeps_lanes_apart(&self, bands: &[usize]) -> bool {
        let mut lanes: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        self.operations
            .iter()
            .zip(bands)
            .all(|(it, band)| match it.lane {
                Some(lane) => *lanes.entry((it.processor, *band)).or_insert(lane) == lane,
                None => true,
            })
    }

    /// Numbers the bands from 0 on, and spreads CORBA priorities over them.
    fn numbered(&self, bands: &[usize], ranks: &[u32]) -> (Vec<usize>, Vec<i16>) {
        let mut used = bands.to_vec();
        used.sort_unstable();
        used.dedup();
        let position = |band: &usize| used.partition_point(|it| it < band);
        let numbered: Vec<_> = bands.iter().map(position).collect();
        if self.rules.priorities == PriorityRule::Declared {
            let mut priorities = vec![0; used.len()];
            for (band, rank) in numbered.iter().zip(ranks) {
                priorities[*band] = i16::try_from(rank - 1).unwrap_or(i16::MAX);
            }
            return (numbered, priorities);
        }
        // Evenly over the native priorities, each by the least CORBA priority that maps to it.
        let (least, greatest) = (self.rules.least, self.rules.greatest);
        let count = i64::try_from(used.len()).unwrap_or(i64::MAX);
        let range = self.available();
        let priorities = (1..=count).map(|position| {
            let step = native(least) + range * position / count - 1;
            corba(step).clamp(least, greatest)
        });
        (numbered, priorities.collect())
    }

    /// Returns the number of native priorities for lanes: one is for the sections of locks that are
    /// taken on several processors.
    fn available(&self) -> i64 {
        let ceilings = i64::from(!self.shared_locks().is_empty());
        native(self.rules.greatest) - native(self.rules.least) + 1 - ceilings
    }

    /// Returns the least CORBA priority whose native one is above those of all lanes; `None` if
    /// there is none.
    fn ceiling(&self, priorities: &[i16]) -> Option<i16> {
        let lanes = priorities.iter().max().copied()?;
        let step = native(lanes) + 1;
        (step < NATIVE_STEPS).then(|| corba(step))
    }

    /// Refuses more levels than there are priorities to assign.
    fn check_levels(&self, levels: usize) -> Result<(), ScheduleError> {
        let (least, greatest) = (self.rules.least, self.rules.greatest);
        let available = usize::try_from(self.available()).unwrap_or(0);
        if self.rules.priorities == PriorityRule::Declared || levels <= available {
            return Ok(());
        }
        Err(ScheduleError::TooFewPriorities {
            levels,
            available,
            least,
            greatest,
        })
    }

    /// Returns the lanes. One without declared threads gets as many as can have a request at once,
    /// and one that executes.
    fn lanes_of(
        &self,
        bands: &[usize],
        priorities: &[i16],
        settled: &SettledSets,
    ) -> Result<Vec<AssignedLane>, ScheduleError> {
        // The most urgent band of each processor comes first.
        let mut lanes: BTreeMap<(usize, Reverse<usize>, Option<usize>), Vec<usize>> =
            BTreeMap::new();
        for (number, (it, band)) in self.operations.iter().zip(bands).enumerate() {
            // An operation without a lane joins a declared one of its processor and band.
            let same = |(other, its_band): &(&crate::Operation, &usize)| {
                other.processor == it.processor && *its_band == band && other.lane.is_some()
            };
            let joined = || {
                let declared = self.operations.iter().zip(bands).find(same);
                declared.and_then(|(other, _)| other.lane)
            };
            let key = (it.processor, Reverse(*band), it.lane.or_else(joined));
            lanes.entry(key).or_default().push(number);
        }
        let each = lanes.into_iter();
        let each = each.map(|((processor, Reverse(band), declared), operations)| {
            let declared = declared.map(|lane| &self.lanes[lane]);
            let name = match declared {
                Some(lane) => lane.name.clone(),
                None => format!("{}-{}", self.processors[processor].name, priorities[band]),
            };
            let threads = match declared.and_then(|lane| lane.threads) {
                Some(threads) => threads,
                None => self.threads_of(&name, operations[0], settled)?,
            };
            Ok(AssignedLane {
                name,
                processor,
                band,
                threads,
                operations,
            })
        });
        each.collect()
    }

    /// Returns the threads that the lane of an operation needs; one if that has no bound, because
    /// deadlines are missed.
    fn threads_of(
        &self,
        lane: &str,
        operation: usize,
        settled: &SettledSets,
    ) -> Result<u32, ScheduleError> {
        let needed = settled
            .sets
            .threads_needed(&settled.result.responses, operation);
        let threads = needed.unwrap_or(1);
        if threads > MOST_THREADS && settled.result.schedulable {
            return Err(ScheduleError::TooManyThreads {
                lane: lane.to_owned(),
                threads,
                limit: MOST_THREADS,
            });
        }
        Ok(u32::try_from(threads.min(MOST_THREADS)).unwrap_or(1))
    }
}

/// The threads that are given to a lane which declares none, at most.
const MOST_THREADS: u64 = 64;
/// The native real-time priorities of the linear mapping of chronorb, from 1 to 98.
const NATIVE_STEPS: i64 = 98;

/// Returns the step of the linear mapping of a CORBA priority.
fn native(corba: i16) -> i64 {
    (i64::from(corba) - 1) * NATIVE_STEPS / i64::from(i16::MAX)
}

/// Returns the least CORBA priority of a step of the linear mapping.
fn corba(step: i64) -> i16 {
    let corba = (step * i64::from(i16::MAX) + NATIVE_STEPS - 1) / NATIVE_STEPS + 1;
    i16::try_from(corba).unwrap_or(i16::MAX)
}

/// Returns the priority of a position for the analysis.
fn rank(position: usize) -> u32 {
    u32::try_from(position + 1).unwrap_or(u32::MAX)
}
