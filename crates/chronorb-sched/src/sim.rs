//! A simulator in virtual time: jobs of tasks on one or several processors.
//!
//! At one instant, jobs end first, then deadlines pass, then jobs are released, and then the
//! processors choose.

use std::cmp::Reverse;
use std::collections::VecDeque;

use crate::error::AnalysisError;
use crate::levels::laxity;
use crate::rta::Preemption;
use crate::task::{Task, Time, validate};

/// The order of waiting jobs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Discipline {
    /// Priority, importance, release, number of the task.
    #[default]
    FixedPriority,
    /// Absolute deadline, importance, number of the task.
    EarliestDeadline,
    /// Laxity, importance, number of the task.
    LeastLaxity,
    /// Criticality, then as by least laxity.
    MaximumUrgency,
}

/// The jobs that a running job yields to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum JobPreemption {
    /// Every more urgent job.
    #[default]
    Always,
    /// A job of a better level: of higher criticality or priority. Deadline and laxity alone are
    /// one level.
    BetweenLevels,
    /// None.
    Never,
}

impl From<Preemption> for JobPreemption {
    fn from(preemption: Preemption) -> Self {
        match preemption {
            Preemption::Preemptive => Self::Always,
            Preemption::NonPreemptive => Self::Never,
        }
    }
}

/// The treatment of jobs that have not ended at their deadline.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LateJobs {
    /// They go on, and count as missed.
    #[default]
    GoOn,
    /// They are aborted.
    Abort,
}

/// The rules of a simulation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Simulation {
    /// The order of waiting jobs.
    pub discipline: Discipline,
    /// The jobs that a running job yields to.
    pub preemption: JobPreemption,
    /// The treatment of late jobs.
    pub late: LateJobs,
    /// Whether a running job stays before waiting ones of the same deadline or laxity.
    pub running_first: bool,
    /// The number of processors, which run any job.
    pub processors: usize,
    /// The time at which the simulation ends. A job counts if its deadline is not after it.
    pub window: Time,
    /// The time after which laxity is compared again; zero compares at releases and ends only.
    pub quantum: Time,
    /// Whether [`SimulationResult::slices`] is filled.
    pub record: bool,
}

impl Simulation {
    /// Creates preemptive fixed priorities on one processor, from zero to `window`.
    pub const fn new(window: Time) -> Self {
        Self {
            discipline: Discipline::FixedPriority,
            preemption: JobPreemption::Always,
            late: LateJobs::GoOn,
            running_first: true,
            processors: 1,
            window,
            quantum: 0,
            record: false,
        }
    }
}

/// The jobs of one task in a simulation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct JobCounts {
    /// Jobs that ended at their deadline or before.
    pub met: u64,
    /// Jobs that ended later, were aborted, or had not ended at the end of the window.
    pub missed: u64,
    /// The longest time from the arrival to the end of a job that ended.
    pub worst_response: Time,
}

/// A time in which a job runs without interruption.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slice {
    /// The index of the task.
    pub task: usize,
    /// The number of the job, from 0.
    pub job: u64,
    /// The processor.
    pub processor: usize,
    /// The start.
    pub start: Time,
    /// The end.
    pub end: Time,
}

/// The result of a simulation.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SimulationResult {
    /// The jobs of each task.
    pub tasks: Vec<JobCounts>,
    /// The slices in the order of their ends, if they are recorded.
    pub slices: Vec<Slice>,
    /// The instants at which the processors chose.
    pub events: u64,
}

/// Simulates tasks that need their whole execution time in each job.
///
/// `delay` returns the time from the arrival to the release of a job, by task and number of the
/// job; at most the jitter of the task counts. Jobs of one task run in their order, one at a time.
///
/// # Errors
/// [`AnalysisError`] for tasks with zero values or no processor, and [`AnalysisError::TooComplex`]
/// after 2²² events.
///
/// # Example
/// ```
/// use chronorb_sched::{Discipline, Simulation, Task, simulate};
///
/// let tasks = [Task::new(2, 5).with_priority(2), Task::new(4, 7).with_priority(1)];
/// let mut rules = Simulation::new(35);
/// let fixed = simulate(&tasks, &rules, |_, _| 0)?;
/// assert_eq!(fixed.tasks[1].worst_response, 8);
/// rules.discipline = Discipline::EarliestDeadline;
/// assert_eq!(simulate(&tasks, &rules, |_, _| 0)?.tasks[1].missed, 0);
/// # Ok::<(), chronorb_sched::AnalysisError>(())
/// ```
pub fn simulate(
    tasks: &[Task],
    rules: &Simulation,
    delay: impl FnMut(usize, u64) -> Time,
) -> Result<SimulationResult, AnalysisError> {
    validate(tasks)?;
    if rules.processors == 0 {
        return Err(AnalysisError::NoSuchIndex {
            what: "processor",
            index: 0,
        });
    }
    let mut machine = Machine::new(tasks, rules, delay);
    loop {
        machine.end_jobs();
        machine.pass_deadlines();
        if machine.now >= rules.window {
            return Ok(machine.finish());
        }
        machine.release();
        machine.choose();
        machine.advance()?;
    }
}

const MAX_EVENTS: u64 = 1 << 22;

#[derive(Clone, Copy, Debug)]
struct Job {
    number: u64,
    arrival: Time,
    release: Time,
    deadline: Time,
    remaining: Time,
}

/// The state of a task: its released jobs, and the next one.
#[derive(Debug)]
struct TaskState {
    queue: VecDeque<Job>,
    /// `None` if the next arrival exceeds 64 bits.
    next: Option<Job>,
    /// The processor on which the first job of the queue runs.
    running: Option<usize>,
    /// The start of the slice that is open.
    since: Time,
}

struct Machine<'a, D> {
    tasks: &'a [Task],
    rules: &'a Simulation,
    delay: D,
    now: Time,
    states: Vec<TaskState>,
    result: SimulationResult,
}

impl<'a, D: FnMut(usize, u64) -> Time> Machine<'a, D> {
    fn new(tasks: &'a [Task], rules: &'a Simulation, mut delay: D) -> Self {
        let states = tasks.iter().enumerate().map(|(i, task)| {
            let late = delay(i, 0).min(task.jitter);
            TaskState {
                queue: VecDeque::new(),
                next: Some(task.job(0, task.offset, task.offset.saturating_add(late))),
                running: None,
                since: 0,
            }
        });
        Self {
            states: states.collect(),
            result: SimulationResult {
                tasks: vec![JobCounts::default(); tasks.len()],
                ..SimulationResult::default()
            },
            tasks,
            rules,
            delay,
            now: 0,
        }
    }

    fn end_jobs(&mut self) {
        for i in 0..self.states.len() {
            let front = self.states[i].queue.front();
            let Some(job) = front.filter(|job| job.remaining == 0).copied() else {
                continue;
            };
            self.remove_first(i);
            let counts = &mut self.result.tasks[i];
            counts.worst_response = counts.worst_response.max(self.now - job.arrival);
            if job.deadline <= self.rules.window {
                if self.now <= job.deadline {
                    counts.met += 1;
                } else {
                    counts.missed += 1;
                }
            }
        }
    }

    fn pass_deadlines(&mut self) {
        if self.rules.late == LateJobs::GoOn {
            return;
        }
        for i in 0..self.states.len() {
            while (self.states[i].queue.front()).is_some_and(|job| job.deadline <= self.now) {
                self.remove_first(i);
                self.result.tasks[i].missed += 1;
            }
        }
    }

    fn remove_first(&mut self, task: usize) {
        self.stop(task);
        self.states[task].queue.pop_front();
    }

    /// Closes the slice of a task.
    fn stop(&mut self, task: usize) {
        let state = &mut self.states[task];
        let Some(processor) = state.running.take() else {
            return;
        };
        let first = state.queue.front();
        if let Some(job) = first.filter(|_| self.rules.record && state.since < self.now) {
            self.result.slices.push(Slice {
                task,
                job: job.number,
                processor,
                start: state.since,
                end: self.now,
            });
        }
    }

    fn release(&mut self) {
        for (i, state) in self.states.iter_mut().enumerate() {
            let task = &self.tasks[i];
            while let Some(job) = state.next.filter(|job| job.release <= self.now) {
                state.queue.push_back(job);
                let number = job.number + 1;
                state.next = job.arrival.checked_add(task.period).map(|arrival| {
                    let late = (self.delay)(i, number).min(task.jitter);
                    let release = arrival.saturating_add(late).max(job.release);
                    task.job(number, arrival, release)
                });
            }
        }
    }

    fn choose(&mut self) {
        let mut ready: Vec<_> = (0..self.states.len())
            .filter(|i| !self.states[*i].queue.is_empty())
            .collect();
        ready.sort_by_cached_key(|i| self.urgency(*i));
        for i in ready.iter().skip(self.rules.processors) {
            self.stop(*i);
        }
        ready.truncate(self.rules.processors);
        let mut is_free = vec![true; self.rules.processors.min(self.states.len())];
        for i in &ready {
            if let Some(processor) = self.states[*i].running {
                is_free[processor] = false;
            }
        }
        let mut free = (0..is_free.len()).filter(|processor| is_free[*processor]);
        for i in ready {
            let state = &mut self.states[i];
            if state.running.is_none() {
                state.running = free.next();
                state.since = self.now;
            }
        }
    }

    /// Returns the key of the first job of a task; the least is the most urgent.
    fn urgency(&self, i: usize) -> impl Ord + use<D> {
        let (task, state) = (&self.tasks[i], &self.states[i]);
        let (release, deadline, remaining) = (state.queue.front())
            .map_or((0, 0, 0), |job| (job.release, job.deadline, job.remaining));
        let waits = state.running.is_none();
        let (never, between) = match self.rules.preemption {
            JobPreemption::Always => (false, false),
            JobPreemption::BetweenLevels => (false, waits),
            JobPreemption::Never => (waits, false),
        };
        let waits = waits && self.rules.running_first;
        let by_laxity = laxity(deadline, self.now, remaining);
        let (level, urgency, waits, release) = match self.rules.discipline {
            Discipline::FixedPriority => (task.priority, 0, false, release),
            Discipline::EarliestDeadline => (0, deadline.into(), waits, 0),
            Discipline::LeastLaxity => (0, by_laxity, waits, 0),
            Discipline::MaximumUrgency => (task.criticality.into(), by_laxity, waits, 0),
        };
        let level = Reverse(level);
        let importance = Reverse(task.importance);
        (
            never, level, between, urgency, waits, importance, release, i,
        )
    }

    /// Runs the chosen jobs to the next event.
    fn advance(&mut self) -> Result<(), AnalysisError> {
        self.result.events += 1;
        if self.result.events > MAX_EVENTS {
            return Err(AnalysisError::TooComplex);
        }
        let mut next = self.rules.window;
        let mut waiting = false;
        for state in &self.states {
            if let Some(job) = &state.next {
                next = next.min(job.release);
            }
            let Some(job) = state.queue.front() else {
                continue;
            };
            if state.running.is_some() {
                next = next.min(self.now.saturating_add(job.remaining));
            } else {
                waiting = true;
            }
            if self.rules.late == LateJobs::Abort {
                next = next.min(job.deadline.max(self.now));
            }
        }
        let by_laxity = matches!(
            self.rules.discipline,
            Discipline::LeastLaxity | Discipline::MaximumUrgency
        );
        if by_laxity && waiting && self.rules.quantum > 0 {
            next = next.min(self.now.saturating_add(self.rules.quantum));
        }
        let time = next - self.now;
        for state in &mut self.states {
            if state.running.is_some()
                && let Some(job) = state.queue.front_mut()
            {
                job.remaining -= time;
            }
        }
        self.now = next;
        Ok(())
    }

    fn finish(mut self) -> SimulationResult {
        for i in 0..self.states.len() {
            self.stop(i);
            let state = &self.states[i];
            let unfinished = state.queue.iter().copied().chain(state.next);
            let late = unfinished.filter(|job| job.deadline <= self.rules.window);
            self.result.tasks[i].missed += late.count() as u64;
        }
        self.result
    }
}

impl Task {
    const fn job(&self, number: u64, arrival: Time, release: Time) -> Job {
        Job {
            number,
            arrival,
            release,
            deadline: arrival.saturating_add(self.deadline),
            remaining: self.cost,
        }
    }
}
