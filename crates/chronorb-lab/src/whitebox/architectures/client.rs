//! The client: has its threads call, and says what both sides did.

use chronorb_probe::{ActivityTimes, Mark, trace_mark};
use chronorb_rt::{ThreadCounts, Usage, counts_of_others};

use super::super::counts::Counts;
use super::crowd::{Signals, connect, with_all_connected};
use super::order::{ClientOrder, Done, Found, Pass, Times};
use super::server::{HIGH, orb};
use crate::error::LabError;
use crate::idl::whitebox::Bench;
use crate::process::{self, Begin, Parent, Ready};

/// Connects, reports, waits for the beginning, calls, and says what was found.
pub(in super::super) fn call(order: &ClientOrder) -> Result<(), LabError> {
    // Whoever waits for a reply waits as long as the parent lives.
    let parent = Parent::or_exit();
    let (_, orb) = orb(&order.server)?;
    // This thread has done before the others begin, and is asleep while they call.
    let bench = connect(&orb, HIGH, &order.objects.high)?;
    let found = with_all_connected(&orb, &order.objects, order.calls, |threads| {
        asked(&bench)?;
        asked(&bench)?;
        process::tell(&Ready {})?;
        let Begin {} = parent.hear()?;
        match order.server.pass {
            Pass::Counted | Pass::Timed => count(&bench, threads),
            Pass::Traced => mark(&bench, threads).map(|()| (Process::default(), Found::default())),
        }
    });
    let (own, (process, server)) = found?;
    let of_client = own + process.others;
    process::tell(&Done {
        client: Found {
            counts: Counts::of_threads(of_client, process.usage, 0),
            times: ActivityTimes::from(of_client).into(),
        },
        server,
    })?;
    Ok(())
}

/// What the process did, but for the threads that call.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    /// Threads of the ORB.
    others: ThreadCounts,
    /// All threads.
    usage: Usage,
}

/// Has all calls made. Returns what was done by this process and by the server, which is asked before and after; what
/// that costs is found out beforehand, and taken off.
fn count(bench: &Bench, threads: &mut Signals) -> Result<(Process, Found), LabError> {
    let (first, _) = asked(bench)?;
    let (before, times_before) = asked(bench)?;
    let asking = before.since(first);
    let (others, usage) = (counts_of_others(), Usage::of_process());
    threads.run()?;
    let process = Process {
        others: counts_of_others() - others,
        usage: Usage::of_process() - usage,
    };
    let (after, times_after) = asked(bench)?;
    let server = Found {
        counts: after.since(before).since(asking),
        times: times_after.since(times_before),
    };
    Ok((process, server))
}

/// Has all calls made between marks for who traces both processes. At the server there is nothing between the first two.
fn mark(bench: &Bench, threads: &mut Signals) -> Result<(), LabError> {
    let at_server = |last| {
        let marked = bench.mark(last);
        marked.map_err(LabError::work("marking a moment at the server"))
    };
    at_server(false)?;
    at_server(false)?;
    trace_mark(Mark::Next);
    threads.run()?;
    trace_mark(Mark::Last);
    at_server(true)
}

/// What the server has done so far.
fn asked(bench: &Bench) -> Result<(Counts, Times), LabError> {
    let failed = LabError::work("asking the server what it did");
    let times = bench.times_so_far().map_err(&failed)?;
    let counts = bench.so_far().map_err(&failed)?;
    Ok((Counts::of_idl(&counts), Times::of_idl(&times)))
}
