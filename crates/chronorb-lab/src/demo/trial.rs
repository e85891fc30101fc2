//! One phase: a server, its clients, and their calls.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use crate::bench::{
    CLIENT, ClientSpec, MeasuredCalls, Model, OBJECT, ObjectReferences, ObjectSpec, Pace, PacedRun,
    PoolSpec, SERVER, ServantSpec, ServerSpec, options,
};
use crate::comparison::{LoadSetup, PhaseCalls};
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::watch::Watch;
use crate::work::Speed;

/// The result of a phase.
#[derive(Debug)]
pub(super) struct PhaseOutcome {
    pub(super) calls: PhaseCalls,
    /// Whether the threads of the high-priority client had real-time priorities.
    pub(super) real_time: bool,
}

/// Runs a phase of the demonstration, with priorities or without.
pub(super) fn run(
    setup: &LoadSetup,
    speed: Speed,
    priorities: bool,
) -> Result<PhaseOutcome, LabError> {
    let (mut server, serving): (_, ObjectReferences) =
        Child::start("server", SERVER, &server_spec(setup, priorities))?;
    let launch = |name: String, threads, priority: i16| {
        let spec = ClientSpec {
            options: options(&["-ORBRealTime", real_time(priorities)]),
            reference: serving[OBJECT].clone(),
            threads: vec![priorities.then_some(priority); threads as usize],
            warm_up: WARM_UP_CALLS,
            server: None,
        };
        Child::launch(name, CLIENT, &spec)
    };
    // The first is the client of high priority.
    let mut clients = vec![launch("high-priority client".to_owned(), 1, HIGH)?];
    for number in 1..=setup.low_clients {
        let name = format!("low-priority client {number}");
        clients.push(launch(name, setup.threads_per_low_client, LOW)?);
    }
    let connected = Deadline::after(START_UP);
    for client in &mut clients {
        let Ready {} = client.hear(connected)?;
    }

    let start = Monotonic::now() + LEAD;
    let high = [Pace::CallEvery(setup.period)];
    let low = vec![Pace::BackToBack; setup.threads_per_low_client as usize];
    for (index, client) in clients.iter_mut().enumerate() {
        let (paces, work) = match index {
            0 => (&high[..], setup.high_work),
            _ => (&low[..], setup.low_work),
        };
        let run = PacedRun::new(start, setup.phase, paces, speed.steps(work));
        client.tell(&Some(run))?;
    }
    let with = if priorities { "with" } else { "without" };
    let watch = Watch::start(&format!("{with} priorities"), setup.phase);
    let over = start + setup.phase;
    while Monotonic::now() < over {
        sleep_until(over.min(Monotonic::now() + TICK));
        watch.tick();
        server.check()?;
        clients.iter_mut().try_for_each(Child::check)?;
    }
    drop(watch);

    let end = Deadline::at(over + WIND_DOWN);
    let mut outcome = PhaseOutcome {
        calls: PhaseCalls::default(),
        real_time: false,
    };
    for (index, mut client) in clients.into_iter().enumerate() {
        let measured: MeasuredCalls = client.hear(end)?;
        let calls = match index {
            0 => {
                outcome.real_time = measured.real_time;
                &mut outcome.calls.high
            }
            _ => &mut outcome.calls.low,
        };
        for of_thread in &measured.calls {
            calls.merge(of_thread);
        }
        client.dismiss(end)?;
    }
    server.stop(Deadline::after(WIND_DOWN))?;
    Ok(outcome)
}

/// Returns the server: a lane for each priority, or one pool for all calls.
fn server_spec(setup: &LoadSetup, priorities: bool) -> ServerSpec {
    let mut options = options(&["-ORBRealTime", real_time(priorities)]);
    if priorities {
        let lanes = [
            (LOW, setup.low_lane_threads),
            (HIGH, setup.high_lane_threads),
        ];
        return ServerSpec::of_work(options, PoolSpec::lanes(lanes), Model::Propagated(LOW));
    }
    let threads = setup.low_lane_threads + setup.high_lane_threads;
    options.extend(["-ORBThreads".to_owned(), threads.to_string()]);
    ServerSpec {
        options,
        pools: Vec::new(),
        objects: vec![ObjectSpec {
            name: OBJECT.to_owned(),
            pool: None,
            servant: ServantSpec::Work,
        }],
        trace_marker: None,
    }
}

const fn real_time(priorities: bool) -> &'static str {
    if priorities { "preferred" } else { "off" }
}

const HIGH: i16 = 24_000;
const LOW: i16 = 0;
/// The calls of each thread that are not measured.
const WARM_UP_CALLS: u32 = 20;
/// The time that all clients may take to connect.
const START_UP: Duration = Duration::from_secs(15);
/// The time from the order to start until the start.
const LEAD: Duration = Duration::from_millis(200);
/// The time that the last calls and the processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(200);
