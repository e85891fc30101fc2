//! The ORB under each scheduling class and load.

use chronorb_rt::{MemoryLock, Rights};

use super::case::Case;
use super::class::{Class, HIGH, LOW};
use super::fleet::{Members, OsFleet};
use super::outcome::{ClassRow, Client};
use super::plan::Plan;
use crate::bench::{Cpus, Pace};
use crate::error::LabError;
use crate::stats::{Record, median};
use crate::watch::Watch;
use crate::work::Speed;

/// Measures all cases of the classes that may be used, in turn.
pub(super) fn measure(
    plan: &Plan,
    classes: &[Class],
    watch: &Watch,
) -> Result<Vec<ClassRow>, LabError> {
    let cases: Vec<Case> = cases()?
        .into_iter()
        .filter(|case| classes.contains(&case.class))
        .collect();
    let mut pooled: Vec<Pooled> = cases.iter().map(|case| Pooled::new(*case)).collect();
    let steps = Speed::measure().steps(plan.work);
    for round in 0..plan.rounds as usize {
        watch.begin(&format!(
            "scheduling classes, round {} of {}",
            round + 1,
            plan.rounds
        ));
        for index in 0..cases.len() {
            // No case always follows the same one.
            let index = (index + round * 5) % cases.len();
            pooled[index].add_round(plan, steps)?;
            watch.tick();
        }
    }
    Ok(pooled.iter().flat_map(Pooled::rows).collect())
}

/// All that this process can measure, by its rights and processors.
pub(super) fn cases() -> Result<Vec<Case>, LabError> {
    let cpus = Cpus::of_this_process()?;
    let may_lock = Rights::probe().memory_lock == MemoryLock::Unlimited;
    Ok(Case::all(cpus.are_several(), may_lock))
}

/// The rounds of one case.
struct Pooled {
    case: Case,
    high: Pool,
    low: Pool,
    busy_percent: Vec<f64>,
    stolen_percent: Vec<f64>,
}

/// The calls of one client, or of several alike.
#[derive(Default)]
struct Pool {
    calls: Record,
    p99_us: Vec<f64>,
}

impl Pool {
    fn add<'a>(&mut self, of_threads: impl Iterator<Item = &'a Record>) {
        let mut round = Record::new();
        of_threads.for_each(|calls| round.merge(calls));
        self.p99_us.push(round.summary().p99_us);
        self.calls.merge(&round);
    }
}

impl Pooled {
    fn new(case: Case) -> Self {
        Self {
            case,
            high: Pool::default(),
            low: Pool::default(),
            busy_percent: Vec::new(),
            stolen_percent: Vec::new(),
        }
    }

    fn add_round(&mut self, plan: &Plan, steps: u32) -> Result<(), LabError> {
        let low = plan.low_clients as usize;
        let mut fleet = OsFleet::start(&Members {
            class: self.case.class,
            lock_memory: self.case.memory_locked,
            placement: self.case.placement,
            load: self.case.load,
            lanes: vec![(LOW, LOW_THREADS), (HIGH, 1)],
            callers: [vec![HIGH], vec![LOW; low]].concat(),
        })?;
        let mut paces = vec![Pace::CallEvery(plan.low_period); low + 1];
        paces[0] = Pace::CallEvery(plan.high_period);
        let course = fleet.run(&paces, plan.case, steps, |_| Ok(()))?;
        fleet.stop()?;
        let (high, low) = course.measured.calls.split_at(1);
        self.high.add(high.iter());
        self.low.add(low.iter());
        self.busy_percent.push(course.busy_percent);
        self.stolen_percent.push(course.stolen_percent);
        Ok(())
    }

    fn rows(&self) -> [ClassRow; 2] {
        let middle = |values: &[f64]| median(values.iter().copied()).unwrap_or_default();
        [(Client::High, &self.high), (Client::Low, &self.low)].map(|(client, pool)| ClassRow {
            case: self.case,
            client,
            latency: pool.calls.summary(),
            p99_of_rounds_us: middle(&pool.p99_us),
            cpu_busy_percent: middle(&self.busy_percent),
            cpu_stolen_percent: middle(&self.stolen_percent),
        })
    }
}

/// The threads of the low lane; the high lane has one.
pub(super) const LOW_THREADS: u32 = 2;
