//! The client: its threads call, and it reports the costs of both sides.
//!
//! One thread has a high priority, and nine a low one.
//! Octets in pipes tell them to begin, and report their ends. That costs each of them one `read`
//! and one `write` a run, and no futex call: only those of the ORB are to be counted.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;

use chronorb::prelude::*;
use chronorb_probe::{Activity, counts_of_this_thread, doing};
use chronorb_rt::{ThreadCounts, Usage, counts_of_others};

use super::super::CLIENTS;
use super::super::case::WhiteboxCase;
use super::super::client::{connect, count, mark, server_so_far};
use super::super::counts::ProcessCosts;
use super::super::order::{ClientPart, Pass};
use super::super::server::{HIGH, LOW, orb};
use crate::error::LabError;
use crate::idl::whitebox::Bench;
use crate::process::{self, Begin, Parent, Ready};

/// Connects, reports, waits for the order to begin, calls, and reports the costs of both sides.
pub(in super::super) fn call(
    case: &WhiteboxCase,
    pass: Pass,
    part: &ClientPart,
) -> Result<(), LabError> {
    // A call waits for its reply as long as the parent lives.
    let parent = Parent::or_exit();
    let orb = orb(case, pass)?;
    // This thread is asleep while the others call.
    let bench = connect(&orb, Some(HIGH), &part.objects[0])?;
    let (callers, [others, server]) = with_callers(&orb, part, |threads| {
        server_so_far(&bench)?;
        process::tell(&Ready {})?;
        let Begin {} = parent.hear()?;
        if pass == Pass::Trace {
            mark(Some(&bench), 1, || threads.run())?;
            return Ok([None; 2]);
        }
        let others = || ProcessCosts::of_threads(counts_of_others(), Usage::of_process(), 0);
        count(Some(&bench), others, 1, || threads.run())
    })?;
    let callers = ProcessCosts::of_threads(callers, Usage::default(), 0);
    process::tell(&[others.map(|others| others.plus(callers)), server])?;
    Ok(())
}

/// Has all threads connect and call for a while, then calls `around`, which lets them make their
/// calls. Returns the counts of these calls, and the result of `around`.
fn with_callers<R>(
    orb: &Orb,
    part: &ClientPart,
    around: impl FnOnce(&mut Signals) -> Result<R, LabError>,
) -> Result<(ThreadCounts, R), LabError> {
    let (mut signals, ends) = signals().map_err(LabError::work("making pipes"))?;
    thread::scope(|scope| {
        let threads = (0..).zip(ends).map(|(number, ends)| {
            let is_high = number == 0;
            let priority = if is_high { HIGH } else { LOW };
            let object = &part.objects[usize::from(!is_high)];
            scope.spawn(move || run(orb, priority, object, part.calls, ends))
        });
        let threads: Vec<_> = threads.collect();
        let result = signals.await_all().and_then(|()| around(&mut signals));
        // The threads that still wait for a signal end.
        drop(signals);
        let mut all = ThreadCounts::default();
        for thread in threads {
            let counts = thread.join().map_err(|_| {
                LabError::work("calling the server")("a thread of the client has panicked")
            })?;
            all = all + counts?;
        }
        Ok((all, result?))
    })
}

/// The signals to and from all threads.
#[derive(Debug)]
struct Signals {
    begin: Vec<PipeWriter>,
    end: PipeReader,
}

impl Signals {
    /// Lets all threads make their calls, and waits for their ends.
    fn run(&mut self) -> Result<(), LabError> {
        for thread in &mut self.begin {
            let sent = thread.write_all(&[1]);
            sent.map_err(LabError::work("letting the clients begin"))?;
        }
        self.await_all()
    }

    fn await_all(&mut self) -> Result<(), LabError> {
        let mut all = [0; CLIENTS as usize];
        let received = self.end.read_exact(&mut all);
        received.map_err(LabError::work("waiting for the clients"))
    }
}

/// The pipes of a thread.
struct ThreadSignals {
    begin: PipeReader,
    end: PipeWriter,
}

impl ThreadSignals {
    /// Reports the end of a step, even of one that failed: the first thread waits for all.
    fn report_end(&mut self) -> Result<(), LabError> {
        let sent = self.end.write_all(&[1]);
        sent.map_err(LabError::work("reporting the end of a client's calls"))
    }

    /// Waits for the signal to begin the next step: whether there is one.
    fn begins(&mut self) -> bool {
        self.begin.read_exact(&mut [0]).is_ok()
    }
}

fn signals() -> io::Result<(Signals, Vec<ThreadSignals>)> {
    let (end, end_of_thread) = pipe()?;
    let (mut begin, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..CLIENTS {
        let (reader, writer) = pipe()?;
        begin.push(writer);
        threads.push(ThreadSignals {
            begin: reader,
            end: end_of_thread.try_clone()?,
        });
    }
    Ok((Signals { begin, end }, threads))
}

/// Calls for a while, then makes the calls that are counted, and returns their counts.
fn run(
    orb: &Orb,
    priority: Priority,
    object: &str,
    calls: u32,
    mut signals: ThreadSignals,
) -> Result<ThreadCounts, LabError> {
    let connect = || {
        let bench = connect(orb, Some(priority), object)?;
        make_calls(&bench, WARM_UP_CALLS)?;
        Ok::<_, LabError>(bench)
    };
    let connected = connect();
    signals.report_end()?;
    let bench = connected?;
    // No signal comes after the failure of another thread, which is reported.
    if !signals.begins() {
        return Ok(ThreadCounts::default());
    }
    let before = counts_of_this_thread();
    let called = make_calls(&bench, calls);
    let after = counts_of_this_thread();
    signals.report_end()?;
    called?;
    // All threads stay until all is counted.
    signals.begins();
    Ok(after - before)
}

/// Makes calls back to back.
fn make_calls(bench: &Bench, calls: u32) -> Result<(), LabError> {
    let _counting = doing(Activity::Application);
    for _ in 0..calls {
        drop(doing(Activity::Nothing));
        let calling = doing(Activity::Other);
        let cube = bench.cube(11);
        drop(calling);
        let cube = cube.map_err(LabError::work("calling the server"))?;
        if cube != 1331 {
            return Err(LabError::work("calling the server")("the answer is wrong"));
        }
    }
    Ok(())
}

/// Enough calls to have all memory mapped on both sides.
const WARM_UP_CALLS: u32 = 200;
