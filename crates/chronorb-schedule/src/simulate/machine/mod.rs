//! The state of a simulation, and its events.

mod frames;
mod jobs;
mod links;
mod locks;
mod processors;
mod state;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use self::state::{Event, Job, Message, OpenFrame, Releases};
use super::cpu::Cpu;
use super::lane::LaneQueue;
use super::link::Port;
use super::lock::{Lock, locks};
use super::program::Program;
use super::random::Choices;
use super::run::{
    ActivityOutcome, Numbers, SimulationError, SimulationOutcome, SimulationRun, WorkSlice,
};
use super::slab::Slab;
use super::works::{Activity, Source, activities, call_order};
use crate::schedule::{DeclaredStep, Schedule, Time};

/// The events of a run, at most.
const MAX_EVENTS: u64 = 1 << 24;
/// The slices that are recorded, at most.
const MAX_SLICES: usize = 1 << 20;

impl Schedule {
    /// Simulates one run of the schedule. The module `simulate` of the source lists its rules.
    ///
    /// # Errors
    /// [`SimulationError`] for calls without end, and for more than 2²⁴ events or 2²⁰ calls in the
    /// operations.
    ///
    /// # Panics
    /// If `numbers` has not one priority, lane and number of threads for each operation.
    ///
    /// # Example
    /// ```
    /// use chronorb_schedule::{Schedule, SimulationRun};
    ///
    /// let text = r#"
    ///     [[operation]]
    ///     name = "Nav::update"
    ///     wcet = "10 ms"
    ///     period = "20 Hz"
    /// "#;
    /// let schedule = Schedule::parse("nav.toml", text, &mut |_| Err("none".into()))?;
    /// let numbers = schedule.assign()?.numbers(&schedule);
    /// let run = SimulationRun::synchronous(&schedule, 1_000_000_000);
    /// let outcome = schedule.simulate(&numbers, &run)?;
    /// assert_eq!(outcome.activities[0].works[0].longest, 10_000_000);
    /// assert_eq!((outcome.counted(), outcome.missed()), (20, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn simulate(
        &self,
        numbers: &Numbers,
        run: &SimulationRun,
    ) -> Result<SimulationOutcome, SimulationError> {
        Machine::new(self, numbers, run)?.run()
    }
}

struct Machine<'s> {
    schedule: &'s Schedule,
    numbers: &'s Numbers,
    rules: &'s SimulationRun,
    choices: Choices,
    activities: Vec<Activity>,
    programs: Vec<Program>,
    releases: Vec<Releases>,
    counted: Vec<u64>,
    jobs: Slab<Job>,
    frames: Slab<OpenFrame>,
    messages: Slab<Message>,
    cpus: Vec<Cpu>,
    lanes: Vec<LaneQueue>,
    locks: Vec<Lock>,
    /// Whether each node of a link has a port of its own.
    has_ports: Vec<bool>,
    /// By link and sending node.
    ports: BTreeMap<(usize, usize), Port>,
    changed_cpus: BTreeSet<usize>,
    changed_ports: BTreeSet<(usize, usize)>,
    events: BinaryHeap<Reverse<(Time, Event, u64)>>,
    now: Time,
    turn: u64,
    slices: Vec<WorkSlice>,
}

impl<'s> Machine<'s> {
    fn new(
        schedule: &'s Schedule,
        numbers: &'s Numbers,
        rules: &'s SimulationRun,
    ) -> Result<Self, SimulationError> {
        let count = schedule.operations.len();
        assert_eq!(
            numbers.priorities.len(),
            schedule.priority_count(),
            "one priority for each operation and transaction of messages"
        );
        assert_eq!(numbers.lane_of.len(), count, "one lane for each operation");
        assert_eq!(
            numbers.threads.len(),
            count,
            "one number of threads for each operation"
        );
        let order = call_order(schedule)?;
        let activities = activities(schedule, numbers, &order);
        let (locks, lock_numbers) = locks(schedule, numbers);
        let lock_number = |node, name: &str| lock_numbers[&(node, name)];
        let programs = Program::all(schedule, lock_number).ok_or(SimulationError::TooLong)?;
        let is_called = called(schedule);
        let releases = activities.iter().map(|it| Releases {
            threads: match it.source {
                Source::Operation(it) if schedule.operations[it].lane.is_none() => {
                    (!is_called[it]).then(|| numbers.threads[it])
                }
                Source::Operation(_) | Source::Transaction(_) => None,
            },
            ..Releases::default()
        });
        let lanes = numbers.lanes.iter().map(|lane| LaneQueue::new(*lane));
        let mut machine = Self {
            schedule,
            numbers,
            rules,
            choices: Choices::new(rules.seed),
            releases: releases.collect(),
            counted: vec![0; activities.len()],
            activities,
            programs,
            jobs: Slab::new(),
            frames: Slab::new(),
            messages: Slab::new(),
            cpus: schedule.processors.iter().map(|_| Cpu::default()).collect(),
            lanes: lanes.collect(),
            locks,
            has_ports: links::have_ports(schedule),
            ports: BTreeMap::new(),
            changed_cpus: BTreeSet::new(),
            changed_ports: BTreeSet::new(),
            events: BinaryHeap::new(),
            now: 0,
            turn: 0,
            slices: Vec::new(),
        };
        machine.begin();
        Ok(machine)
    }

    /// Schedules the first arrivals and the work outside of the file.
    fn begin(&mut self) {
        for activity in 0..self.activities.len() {
            let period = self.activities[activity].period;
            let first = if self.rules.first.is_empty() {
                self.choices.up_to(period - 1)
            } else {
                self.rules.first.get(activity).copied().unwrap_or(0)
            };
            self.push(first, Event::Arrive { activity });
        }
        for (cpu, it) in self.schedule.processors.iter().enumerate() {
            if it.blocking > 0 {
                let half = self.rules.window / 2;
                let at = self
                    .rules
                    .outside
                    .unwrap_or_else(|| self.choices.up_to(half));
                self.push(at, Event::Outside { cpu });
            }
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        let turn = self.next_turn();
        self.events.push(Reverse((at, event, turn)));
    }

    const fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn run(mut self) -> Result<SimulationOutcome, SimulationError> {
        let mut count = 0;
        while let Some(Reverse((time, ..))) = self.events.peek().copied() {
            if time > self.rules.window {
                break;
            }
            self.now = time;
            while let Some(Reverse((at, event, _))) = self.events.peek().copied() {
                if at > time {
                    break;
                }
                self.events.pop();
                count += 1;
                if count > MAX_EVENTS {
                    return Err(SimulationError::TooLong);
                }
                self.handle(event);
            }
            self.choose();
        }
        Ok(self.finish())
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Due { cpu } => {
                self.count_execution(cpu);
                if let Some(frame) = self.cpus[cpu].running {
                    self.pass_points(frame, false);
                }
                self.changed_cpus.insert(cpu);
            }
            Event::Sent { link, node } => self.sent(link, node),
            Event::Outside { cpu } => {
                self.begin_outside(cpu);
                // It has begun when jobs are released at the same time.
                self.choose_frame(cpu);
            }
            Event::Arrive { activity } => self.arrive(activity),
            Event::Release { job } => self.release(job),
            Event::Start { frame } => self.start(frame),
        }
    }

    /// Counts what has not ended.
    fn finish(mut self) -> SimulationOutcome {
        self.now = self.rules.window;
        for cpu in 0..self.cpus.len() {
            self.stop(cpu);
        }
        for job in self.jobs.iter() {
            let activity = &mut self.activities[job.activity];
            let works = activity.works.iter_mut().zip(&activity.expected);
            for ((work, expected), done) in works.zip(&job.done) {
                let left = expected.saturating_sub(*done);
                if left > 0 {
                    work.longest = work.longest.max(self.now - job.arrival);
                }
                if job.arrival.saturating_add(work.deadline) <= self.rules.window {
                    work.missed = work.missed.saturating_add(left);
                }
            }
        }
        let activities = self.activities.into_iter().zip(self.counted);
        let activities = activities.map(|(it, jobs)| ActivityOutcome {
            name: it.name,
            period: it.period,
            jobs,
            works: it.works,
        });
        SimulationOutcome {
            activities: activities.collect(),
            slices: self.slices,
        }
    }
}

/// Returns whether each operation is called, or is the step of a transaction.
fn called(schedule: &Schedule) -> Vec<bool> {
    let mut called = vec![false; schedule.operations.len()];
    for call in schedule.operations.iter().flat_map(|it| &it.calls) {
        called[call.operation] = true;
    }
    for step in schedule.transactions.iter().flat_map(|it| &it.steps) {
        if let DeclaredStep::Operation { operation } = step {
            called[*operation] = true;
        }
    }
    called
}

/// Returns a priority with room above it for work outside of the file.
const fn priority(of: u32) -> u64 {
    2 * of as u64
}
