//! One case, from the parent's side.

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_probe::{SystemCalls, TraceError, Tracer};
use chronorb_rt::Deadline;
use serde::de::DeserializeOwned;

use super::case::{Case, Kind, Place};
use super::order::{ClientOrder, Counted, Part, Pass, ServerOrder, Serving};
use super::outcome::SystemCall;
use super::{PART, Plan};
use crate::error::LabError;
use crate::process::{Begin, Child, Ready};

/// What came of tracing a case.
pub(super) enum Traced {
    /// The system calls of each side, in the run that had the fewest.
    Calls {
        client: Vec<SystemCall>,
        /// Nothing where the client had the object itself.
        server: Option<Vec<SystemCall>>,
    },
    /// The kernel does not permit it, and why.
    Refused(String),
}

/// Lets client and server count for themselves.
pub(super) fn count(case: &Case, plan: Plan) -> Result<Counted, LabError> {
    let mut pair = start(case, plan, Pass::Counted)?;
    let counted = pair.run()?;
    pair.stop()?;
    Ok(counted)
}

/// Counts the system calls of both.
pub(super) fn trace(case: &Case, plan: Plan) -> Result<Traced, LabError> {
    let mut pair = start(case, plan, Pass::Traced)?;
    let server = pair.server.as_ref().map(attach).transpose();
    let (server, client) = match (server, attach(&pair.client)) {
        (Ok(server), Ok(client)) => (server, client),
        (Err(error), _) | (_, Err(error)) => return Ok(Traced::Refused(error.to_string())),
    };
    let _: Counted = pair.run()?;
    let traced = LabError::work("tracing system calls");
    // Between the client's runs it marks the server's.
    let runs = client.spans().map_err(&traced)?;
    let [reading, acknowledging] = acknowledgements(case.kind, plan);
    let client = runs.iter().step_by(2);
    let client = least(client.map(|span| without(by_name(span), &reading)));
    let server = match server {
        None => None,
        Some(server) => {
            let spans = server.spans().map_err(&traced)?;
            let (marking, runs) = spans
                .split_first()
                .ok_or(TraceError::Ended)
                .map_err(&traced)?;
            let marking = by_name(marking);
            let run = |span: &Vec<_>| without(without(by_name(span), &marking), &acknowledging);
            Some(least(runs.iter().map(run)))
        }
    };
    pair.stop()?;
    Ok(Traced::Calls { client, server })
}

/// A client with its server, which a client of its own objects does not have.
pub(super) struct Pair {
    pub(super) server: Option<Child>,
    pub(super) client: Child,
    patience: Duration,
}

impl Pair {
    /// Starts the server, and the client that `client` makes of the server's first message, which
    /// is empty where there is no server. All calls together are done within `patience`.
    pub(super) fn start<S: Default + DeserializeOwned>(
        server: Option<&Part>,
        client: impl FnOnce(S) -> Part,
        patience: Duration,
    ) -> Result<Self, LabError> {
        let (server, serving) = match server {
            Some(part) => {
                let (child, serving) = Child::start("server", PART, part)?;
                (Some(child), serving)
            }
            None => (None, S::default()),
        };
        let (client, Ready {}) = Child::start("client", PART, &client(serving))?;
        Ok(Self {
            server,
            client,
            patience: WIND_DOWN + patience,
        })
    }

    /// Has the client begin, and waits for what it has counted.
    pub(super) fn run<T: DeserializeOwned>(&mut self) -> Result<T, LabError> {
        self.client.tell(&Begin {})?;
        Ok(self.client.hear(Deadline::after(self.patience))?)
    }

    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        self.client.finish(end)?;
        if let Some(server) = self.server {
            server.stop(end)?;
        }
        Ok(())
    }
}

/// Starts the processes of a case.
fn start(case: &Case, plan: Plan, pass: Pass) -> Result<Pair, LabError> {
    let name = || case.name.to_owned();
    let server =
        (case.place != Place::Collocated).then(|| Part::Server(ServerOrder { case: name(), pass }));
    let client = |Serving { reference }| {
        Part::Client(ClientOrder {
            case: name(),
            pass,
            reference,
            calls: plan.calls,
        })
    };
    Pair::start(server.as_ref(), client, CALL * plan.calls)
}

/// Traces the system calls of a process.
pub(super) fn attach(process: &Child) -> Result<Tracer, TraceError> {
    Tracer::attach(process.id())
}

/// Calls and octets by name.
pub(super) type ByName = BTreeMap<String, (u64, u64)>;

/// What all threads of a process asked for together.
pub(super) fn by_name(span: &[SystemCalls]) -> ByName {
    let mut by_name = ByName::new();
    for of in span {
        let (calls, octets) = by_name.entry(of.name.clone()).or_default();
        *calls += of.calls;
        *octets += of.octets;
    }
    by_name
}

/// What was done beside something else.
pub(super) fn without(mut all: ByName, other: &ByName) -> ByName {
    for (name, (calls, octets)) in other {
        if let Some(of) = all.get_mut(name) {
            *of = (of.0.saturating_sub(*calls), of.1.saturating_sub(*octets));
        }
    }
    all.retain(|_, (calls, _)| *calls > 0);
    all
}

/// What client and server ask of the kernel so that each call is acknowledged outside of the ORB: an
/// octet is read from a file, and written to one, of which the ORB has none.
fn acknowledgements(kind: Kind, plan: Plan) -> [ByName; 2] {
    let each = u64::from(plan.calls);
    match kind {
        Kind::Oneway => {
            ["read", "write"].map(|name| ByName::from([(name.to_owned(), (each, each))]))
        }
        _ => Default::default(),
    }
}

/// The run with the fewest calls, in the order of how many of each: a disturbance only adds some.
pub(super) fn least(runs: impl Iterator<Item = ByName>) -> Vec<SystemCall> {
    let all = |run: &ByName| run.values().map(|(calls, _)| calls).sum::<u64>();
    let mut calls: Vec<_> = runs
        .min_by_key(all)
        .unwrap_or_default()
        .into_iter()
        .map(|(name, (calls, octets))| SystemCall {
            name,
            calls,
            octets,
        })
        .collect();
    calls.sort_by_key(|of| std::cmp::Reverse(of.calls));
    calls
}

/// How long all runs of one call may take, with a tracer and on a busy machine.
const CALL: Duration = Duration::from_millis(20);
/// How long processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(thread: u32, name: &str, calls: u64, octets: u64) -> SystemCalls {
        SystemCalls {
            thread,
            name: name.to_owned(),
            calls,
            octets,
        }
    }

    #[test]
    fn threads_are_added_up_and_what_marking_costs_is_taken_off() {
        let span = [
            of(1, "recvfrom", 6, 600),
            of(2, "recvfrom", 5, 500),
            of(2, "futex", 1, 0),
        ];
        let marking = by_name(&[
            of(1, "recvfrom", 1, 90),
            of(1, "futex", 1, 0),
            of(1, "poll", 1, 0),
        ]);
        let calls = without(by_name(&span), &marking);
        assert_eq!(calls, ByName::from([("recvfrom".to_owned(), (10, 1010))]));
    }

    #[test]
    fn the_run_that_was_disturbed_least_counts() {
        let runs = [
            by_name(&[of(1, "poll", 12, 0), of(1, "sendto", 10, 10)]),
            by_name(&[of(1, "madvise", 1, 0), of(1, "sendto", 10, 10)]),
        ];
        let names: Vec<_> = least(runs.into_iter())
            .into_iter()
            .map(|of| of.name)
            .collect();
        assert_eq!(names, ["sendto", "madvise"]);
        assert_eq!(least(std::iter::empty()), []);
    }
}
