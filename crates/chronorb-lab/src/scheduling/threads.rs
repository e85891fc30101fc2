//! The cost of scheduling segments and of calls within them, and the time of a cancellation.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_orb::rtscheduling::{Guid, Monotonic, SchedulingCurrent, SegmentError};
use chronorb_report::stats::median;
use chronorb_rt::{Deadline, allocations};
use serde::Serialize;

use super::SchedulingPlan;
use super::fleet::PATIENCE;
use super::nodes::{Node, TimedWork, perform};
use crate::error::LabError;
use crate::watch::Watch;

/// The figures of the part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SegmentFigures {
    /// The costs.
    pub costs: Vec<SegmentCostRow>,
    /// The allocations of the calling thread in the calls within segments.
    pub allocations: u64,
    /// The times of cancellations, by the number of calls between root and head.
    pub cancellations: Vec<CancellationRow>,
}

/// The time of one operation.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentCostRow {
    /// The operation.
    pub what: String,
    /// The time of one, the median of batches.
    pub median_ns: f64,
    /// The time above that of a call outside of segments, the median of the differences of batches;
    /// `None` where it is no call.
    pub extra_ns: Option<f64>,
}

/// One cancellation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CancellationRow {
    /// The calls between the root of the thread, where it is cancelled, and its head.
    pub hops: u32,
    /// The time from the cancellation to the exception at the head.
    pub latency_ns: u64,
}

/// Measures costs and cancellations.
pub(super) fn measure(plan: &SchedulingPlan, watch: &Watch) -> Result<SegmentFigures, LabError> {
    let mut figures = SegmentFigures::default();
    watch.begin("segments");
    costs(plan, &mut figures)?;
    watch.begin("cancellations");
    for hops in [1, 3] {
        cancellations(hops, plan.cancellations, &mut figures.cancellations)?;
    }
    Ok(figures)
}

fn costs(plan: &SchedulingPlan, figures: &mut SegmentFigures) -> Result<(), LabError> {
    let (client, server) = (Node::start(&[])?, Node::start(&[])?);
    let plain = server.serve(|_| Ok(()))?;
    let nesting = server.serve(|call| {
        let current = call.orb().scheduling_current();
        let segment = current.segment("nested", None, None);
        segment.map(drop).map_err(exception)
    })?;
    let [plain, nesting] = [plain, nesting].map(|object| client.see(&server, &object));
    let (plain, nesting) = (plain?, nesting?);
    let current = client.orb.scheduling_current();
    let calls = |object: &Object| {
        (0..plan.calls).try_for_each(|_| perform(object).map_err(LabError::work(CALLING)))
    };
    let within = |object: &Object| {
        let _segment = current.segment("root", None, None);
        calls(object)
    };
    let segments = || {
        (0..plan.calls).try_for_each(|_| {
            let segment = current.segment("root", None, None);
            segment.map(drop).map_err(LabError::work(CALLING))
        })
    };
    let nested = || {
        let _segment = current.segment("root", None, None);
        segments()
    };
    let works: [TimedWork<'_>; 5] = [
        ("call outside of segments", &|| calls(&plain)),
        ("call within a segment", &|| within(&plain)),
        ("call with a nested segment at the server", &|| {
            within(&nesting)
        }),
        ("begin and end of a thread", &segments),
        ("begin and end of a nested segment", &nested),
    ];
    let mut times = works.map(|_| Vec::new());
    // Each order of the works occurs equally often, and the first batch is not counted.
    for batch in 0..=plan.batches {
        for step in 0..works.len() {
            let number = (step + batch as usize) % works.len();
            let (allocated, start) = (allocations(), Monotonic::now());
            works[number].1()?;
            let time = Monotonic::now().since(start);
            if batch > 0 && (1..=2).contains(&number) {
                figures.allocations += allocations() - allocated;
            }
            if batch > 0 {
                times[number].push(time.as_nanos() as f64 / f64::from(plan.calls));
            }
        }
    }
    let outside = times[0].clone();
    for (number, ((what, _), times)) in works.iter().zip(&times).enumerate() {
        let extra = times.iter().zip(&outside).map(|(time, other)| time - other);
        figures.costs.push(SegmentCostRow {
            what: (*what).to_owned(),
            median_ns: median(times.iter().copied()).unwrap_or(0.0),
            extra_ns: if (1..=2).contains(&number) {
                median(extra)
            } else {
                None
            },
        });
    }
    Ok(())
}

/// Cancels threads whose heads are some calls away from their roots.
fn cancellations(hops: u32, count: u32, rows: &mut Vec<CancellationRow>) -> Result<(), LabError> {
    let nodes = (0..=hops).map(|_| Node::start(&[]));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let (arrived, arrivals) = mpsc::channel::<Guid>();
    let (raised, raises) = mpsc::channel();
    let last = nodes.len() - 1;
    let mut object = nodes[last].serve(move |call| {
        let current = call.orb().scheduling_current();
        let _ = arrived.send(current.id()?);
        let exception = work(&current);
        let _ = raised.send(Monotonic::now());
        exception.map_or(Ok(()), Err)
    })?;
    for number in (1..last).rev() {
        let onward = nodes[number].see(&nodes[number + 1], &object)?;
        object = nodes[number].serve(move |_| perform(&onward))?;
    }
    let object = nodes[0].see(&nodes[1], &object)?;
    let current = nodes[0].orb.scheduling_current();
    for _ in 0..count {
        let latency = thread::scope(|scope| {
            let (object, current) = (&object, &current);
            scope.spawn(move || {
                let _segment = current.segment("root", None, None);
                let _cancelled = perform(object);
            });
            let id = arrivals.recv_timeout(PATIENCE).ok()?;
            let root = current.lookup(id)?;
            let start = Monotonic::now();
            root.cancel();
            let end = raises.recv_timeout(PATIENCE).ok()?;
            Some(end.since(start))
        });
        let lost = || LabError::work(CANCELLING)("the head was not reached");
        let latency = latency.ok_or_else(lost)?;
        let latency_ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        rows.push(CancellationRow { hops, latency_ns });
    }
    Ok(())
}

/// Passes scheduling points until one raises an exception.
fn work(current: &SchedulingCurrent) -> Option<SystemException> {
    let deadline = Deadline::after(PATIENCE);
    while !deadline.has_passed() {
        if let Err(error) = current.segment("work", None, None) {
            return Some(exception(error));
        }
        thread::yield_now();
    }
    None
}

fn exception(error: SegmentError) -> SystemException {
    match error {
        SegmentError::System(exception) => exception,
        _ => SystemException::no(SystemExceptionKind::Internal, 0),
    }
}

/// About the time of the part.
pub(super) fn length(plan: &SchedulingPlan) -> Duration {
    let calls = plan.batches * plan.calls * 5;
    Duration::from_micros(60) * calls + Duration::from_millis(2) * plan.cancellations
}

const CALLING: &str = "calling";
const CANCELLING: &str = "cancelling a distributable thread";
