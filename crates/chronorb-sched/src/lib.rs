//! Schedulability: task sets, their analysis, priorities, and a simulator in virtual time.
//!
//! All arithmetic is in integers, and no verdict depends on a rounding. Times are nanoseconds, or
//! any other common unit. Every analysis has a bound of its steps and checks for overflow, so any
//! input gets a result or an [`AnalysisError`].
//!
//! | need | item |
//! |---|---|
//! | a task | [`Task`] |
//! | response times under fixed priorities | [`responses`], [`is_schedulable`] |
//! | priorities | [`assign_rate_monotonic`], [`assign_deadline_monotonic`], [`assign_optimal`] |
//! | tests by utilisation | [`compare_to_processor`], [`passes_hyperbolic_bound`] |
//! | blocking by locks | [`assign_blocking`] |
//! | earliest deadline first | [`test_demand`], [`deadline_responses`] |
//! | maximum urgency first, least laxity, hybrids | [`dispatch_levels`], [`guaranteed`] |
//! | transactions over processors and links | [`analyse_sequences`], [`analyse_transactions`], [`analyse_while_on_time`], [`first_late_step`] |
//! | lanes by earliest deadline among fixed priorities | [`Step::ordered_by`] |
//! | priorities of transactions | [`assign_transactions`], [`assign_by_local_deadlines`] |
//! | few priorities or lanes | [`assign_bands`] |
//! | budgets for work without a period | [`Server`] |
//! | calls of several callers | [`merge_arrivals`] |
//! | operations of several rates | [`admit_rates`] |
//! | admission of sessions while others run | [`AdmissionControl`] |
//! | room for longer execution times | [`breakdown_factor`], [`greatest_cost`], [`bottleneck`] |
//! | a simulation of tasks, by any discipline | [`simulate`] |
//! | a simulation of transactions, with locks | [`simulate_transactions`] |
//!
//! # Example
//! ```
//! use chronorb_sched::*;
//!
//! let mut tasks = [Task::new(100, 1000), Task::new(20, 200), Task::new(15, 100)];
//! assign_deadline_monotonic(&mut tasks);
//! let times = responses(&tasks, Preemption::Preemptive)?;
//! assert_eq!(times, [150, 35, 15].map(Response::Bounded));
//!
//! let test = |tasks: &[Task]| is_schedulable(tasks, Preemption::Preemptive);
//! assert_eq!(greatest_cost(&tasks, 0, test)?, 750);
//! # Ok::<(), chronorb_sched::AnalysisError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod arrivals;
mod bands;
mod blocking;
mod edf;
mod edf_responses;
mod error;
mod exact;
mod holistic;
mod hopa;
mod levels;
mod ordered;
mod priority;
mod rates;
mod rta;
mod sensitivity;
mod servers;
mod sim;
mod system;
mod task;
mod transaction;
mod utilisation;

pub use arrivals::{Arrivals, Caller, Merge, merge_arrivals};
pub use bands::assign_bands;
pub use blocking::{LockProtocol, Section, assign_blocking};
pub use edf::{DeadlineBlocking, DemandTest, demand, test_demand};
pub use edf_responses::deadline_responses;
pub use error::AnalysisError;
pub use holistic::{
    AdmissionControl, AdmissionError, HolisticAnalysis, LateStep, SessionId, Shortfall, StepOwner,
    analyse_sequences, analyse_transactions, analyse_while_on_time, first_late_step,
};
pub use hopa::{LOCAL_UNIT, assign_by_local_deadlines, assign_transactions};
pub use levels::{
    DispatchLevel, LevelOrder, LevelStrategy, Subpriority, critical_set, dispatch_levels,
    guaranteed, laxity, subpriorities,
};
pub use priority::{assign_deadline_monotonic, assign_optimal, assign_rate_monotonic};
pub use rates::admit_rates;
pub use rta::{Preemption, Response, is_schedulable, response_within, responses};
pub use sensitivity::{MILLION, bottleneck, breakdown_factor, greatest_cost, scaled};
pub use servers::{Server, ServerKind};
pub use sim::{
    Discipline, JobCounts, JobPreemption, LateJobs, Simulation, SimulationResult, Slice, simulate,
};
pub use system::{StepSection, StepSlice, SystemResult, SystemSimulation, simulate_transactions};
pub use task::{BILLION, Load, Parts, Task, Time, share};
pub use transaction::{Resource, Step, Transaction};
pub use utilisation::{
    compare_to_processor, liu_layland_bound, passes_harmonic_bound, passes_hyperbolic_bound,
    passes_liu_layland_bound, utilisation,
};
