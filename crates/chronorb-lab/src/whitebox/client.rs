//! The client of a case, which makes the calls and counts their costs.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use chronorb::prelude::*;
use chronorb_cdr::octets_copied;
use chronorb_probe::{Mark, trace_mark};

use super::case::{CallKind, MIRRORED, ObjectPlace, WhiteboxCase};
use super::counts::{Counts, ProcessCosts};
use super::order::{ClientPart, Pass};
use super::server::{PRIORITY, offer, orb};
use crate::error::LabError;
use crate::idl::whitebox::{Bench, Quote};
use crate::process::{self, Begin, Parent, Ready};

/// Connects, reports, waits for the order to begin, calls, and reports the costs of both sides.
pub(super) fn call(
    case: &'static WhiteboxCase,
    pass: Pass,
    part: &ClientPart,
) -> Result<(), LabError> {
    // A call waits for its reply as long as the parent lives.
    let parent = Parent::or_exit();
    let orb = orb(case, pass)?;
    let mut caller = Caller::connect(&orb, case, part.objects.first())?;
    for _ in 0..WARM_UP_CALLS {
        caller.call()?;
        caller.server_so_far()?;
    }
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    let costs = if pass == Pass::Trace {
        caller.mark(part.calls)?;
        [None; 2]
    } else {
        let costs = |counts| ProcessCosts {
            counts,
            ..ProcessCosts::default()
        };
        caller.count(part.calls)?.map(|counts| counts.map(costs))
    };
    process::tell(&costs)?;
    Ok(())
}

/// Gives the calling thread a priority, and finds an object.
pub(super) fn connect(
    orb: &Orb,
    priority: Option<Priority>,
    object: &Object,
) -> Result<Bench, LabError> {
    if let Some(priority) = priority {
        let set = orb.rt_current().set_priority(priority);
        set.map_err(LabError::work("setting the priority"))?;
    }
    let bench = Bench::narrow(object).map_err(LabError::work("finding the object"))?;
    bench.ok_or_else(|| LabError::work("finding the object")("it is no bench"))
}

/// Returns the object of a reference.
pub(super) fn find(orb: &Orb, reference: &str) -> Result<Object, LabError> {
    let found = orb.string_to_object(reference);
    found.map_err(LabError::work("finding the object"))
}

/// Returns the costs of the server so far.
pub(super) fn server_so_far(bench: &Bench) -> Result<ProcessCosts, LabError> {
    let costs = bench.so_far().map(ProcessCosts::from);
    costs.map_err(LabError::work("asking the server for its counts"))
}

/// Marks a moment for the tracer of the server's system calls.
pub(super) fn mark_server(bench: &Bench, last: bool) -> Result<(), LabError> {
    let marked = bench.mark(last);
    marked.map_err(LabError::work("marking a moment at the server"))
}

/// A client's thread with its connection.
struct Caller {
    case: &'static WhiteboxCase,
    bench: Bench,
    scope: Scope,
    /// The socket on which the server acknowledges notices, if it does.
    acknowledgements: Option<File>,
}

impl Caller {
    fn connect(
        orb: &Orb,
        case: &'static WhiteboxCase,
        reference: Option<&String>,
    ) -> Result<Self, LabError> {
        let object = match reference {
            Some(reference) => find(orb, reference)?,
            None => offer(orb, case.place)?,
        };
        let priority = (case.place == ObjectPlace::Lane).then_some(PRIORITY);
        let bench = connect(orb, priority, &object)?;
        let is_acknowledged = case.kind == CallKind::Oneway;
        let acknowledgements = is_acknowledged.then(|| acknowledgements(&bench));
        Ok(Self {
            case,
            bench,
            scope: Scope::new(4096),
            acknowledgements: acknowledgements.transpose()?,
        })
    }

    /// Makes one call, and checks the reply.
    fn call(&mut self) -> Result<(), LabError> {
        let (bench, scope) = (&self.bench, &mut self.scope);
        let is_right = match self.case.kind {
            CallKind::Cube => bench.cube(11).map(|cube| cube == 1331),
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

    fn calls(&mut self, calls: u32) -> Result<(), LabError> {
        (0..calls).try_for_each(|_| self.call())
    }

    /// Whether the server is another process.
    fn has_server(&self) -> bool {
        self.case.place != ObjectPlace::Collocated
    }

    /// Returns the counts of the server so far, if there is one.
    fn server_so_far(&self) -> Result<Option<Counts>, LabError> {
        let costs = self.has_server().then(|| server_so_far(&self.bench));
        Ok(costs.transpose()?.map(|costs| costs.counts))
    }

    /// Counts the calls of some runs, at client and server. The server is asked before and after
    /// each run, which is a call by itself; its cost is measured beforehand and subtracted, as is
    /// the cost of counting in this process.
    fn count(&mut self, calls: u32) -> Result<[Option<Counts>; 2], LabError> {
        let since = |after: Option<Counts>, before: Option<Counts>| {
            after.zip(before).map(|(after, before)| after.since(before))
        };
        let first = self.server_so_far()?;
        let asking = since(self.server_so_far()?, first);
        let first = so_far();
        let counting = so_far().since(first);
        let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let server = self.server_so_far()?;
            let client = so_far();
            self.calls(calls)?;
            of_client.push(so_far().since(client).since(counting));
            let with_asking = since(self.server_so_far()?, server);
            of_server.extend(since(with_asking, asking));
        }
        let of_server = (!of_server.is_empty()).then(|| Counts::of_runs(&of_server));
        Ok([Some(Counts::of_runs(&of_client)), of_server])
    }

    /// Makes the same calls, with marks for the tracers of this process and of the server. At the
    /// client, runs and the pauses between them take turns; at the server nothing is between the
    /// first two marks, then follow the runs, each with the mark after it.
    fn mark(&mut self, calls: u32) -> Result<(), LabError> {
        self.mark_server(false)?;
        self.mark_server(false)?;
        for run in 1..=RUNS {
            let last = run == RUNS;
            trace_mark(Mark::Next);
            self.calls(calls)?;
            trace_mark(if last { Mark::Last } else { Mark::Next });
            self.mark_server(last)?;
        }
        Ok(())
    }

    fn mark_server(&self, last: bool) -> Result<(), LabError> {
        if self.has_server() {
            mark_server(&self.bench, last)?;
        }
        Ok(())
    }
}

/// Returns the counts of this process so far. Octets that were copied are those of this thread.
fn so_far() -> Counts {
    ProcessCosts::so_far(octets_copied()).counts
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
/// Enough calls to have all memory mapped on both sides, and all threads of a pool at work once.
const WARM_UP_CALLS: u32 = 200;
const OCTETS: [u8; MIRRORED] = [0x5a; MIRRORED];
const QUOTE: Quote<'static> = Quote {
    id: 1 << 40,
    price: 187.5,
    quantity: -300,
    symbol: "ACME",
};
