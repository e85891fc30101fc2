//! The client: its threads call, and it reports the costs of both sides.

use chronorb_probe::{Mark, trace_mark};
use chronorb_rt::{ThreadCounts, Usage, counts_of_others};

use super::super::client::{connect, find, mark_server, server_so_far};
use super::super::counts::ProcessCosts;
use super::super::order::{ClientPart, Pass};
use super::callers::{Signals, with_callers};
use super::configuration::{Configuration, HIGH};
use crate::error::LabError;
use crate::idl::whitebox::Bench;
use crate::process::{self, Begin, Parent, Ready};

/// Connects, reports, waits for the order to begin, calls, and reports the costs of both sides.
pub(in super::super) fn call(
    configuration: &Configuration,
    pass: Pass,
    part: &ClientPart,
) -> Result<(), LabError> {
    // A call waits for its reply as long as the parent lives.
    let parent = Parent::or_exit();
    let orb = configuration.orb(pass)?;
    // This thread is asleep while the others call.
    let bench = connect(&orb, Some(HIGH), &find(&orb, &part.objects[0])?)?;
    let (callers, (others, usage, server)) = with_callers(&orb, part, |threads| {
        server_so_far(&bench)?;
        server_so_far(&bench)?;
        process::tell(&Ready {})?;
        let Begin {} = parent.hear()?;
        if pass == Pass::Trace {
            mark(&bench, threads)?;
            Ok((ThreadCounts::default(), Usage::default(), None))
        } else {
            count(&bench, threads)
        }
    })?;
    let client = ProcessCosts::of_threads(callers + others, usage, 0);
    process::tell(&[Some(client), server])?;
    Ok(())
}

/// Has all calls made. Returns the counts of the ORB's threads, the usage of the process, and the
/// costs of the server. The server is asked before and after; the counts of asking are measured
/// beforehand and subtracted.
fn count(
    bench: &Bench,
    threads: &mut Signals,
) -> Result<(ThreadCounts, Usage, Option<ProcessCosts>), LabError> {
    let first = server_so_far(bench)?;
    let before = server_so_far(bench)?;
    let asking = before.since(first);
    let (others, usage) = (counts_of_others(), Usage::of_process());
    threads.run()?;
    let others = counts_of_others() - others;
    let usage = Usage::of_process() - usage;
    let mut server = server_so_far(bench)?.since(before);
    server.counts = server.counts.since(asking.counts);
    Ok((others, usage, Some(server)))
}

/// Has all calls made between marks for the tracers of both processes. At the server, nothing is
/// between the first two marks.
fn mark(bench: &Bench, threads: &mut Signals) -> Result<(), LabError> {
    mark_server(bench, false)?;
    mark_server(bench, false)?;
    trace_mark(Mark::Next);
    threads.run()?;
    trace_mark(Mark::Last);
    mark_server(bench, true)
}
