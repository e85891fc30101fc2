//! The client of a case: calls again and again, and what they cost.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use chronorb::prelude::*;
use chronorb_cdr::octets_copied;
use chronorb_probe::{Mark, trace_mark};

use super::case::{Case, Kind, MIRRORED, Place};
use super::counts::Counts;
use super::order::{ClientOrder, Counted, Pass};
use super::server::{PRIORITY, case_named, offer, orb};
use crate::error::LabError;
use crate::idl::whitebox::{Bench, Quote};
use crate::process::{self, Begin, Parent, Ready};

/// Connects, reports, waits for the beginning, calls, and says what it counted.
pub(super) fn call(order: &ClientOrder) -> Result<(), LabError> {
    // Whoever waits for a reply waits as long as the parent lives.
    let parent = Parent::or_exit();
    let case = case_named(&order.case)?;
    let orb = orb(case, order.pass)?;
    let mut caller = Caller::connect(&orb, case, order.reference.as_deref())?;
    for _ in 0..WARM_UP_CALLS {
        caller.call()?;
        caller.so_far()?;
    }
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    let counted = match order.pass {
        Pass::Counted => caller.count(order.calls)?,
        Pass::Traced => {
            caller.mark(order.calls)?;
            Counted {
                client: Counts::default(),
                server: None,
            }
        }
    };
    process::tell(&counted)?;
    Ok(())
}

/// Who makes the calls of a case.
struct Caller {
    case: &'static Case,
    bench: Bench,
    scope: Scope,
    /// Where the server acknowledges notices, if it shall.
    acknowledgements: Option<File>,
}

impl Caller {
    fn connect(orb: &Orb, case: &'static Case, reference: Option<&str>) -> Result<Self, LabError> {
        if case.place == Place::Lane {
            let set = orb.rt_current().set_priority(PRIORITY);
            set.map_err(LabError::work("setting the priority"))?;
        }
        let object = match reference {
            Some(reference) => orb
                .string_to_object(reference)
                .map_err(LabError::work("finding the object"))?,
            None => offer(orb, case.place).map_err(LabError::work("offering the object"))?,
        };
        let bench = Bench::narrow(&object)
            .map_err(LabError::work("finding the object"))?
            .ok_or_else(|| LabError::work("finding the object")("it is no bench"))?;
        let acknowledgements = match case.kind {
            Kind::Oneway => Some(acknowledged(&bench)?),
            _ => None,
        };
        Ok(Self {
            case,
            bench,
            scope: Scope::new(4096),
            acknowledgements,
        })
    }

    /// Makes one call, and looks at what comes back.
    fn call(&mut self) -> Result<(), LabError> {
        let (bench, scope) = (&self.bench, &mut self.scope);
        let answered = match self.case.kind {
            Kind::Cube => bench.cube(11).map(|cube| cube == 1331),
            Kind::Oneway | Kind::OnewayAtOnce => bench.notice(11).map(|()| true),
            Kind::Octets => {
                let mirrored = bench.mirror_in(scope, &OCTETS);
                mirrored.map(|octets| octets == OCTETS)
            }
            Kind::Struct => {
                let quoted = bench.requote_in(scope, &QUOTE);
                quoted.map(|quote| quote.id == QUOTE.id && quote.symbol == QUOTE.symbol)
            }
        };
        if let Some(server) = &mut self.acknowledgements {
            let read = server.read_exact(&mut [0]);
            read.map_err(LabError::work("waiting for the call to be served"))?;
        }
        match answered {
            Ok(true) => Ok(()),
            Ok(false) => Err(LabError::work("calling the server")("the answer is wrong")),
            Err(exception) => Err(LabError::work("calling the server")(exception)),
        }
    }

    fn calls(&mut self, calls: u32) -> Result<(), LabError> {
        (0..calls).try_for_each(|_| self.call())
    }

    /// What the server has done so far; nothing where that is this process.
    fn so_far(&self) -> Result<Option<Counts>, LabError> {
        if self.case.place == Place::Collocated {
            return Ok(None);
        }
        let counts = self.bench.so_far();
        let counts = counts.map_err(LabError::work("asking the server what it did"))?;
        Ok(Some(Counts::of_idl(&counts)))
    }

    /// Counts the calls of some runs. The server is asked before and after each, which is a call by
    /// itself; what that costs is found out beforehand, and taken off. So is what it costs to look at
    /// this process.
    fn count(&mut self, calls: u32) -> Result<Counted, LabError> {
        let since = |after: Option<Counts>, before: Option<Counts>| {
            after.zip(before).map(|(after, before)| after.since(before))
        };
        let first = self.so_far()?;
        let asking = since(self.so_far()?, first);
        let first = so_far();
        let looking = so_far().since(first);
        let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let server = self.so_far()?;
            let client = so_far();
            self.calls(calls)?;
            of_client.push(so_far().since(client).since(looking));
            let with_asking = since(self.so_far()?, server);
            of_server.extend(since(with_asking, asking));
        }
        Ok(Counted {
            client: Counts::of_runs(&of_client),
            server: (!of_server.is_empty()).then(|| Counts::of_runs(&of_server)),
        })
    }

    /// Makes the same calls, with marks for who traces this process and the server. At the client
    /// runs and what is between them take turns; at the server there is nothing between the first two
    /// marks, then the runs, each with the mark after it.
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
        if self.case.place == Place::Collocated {
            return Ok(());
        }
        let marked = self.bench.mark(last);
        marked.map_err(LabError::work("marking a moment at the server"))
    }
}

/// What this process has done so far; octets that were copied, by the thread that calls.
fn so_far() -> Counts {
    Counts::of_process(octets_copied())
}

/// Has the server acknowledge notices.
fn acknowledged(bench: &Bench) -> Result<File, LabError> {
    let failed = LabError::work("letting the server acknowledge");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&failed)?;
    let port = listener.local_addr().map_err(&failed)?.port();
    let asked = bench.acknowledge_to(port);
    asked.map_err(LabError::work("letting the server acknowledge"))?;
    let (stream, _) = listener.accept().map_err(&failed)?;
    Ok(File::from(OwnedFd::from(stream)))
}

/// The kernel disturbs one now and then, but hardly all.
pub(super) const RUNS: u32 = 3;
/// Enough to have everything in memory on both sides, and all threads of a pool at work once.
const WARM_UP_CALLS: u32 = 200;
const OCTETS: [u8; MIRRORED] = [0x5a; MIRRORED];
const QUOTE: Quote<'static> = Quote {
    id: 1 << 40,
    price: 187.5,
    quantity: -300,
    symbol: "ACME",
};
