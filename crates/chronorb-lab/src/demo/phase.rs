//! One phase: a server, its clients, and what they measured.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::order::{Class, ClientOrder, Connected, Measured, ServerOrder, Serving, Start};
use super::work::Steps;
use super::{CLIENT_COMMAND, SERVER_COMMAND};
use crate::comparison::{Phase, Setup};
use crate::error::LabError;
use crate::process::Child;
use crate::progress::Progress;

/// What came of a phase.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) calls: Phase,
    /// Whether the high-priority client ran at a real-time priority.
    pub(super) real_time: bool,
}

/// Runs one phase from the start of its server to its end.
pub(super) fn run(setup: &Setup, steps: Steps, priorities: bool) -> Result<Outcome, LabError> {
    let order = ServerOrder {
        priorities,
        setup: setup.clone(),
    };
    let mut server = Child::start("server", SERVER_COMMAND, &order)?;
    let serving: Serving = server.hear(Deadline::after(START_UP))?;

    let client = |name: String, class| {
        let order = ClientOrder {
            class,
            priorities,
            reference: serving.reference.clone(),
            setup: setup.clone(),
            steps,
        };
        Child::start(name, CLIENT_COMMAND, &order)
    };
    let mut high = client("high-priority client".to_owned(), Class::High)?;
    let mut low = (1..=setup.low_clients)
        .map(|number| client(format!("low-priority client {number}"), Class::Low))
        .collect::<Result<Vec<_>, _>>()?;

    let connected = Deadline::after(START_UP);
    for client in low.iter_mut().chain([&mut high]) {
        let Connected {} = client.hear(connected)?;
    }
    let start = Monotonic::now() + LEAD;
    for client in low.iter_mut().chain([&mut high]) {
        client.tell(&Start {
            at_ns: start.as_nanos(),
        })?;
    }
    watch(setup, priorities, start, || {
        server.check()?;
        high.check()?;
        Ok(low.iter_mut().try_for_each(Child::check)?)
    })?;

    let end = Deadline::at(start + setup.phase + WIND_DOWN);
    let mut calls = Phase::default();
    let measured: Measured = high.hear(end)?;
    calls.high.merge(&measured.calls);
    high.finish(end)?;
    for mut client in low {
        calls.low.merge(&client.hear::<Measured>(end)?.calls);
        client.finish(end)?;
    }
    server.stop(Deadline::after(WIND_DOWN))?;
    Ok(Outcome {
        calls,
        real_time: measured.real_time,
    })
}

/// Shows the progress until the phase ends, or something is found to be wrong.
fn watch(
    setup: &Setup,
    priorities: bool,
    start: Monotonic,
    mut check: impl FnMut() -> Result<(), LabError>,
) -> Result<(), LabError> {
    let name = if priorities {
        "with priorities"
    } else {
        "without priorities"
    };
    let progress = Progress::start_timed(name, setup.phase);
    let end = start + setup.phase;
    let mut next = start;
    while next < end {
        sleep_until(next);
        progress.show(Monotonic::now().since(start));
        check()?;
        next = next + TICK;
    }
    sleep_until(end);
    Ok(())
}

/// How long server and clients may take to start and connect.
const START_UP: Duration = Duration::from_secs(15);
/// From the last client's connection to the first call.
const LEAD: Duration = Duration::from_millis(200);
/// How long clients may take to answer, and the server to shut down, after the end.
const WIND_DOWN: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(200);
