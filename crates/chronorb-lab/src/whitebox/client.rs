//! The client of a case, which makes the calls and counts their costs.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_cdr::octets_copied;
use chronorb_probe::{Mark, trace_mark};
use chronorb_rt::{Deadline, ThreadInfo, ThreadState};

use super::case::{CallKind, MIRRORED, ObjectPlace, WhiteboxCase};
use super::counts::ProcessCosts;
use super::order::{ClientPart, Pass};
use super::server::{HIGH, offer, orb};
use crate::bench::work::set_priority;
use crate::error::LabError;
use crate::idl::whitebox::{Bench, Quote};
use crate::process::{self, Begin, Parent, Ready};

/// Connects, reports, waits for the order to begin, calls, and reports the costs of both sides.
pub(super) fn call(case: &WhiteboxCase, pass: Pass, part: &ClientPart) -> Result<(), LabError> {
    // A call waits for its reply as long as the parent lives.
    let parent = Parent::or_exit();
    let orb = orb(case, pass)?;
    let mut objects = part.objects.clone();
    if !case.has_server() {
        objects = offer(&orb, case.place)?;
    }
    let priority = (case.place == ObjectPlace::Lane).then_some(HIGH);
    let bench = connect(&orb, priority, &objects[0])?;
    let mut caller = Caller::new(case.kind, &bench)?;
    for _ in 0..WARM_UP_CALLS {
        caller.call()?;
        if case.has_server() {
            server_so_far(&bench)?;
        }
    }
    if !case.has_server() {
        await_own_threads();
    }
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    let server = case.has_server().then_some(&bench);
    let calls = || (0..part.calls).try_for_each(|_| caller.call());
    let costs = if pass == Pass::Trace {
        mark(server, RUNS, calls)?;
        [None; 2]
    } else {
        let so_far = || ProcessCosts::so_far(octets_copied());
        count(server, so_far, RUNS, calls)?
    };
    process::tell(&costs)?;
    Ok(())
}

/// Waits until the threads of the ORB in this process wait for requests: a call within the process
/// waits for none of them, and the beginning of a thread allocates.
fn await_own_threads() {
    let is_busy = |thread: &ThreadInfo| thread.state == ThreadState::Running;
    let limit = Deadline::after(START_LIMIT);
    while chronorb_rt::list().iter().any(is_busy) && !limit.has_passed() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Counts the calls of some runs, at client and server. The server is asked before and after each
/// run, which is a call by itself; its counts are measured beforehand and subtracted, as are those
/// of counting in this process by `so_far`.
pub(super) fn count(
    server: Option<&Bench>,
    so_far: impl Fn() -> ProcessCosts,
    runs: u32,
    mut calls: impl FnMut() -> Result<(), LabError>,
) -> Result<[Option<ProcessCosts>; 2], LabError> {
    let ask = || server.map(server_so_far).transpose();
    let since = |after: Option<ProcessCosts>, before: Option<ProcessCosts>| {
        after.zip(before).map(|(after, before)| after.since(before))
    };
    let first = ask()?;
    let asking = since(ask()?, first).unwrap_or_default().counts;
    let first = so_far();
    let counting = so_far().since(first).counts;
    let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let (server, client) = (ask()?, so_far());
        calls()?;
        of_client.push(so_far().since(client).without(counting));
        let served = since(ask()?, server);
        of_server.extend(served.map(|costs| costs.without(asking)));
    }
    Ok([of_client, of_server].map(|runs| ProcessCosts::of_runs(&runs)))
}

/// Makes the calls of some runs, with marks for the tracers of this process and of the server. At
/// the client, runs and the pauses between them take turns; at the server nothing is between the
/// first two marks, then follow the runs, each with the mark after it.
pub(super) fn mark(
    server: Option<&Bench>,
    runs: u32,
    mut calls: impl FnMut() -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mark_server = |last| {
        let marked = server.map_or(Ok(()), |server| server.mark(last));
        marked.map_err(LabError::work("marking a moment at the server"))
    };
    mark_server(false)?;
    mark_server(false)?;
    for run in 1..=runs {
        let last = run == runs;
        trace_mark(Mark::Next);
        calls()?;
        trace_mark(if last { Mark::Last } else { Mark::Next });
        mark_server(last)?;
    }
    Ok(())
}

/// Gives the calling thread a priority, and finds an object.
pub(super) fn connect(
    orb: &Orb,
    priority: Option<Priority>,
    reference: &str,
) -> Result<Bench, LabError> {
    if let Some(priority) = priority {
        set_priority(orb, priority)?;
    }
    let bench = orb
        .string_to_object(reference)
        .and_then(|object| Bench::narrow(&object))
        .map_err(LabError::work("finding the object"))?;
    bench.ok_or_else(|| LabError::work("finding the object")("it is no bench"))
}

/// Returns the costs of the server so far.
pub(super) fn server_so_far(bench: &Bench) -> Result<ProcessCosts, LabError> {
    let costs = bench.so_far().map(ProcessCosts::from);
    costs.map_err(LabError::work("asking the server for its counts"))
}

/// A client's thread with its connection.
struct Caller<'a> {
    kind: CallKind,
    bench: &'a Bench,
    scope: Scope,
    /// The socket on which the server acknowledges notices, if it does.
    acknowledgements: Option<File>,
}

impl<'a> Caller<'a> {
    fn new(kind: CallKind, bench: &'a Bench) -> Result<Self, LabError> {
        let is_acknowledged = kind == CallKind::Oneway;
        let acknowledgements = is_acknowledged.then(|| acknowledgements(bench));
        Ok(Self {
            kind,
            bench,
            scope: Scope::new(4096),
            acknowledgements: acknowledgements.transpose()?,
        })
    }

    /// Makes one call, and checks the reply.
    fn call(&mut self) -> Result<(), LabError> {
        let (bench, scope) = (self.bench, &mut self.scope);
        let is_right = match self.kind {
            CallKind::Cube | CallKind::OfTen => bench.cube(11).map(|cube| cube == 1331),
            CallKind::Oneway | CallKind::OnewayAtOnce => bench.notice(11).map(|()| true),
            CallKind::Octets => {
                let octets = bench.mirror_in(scope, &OCTETS);
                octets.map(|octets| octets == OCTETS)
            }
            CallKind::Struct => {
                let quote = bench.requote_in(scope, &QUOTE);
                quote.map(|quote| quote.id == QUOTE.id && quote.symbol == QUOTE.symbol)
            }
        };
        if let Some(server) = &mut self.acknowledgements {
            let read = server.read_exact(&mut [0]);
            read.map_err(LabError::work("waiting for the call to be served"))?;
        }
        match is_right {
            Ok(true) => Ok(()),
            Ok(false) => Err(LabError::work("calling the server")("the answer is wrong")),
            Err(exception) => Err(LabError::work("calling the server")(exception)),
        }
    }
}

/// Has the server acknowledge notices.
fn acknowledgements(bench: &Bench) -> Result<File, LabError> {
    let failed = LabError::work("letting the server acknowledge");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&failed)?;
    let port = listener.local_addr().map_err(&failed)?.port();
    let asked = bench.acknowledge_to(port);
    asked.map_err(LabError::work("letting the server acknowledge"))?;
    let (stream, _) = listener.accept().map_err(&failed)?;
    Ok(File::from(OwnedFd::from(stream)))
}

/// The number of runs: the kernel disturbs one now and then, but hardly all.
pub(super) const RUNS: u32 = 3;
/// The time for the threads of the process to start. Calls are counted after it in any case.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Enough calls to have all memory mapped on both sides, and all threads of a pool at work once.
const WARM_UP_CALLS: u32 = 200;
const OCTETS: [u8; MIRRORED] = [0x5a; MIRRORED];
const QUOTE: Quote<'static> = Quote {
    id: 1 << 40,
    price: 187.5,
    quantity: -300,
    symbol: "ACME",
};
