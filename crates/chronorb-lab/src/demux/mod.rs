//! `chronorb lab demux`: what finding the target of a request costs, stage by stage.
//!
//! The papers give 2 µs to reading a request's header, 2 to finding its POA, 3 to finding its
//! servant and 2 to finding its operation, and compare strategies for each. [`Demux`] does the
//! same with this ORB: every stage, alone and all together, for one entry and for many, by each
//! strategy that can be configured. It runs in one process, without a socket; what it times is
//! what a thread of a lane calls.

mod cache;
mod claims;
mod operations;
mod outcome;
mod plan;
mod population;
mod probe;
mod report;
mod scale;
mod schedule;
mod sequence;
mod setup;

use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;

pub use cache::Caches;
pub use outcome::{Outcome, Row, Stage};
pub use plan::Plan;
pub use scale::{Many, MemoryUse, Scale};

/// The experiment.
///
/// Octets for each object and POA are counted where the program's allocator is
/// [`chronorb_rt::CountingAllocator`].
#[derive(Debug)]
pub struct Demux;

impl Experiment for Demux {
    const NAME: &'static str = "demux";
    const TITLE: &'static str = "Finding the target of a request";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        let mut environment = Environment::probe();
        let before = ProcessorTime::now();
        // First, so that what the other experiment leaves behind is not counted.
        let scale = scale::measure(plan)?;
        let (rows, hot, operation_octets) = schedule::measure(plan)?;
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            caches: Caches::probe(),
            environment,
            rows,
            hot,
            scale,
            operation_octets,
        })
    }
}
