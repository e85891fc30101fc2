//! The scheduling service with many operations: how long a computation takes.

use chronorb::prelude::*;
use chronorb_rt::Monotonic;
use chronorb_sched_service::SchedulingService;
use chronorb_sched_service::idl::rtec_base::DependencyTypeT;
use chronorb_sched_service::idl::rtec_scheduler::{
    CriticalityT, ImportanceT, InfoTypeT, Scheduler,
};
use serde::Serialize;

use crate::bench::orb_arguments;
use crate::error::LabError;

/// The computations for one number of operations.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RecomputeRow {
    /// The operations.
    pub operations: u32,
    /// The calls between them.
    pub dependencies: u32,
    /// The rates of all operations that have one of their own.
    pub rates: u32,
    /// The shortest computation of the repetitions.
    pub least_ns: u64,
    /// The longest one.
    pub longest_ns: u64,
}

/// Computes schedules of some sizes.
pub(super) fn measure(repetitions: u32) -> Result<Vec<RecomputeRow>, LabError> {
    SIZES
        .into_iter()
        .map(|size| computed(size, repetitions))
        .collect()
}

/// Computes the schedule of chains: an operation with a rate calls the next ones, and each tenth
/// chain has two rates.
fn computed(operations: u32, repetitions: u32) -> Result<RecomputeRow, LabError> {
    let mut arguments = orb_arguments(&[] as &[&str]);
    let orb = Orb::init(&mut arguments).map_err(LabError::work(STARTING))?;
    let root = orb.root_poa().map_err(LabError::work(STARTING))?;
    let object = SchedulingService::new().serve_in(&root);
    let object = object.map_err(LabError::work(STARTING))?;
    root.manager()
        .activate()
        .map_err(LabError::work(STARTING))?;
    let scheduler = Scheduler::unchecked_narrow(&object);
    let (mut dependencies, mut rates) = (0, 0);
    let mut before = None;
    for number in 0..operations {
        let handle = scheduler.create(&format!("operation {number}"));
        let handle = handle.map_err(LabError::work(REGISTERING))?;
        let is_first = number % CHAIN == 0;
        // The sum of all is below half of the processor.
        let period = PERIODS[(number / CHAIN) as usize % PERIODS.len()];
        let cost = u64::from(period.unsigned_abs() / (2 * operations).max(4));
        let mut set = |period: i32| {
            rates += u32::from(period > 0);
            let criticality = CRITICALITIES[(number / CHAIN) as usize % CRITICALITIES.len()];
            let (importance, kind) = (ImportanceT::LowImportance, InfoTypeT::Operation);
            let (cost, quantum) = (cost.min(1_000), 0);
            scheduler
                .set(
                    handle,
                    criticality,
                    cost,
                    cost,
                    cost,
                    period,
                    importance,
                    quantum,
                    0,
                    kind,
                )
                .map_err(LabError::work(REGISTERING))
        };
        set(if is_first { period } else { 0 })?;
        if is_first && (number / CHAIN).is_multiple_of(10) {
            set(period * 2)?;
        }
        if let (Some(caller), false) = (before, is_first) {
            dependencies += 1;
            let kind = DependencyTypeT::TwoWayCall;
            let added = scheduler.add_dependency(caller, handle, 1, kind);
            added.map_err(LabError::work(REGISTERING))?;
        }
        before = Some(handle);
    }
    let times = (0..repetitions).map(|_| {
        let start = Monotonic::now();
        let computed = scheduler.recompute_scheduling(1, 98);
        let time = Monotonic::now().since(start);
        computed.map_err(LabError::work(COMPUTING))?;
        Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    });
    let times = times.collect::<Result<Vec<_>, LabError>>()?;
    orb.shutdown(true).map_err(LabError::work(STARTING))?;
    Ok(RecomputeRow {
        operations,
        dependencies,
        rates,
        least_ns: times.iter().copied().min().unwrap_or(0),
        longest_ns: times.iter().copied().max().unwrap_or(0),
    })
}

const SIZES: [u32; 3] = [10, 100, 1_000];
/// The operations of a chain of calls.
const CHAIN: u32 = 5;
/// The periods of 40, 20, 10, 5 and 1 Hz, in 100 ns.
const PERIODS: [i32; 5] = [250_000, 500_000, 1_000_000, 2_000_000, 10_000_000];
const CRITICALITIES: [CriticalityT; 3] = [
    CriticalityT::LowCriticality,
    CriticalityT::MediumCriticality,
    CriticalityT::HighCriticality,
];
const STARTING: &str = "starting a scheduling service";
const REGISTERING: &str = "registering operations";
const COMPUTING: &str = "computing a schedule";
