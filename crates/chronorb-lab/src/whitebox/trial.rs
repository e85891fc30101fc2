//! The parent's side: client and server of a case, which count or are traced.

use std::collections::BTreeMap;
use std::time::Duration;

use chronorb_probe::{SystemCalls, TraceError, Tracer};
use chronorb_rt::Deadline;

use super::case::WhiteboxCase;
use super::counts::ProcessCosts;
use super::order::{ClientPart, PartOrder, Pass};
use super::{CLIENTS, PART};
use crate::error::LabError;
use crate::process::{Begin, Child, Ready};

/// The numbers of system calls by name, with the octets that they moved.
pub(super) type CallsByName = BTreeMap<String, (u64, u64)>;

/// A case that is run with processes of its own for each pass.
pub(super) struct WhiteboxTrial {
    /// The number of the case in orders.
    pub(super) number: usize,
    pub(super) case: WhiteboxCase,
}

/// The tracing of system calls, unless the kernel refuses it.
#[derive(Default)]
pub(super) struct KernelTrace {
    /// The reason why the kernel refuses it.
    pub(super) refusal: Option<String>,
}

impl WhiteboxTrial {
    /// Has each thread of the client make so many calls, and returns the costs that client and
    /// server counted.
    pub(super) fn count(
        &self,
        pass: Pass,
        calls: u32,
    ) -> Result<[Option<ProcessCosts>; 2], LabError> {
        let mut pair = self.start(pass, calls)?;
        let costs = pair.run()?;
        pair.stop()?;
        Ok(costs)
    }

    /// Returns the number of calling threads. If there are several, the client's first thread only
    /// waits for them.
    pub(super) fn clients(&self) -> u32 {
        if self.case.is_of_ten() { CLIENTS } else { 1 }
    }

    fn start(&self, pass: Pass, calls: u32) -> Result<Pair, LabError> {
        let order = |client| PartOrder {
            case: self.number,
            pass,
            client,
        };
        let (server, objects) = if self.case.has_server() {
            let (child, objects) = Child::start("server", PART, &order(None))?;
            (Some(child), objects)
        } else {
            (None, Vec::new())
        };
        let part = order(Some(ClientPart { objects, calls }));
        let (client, Ready {}) = Child::start("client", PART, &part)?;
        Ok(Pair {
            server,
            client,
            patience: WIND_DOWN + CALL * calls * self.clients(),
        })
    }
}

impl KernelTrace {
    /// Has each thread of the client make so many calls, and returns the system calls of client
    /// and server in the run that had the fewest. `beside` are those that serve the experiment.
    pub(super) fn trace(
        &mut self,
        trial: &WhiteboxTrial,
        calls: u32,
        beside: &[CallsByName; 2],
    ) -> Result<[Option<CallsByName>; 2], LabError> {
        // A kernel that refuses once refuses always.
        if self.refusal.is_some() {
            return Ok([None, None]);
        }
        let mut pair = trial.start(Pass::Trace, calls)?;
        let attach = |child: &Child| Tracer::attach(child.id());
        let server = pair.server.as_ref().map(attach).transpose();
        let (server, client) = match (server, attach(&pair.client)) {
            (Ok(server), Ok(client)) => (server, client),
            (Err(error), _) | (_, Err(error)) => {
                self.refusal = Some(error.to_string());
                return Ok([None, None]);
            }
        };
        pair.run()?;
        let failed = LabError::work("tracing system calls");
        let waiting = trial.case.is_of_ten().then(|| pair.client.id());
        let by_client = of_client(&client.spans().map_err(&failed)?, waiting, &beside[0]);
        let by_server = match server {
            None => None,
            Some(server) => {
                let spans = server.spans().map_err(&failed)?;
                let split = spans.split_first().ok_or(TraceError::Ended);
                let (marking, runs) = split.map_err(&failed)?;
                let marking = by_name(marking);
                let run = |span: &Vec<_>| without(without(by_name(span), &marking), &beside[1]);
                Some(least(runs.iter().map(run)))
            }
        };
        pair.stop()?;
        Ok([Some(by_client), by_server])
    }
}

/// A client with its server, which a client of its own objects does not have.
struct Pair {
    server: Option<Child>,
    client: Child,
    patience: Duration,
}

impl Pair {
    /// Has the client begin, and waits for the costs that it reports.
    fn run(&mut self) -> Result<[Option<ProcessCosts>; 2], LabError> {
        self.client.tell(&Begin {})?;
        Ok(self.client.hear(Deadline::after(self.patience))?)
    }

    fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        self.client.finish(end)?;
        if let Some(server) = self.server {
            server.stop(end)?;
        }
        Ok(())
    }
}

/// Returns the system calls of the client's runs, without those of a thread that only waits.
/// Between two runs it marks those of the server.
fn of_client(
    spans: &[Vec<SystemCalls>],
    waiting: Option<u32>,
    beside: &CallsByName,
) -> CallsByName {
    let runs = spans.iter().step_by(2).map(|span| {
        let calls = span.iter().filter(|of| Some(of.thread) != waiting);
        without(by_name(calls), beside)
    });
    least(runs)
}

/// Sums the system calls of all threads.
fn by_name<'a>(span: impl IntoIterator<Item = &'a SystemCalls>) -> CallsByName {
    let mut by_name = CallsByName::new();
    for of in span {
        let (calls, octets) = by_name.entry(of.name.clone()).or_default();
        *calls += of.calls;
        *octets += of.octets;
    }
    by_name
}

/// Subtracts system calls from others.
fn without(mut all: CallsByName, other: &CallsByName) -> CallsByName {
    for (name, (calls, octets)) in other {
        if let Some(of) = all.get_mut(name) {
            *of = (of.0.saturating_sub(*calls), of.1.saturating_sub(*octets));
        }
    }
    all.retain(|_, (calls, _)| *calls > 0);
    all
}

/// Returns the run with the fewest system calls, as a disturbance only adds some.
fn least(runs: impl Iterator<Item = CallsByName>) -> CallsByName {
    let all = |run: &CallsByName| run.values().map(|(calls, _)| calls).sum::<u64>();
    runs.min_by_key(all).unwrap_or_default()
}

/// The longest time of all runs of one call, with a tracer and on a busy machine.
const CALL: Duration = Duration::from_millis(20);
/// The longest time in which processes end.
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
        assert_eq!(
            calls,
            CallsByName::from([("recvfrom".to_owned(), (10, 1010))])
        );
    }

    #[test]
    fn the_run_that_was_disturbed_least_counts() {
        let runs = [
            by_name(&[of(1, "poll", 12, 0), of(1, "sendto", 10, 10)]),
            by_name(&[of(1, "madvise", 1, 0), of(1, "sendto", 10, 10)]),
        ];
        let least = least(runs.into_iter());
        assert!(least.keys().eq(["madvise", "sendto"]), "{least:?}");
    }

    #[test]
    fn a_thread_that_only_waits_and_the_signals_to_others_are_not_counted() {
        let span = vec![
            of(1, "read", 4, 0),
            of(1, "futex", 3, 0),
            of(2, "read", 9, 0),
            of(2, "write", 10, 0),
            of(2, "sendto", 50, 0),
            of(3, "sendto", 50, 0),
        ];
        let signals = ["read", "write"].map(|name| (name.to_owned(), (10, 10)));
        let calls = of_client(&[span], Some(1), &signals.into());
        assert_eq!(calls, CallsByName::from([("sendto".to_owned(), (100, 0))]));
    }
}
