//! One architecture, from the parent's side.

use std::time::Duration;

use chronorb_probe::{SystemCalls, TraceError};

use super::super::Plan;
use super::super::order::Part;
use super::super::outcome::{Side, SystemCall};
use super::super::trial::{ByName, Pair, Traced, attach, by_name, least, without};
use super::configuration::Configuration;
use super::order::{ClientOrder, Done, Objects, Pass, ServerOrder};
use super::outcome::ArchitectureRow;
use super::{CLIENTS, CONFIGURATIONS};
use crate::error::LabError;
use crate::progress::Progress;

/// How often each architecture is run.
pub(in super::super) const RUNS: u64 = 3;

/// Measures all of them. Where tracing was refused already, it is not tried; where it is refused now, the reason is
/// left.
pub(in super::super) fn measure(
    plan: Plan,
    untraced: &mut Option<String>,
    progress: &Progress,
) -> Result<Vec<ArchitectureRow>, LabError> {
    let mut rows = Vec::new();
    for configuration in &CONFIGURATIONS {
        let counted = run(configuration, plan, Pass::Counted)?;
        progress.advance(1);
        let timed = run(configuration, plan, Pass::Timed)?;
        progress.advance(1);
        let (of_client, of_server) = match untraced {
            Some(_) => (None, None),
            None => match trace(configuration, plan)? {
                Traced::Calls { client, server } => (Some(client), server),
                Traced::Refused(reason) => {
                    *untraced = Some(reason);
                    (None, None)
                }
            },
        };
        progress.advance(1);
        let row = |side, counted, timed, system_calls| {
            ArchitectureRow::new(*configuration, side, plan, counted, timed, system_calls)
        };
        rows.push(row(Side::Client, counted.client, timed.client, of_client));
        rows.push(row(Side::Server, counted.server, timed.server, of_server));
    }
    Ok(rows)
}

/// Lets client and server find out for themselves.
fn run(configuration: &Configuration, plan: Plan, pass: Pass) -> Result<Done, LabError> {
    let mut pair = start(configuration, plan, pass)?;
    let done = pair.run()?;
    pair.stop()?;
    Ok(done)
}

/// Counts the system calls of both.
fn trace(configuration: &Configuration, plan: Plan) -> Result<Traced, LabError> {
    let mut pair = start(configuration, plan, Pass::Traced)?;
    let server = pair.server.as_ref().map_or(Err(TraceError::Ended), attach);
    let (server, client) = match (server, attach(&pair.client)) {
        (Ok(server), Ok(client)) => (server, client),
        (Err(error), _) | (_, Err(error)) => return Ok(Traced::Refused(error.to_string())),
    };
    let _: Done = pair.run()?;
    let traced = LabError::work("tracing system calls");
    let first_thread = pair.client.id();
    let calls = of_client(&client.spans().map_err(&traced)?, first_thread);
    let spans = server.spans().map_err(&traced)?;
    let (marking, runs) = spans
        .split_first()
        .ok_or(TraceError::Ended)
        .map_err(&traced)?;
    let marking = by_name(marking);
    let run = |span: &Vec<_>| without(by_name(span), &marking);
    let served = least(runs.iter().map(run));
    pair.stop()?;
    Ok(Traced::Calls {
        client: calls,
        server: Some(served),
    })
}

/// What a client's threads asked for to make their calls: all but its first one, which only waits for the others, and
/// without what each of them is told and says.
fn of_client(spans: &[Vec<SystemCalls>], first_thread: u32) -> Vec<SystemCall> {
    let clients = u64::from(CLIENTS);
    let signals = ["read", "write"].map(|name| (name.to_owned(), (clients, clients)));
    let signals = ByName::from(signals);
    let others = |span: &Vec<SystemCalls>| {
        let others = span.iter().filter(|of| of.thread != first_thread);
        without(by_name(&others.cloned().collect::<Vec<_>>()), &signals)
    };
    least(spans.iter().map(others))
}

/// Starts the processes of an architecture.
fn start(configuration: &Configuration, plan: Plan, pass: Pass) -> Result<Pair, LabError> {
    let calls = match pass {
        Pass::Counted | Pass::Timed => plan.calls_of_each,
        Pass::Traced => plan.traced_of_each(),
    };
    let order = || ServerOrder {
        architecture: configuration.name().to_owned(),
        pass,
    };
    let client = |objects: Objects| {
        Part::ManyClients(ClientOrder {
            server: order(),
            objects,
            calls,
        })
    };
    let server = Part::ServerOfMany(order());
    Pair::start(Some(&server), client, CALL * calls * CLIENTS)
}

/// How long a call may take, with a tracer and on a busy machine.
const CALL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_the_clients_is_not_counted() {
        let of = |thread, name: &str, calls| SystemCalls {
            thread,
            name: name.to_owned(),
            calls,
            octets: 0,
        };
        let span = vec![
            of(1, "read", 4),
            of(1, "futex", 3),
            of(2, "read", 9),
            of(2, "write", 10),
            of(2, "sendto", 50),
            of(3, "sendto", 50),
        ];
        let calls = of_client(&[span], 1);
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert_eq!((calls[0].name.as_str(), calls[0].calls), ("sendto", 100));
    }
}
