//! A server, its clients and the load beside them, and the course of a measurement.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until, thread_id};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::case::OsCase;
use super::class::{HIGH, LOW};
use super::load::CompetingLoad;
use super::{OsPart, PART};
use crate::bench::{
    self, ClientSpec, Cpus, MeasuredCalls, Model, OBJECT, ObjectReferences, Pace, PacedRun,
    Placement, PoolSpec, ServerSpec, real_time_options,
};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::{Child, Ready};

/// The lanes of a server, and the threads that call it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Members {
    pub(super) case: OsCase,
    /// The priority of each lane, and the number of its threads.
    lanes: Vec<(u8, u32)>,
    /// The priority of each calling thread.
    callers: Vec<u8>,
}

/// The running processes.
#[derive(Debug)]
pub(super) struct OsFleet {
    server: Child,
    client: Child,
    load: Option<Child>,
}

/// The calls of a measurement, and the use of the CPUs meanwhile.
#[derive(Debug)]
pub(super) struct OsCourse {
    pub(super) measured: MeasuredCalls,
    pub(super) busy_percent: f64,
    pub(super) stolen_percent: f64,
}

impl Members {
    /// Returns one client of high priority with a lane of one thread, and so many of low priority
    /// with a lane of two threads.
    pub(super) fn high_and_low(case: OsCase, low_clients: u32) -> Self {
        Self {
            case,
            lanes: vec![(LOW, 2), (HIGH, 1)],
            callers: [vec![HIGH], vec![LOW; low_clients as usize]].concat(),
        }
    }

    /// Returns a client and a lane of one thread for each priority.
    pub(super) fn one_each(case: OsCase, priorities: &[u8]) -> Self {
        Self {
            case,
            lanes: priorities.iter().map(|priority| (*priority, 1)).collect(),
            callers: priorities.to_vec(),
        }
    }

    /// Runs the server, which has an object with these lanes.
    pub(super) fn serve(&self) -> Result<(), LabError> {
        let lanes = self.lanes.iter();
        let lanes: Vec<_> = lanes
            .map(|(native, size)| ((*native).into(), *size))
            .collect();
        let least = lanes.iter().map(|(priority, _)| *priority).min();
        let model = Model::Propagated(least.unwrap_or_default());
        let spec = ServerSpec::of_work(self.options(), PoolSpec::lanes(lanes), model);
        let orb = bench::start_orb(&spec.options)?;
        let serving = spec.offer(&orb)?;
        self.case.class.reserve_for_lanes(&self.lanes)?;
        bench::serve(&orb, &serving)
    }

    /// Runs the client of a server.
    pub(super) fn call(&self, reference: &str, server: u32) -> Result<(), LabError> {
        let callers = self.callers.iter();
        let spec = ClientSpec {
            options: self.options(),
            reference: reference.to_owned(),
            threads: callers.map(|native| Some((*native).into())).collect(),
            warm_up: WARM_UP_CALLS,
            server: Some(server),
        };
        spec.run(|index| self.case.class.reserve(thread_id(), self.callers[index]))
    }

    /// Returns the options of the ORBs: no thread polls, and CORBA priorities are native ones.
    fn options(&self) -> Vec<String> {
        let mut options = real_time_options(self.case.memory_locked);
        options.extend(bench::options(&[
            "-ORBSchedulingPolicy",
            self.case.class.option(),
        ]));
        options.extend(OPTIONS.split_whitespace().map(str::to_owned));
        options
    }
}

impl OsFleet {
    /// Starts all processes. They are connected and placed, and the load is on, when this returns.
    pub(super) fn start(members: Members) -> Result<Self, LabError> {
        let OsCase {
            load, placement, ..
        } = members.case;
        let part = OsPart::Server(members.clone());
        let (server, serving): (_, ObjectReferences) = Child::start("server", PART, &part)?;
        let part = OsPart::Client(members, serving[OBJECT].clone(), server.id());
        let (client, Ready {}) = Child::start("client", PART, &part)?;
        // A thread that is pinned gets no reservation, so unpinned processes keep their affinity.
        if placement != Placement::Unpinned {
            Cpus::of_this_process()?.place(placement, client.id(), server.id())?;
        }
        let load = if load == CompetingLoad::Idle {
            None
        } else {
            let (child, Ready {}) = Child::start("load", PART, &OsPart::Load(load))?;
            Some(child)
        };
        Ok(Self {
            server,
            client,
            load,
        })
    }

    /// Makes each thread of the client call at its pace for `length`, from `start`.
    pub(super) fn run(
        &mut self,
        start: Monotonic,
        paces: &[Pace],
        length: Duration,
        steps: u32,
    ) -> Result<OsCourse, LabError> {
        let run = PacedRun::new(start, length, paces, steps);
        self.client.tell(&Some(run))?;
        sleep_until(start);
        let before = ProcessorTime::now();
        sleep_until(start + length);
        let after = ProcessorTime::now();
        Ok(OsCourse {
            measured: self.client.hear(Deadline::after(WIND_DOWN))?,
            busy_percent: before.busy_percent(after),
            stolen_percent: before.stolen_percent(after),
        })
    }

    /// Ends all processes.
    pub(super) fn stop(self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        if let Some(load) = self.load {
            load.stop(end)?;
        }
        self.client.dismiss(end)?;
        Ok(self.server.stop(end)?)
    }
}

/// Runs a child that works alone, and returns its answer.
pub(super) fn ask<T: DeserializeOwned>(
    name: &str,
    part: &OsPart,
    length: Duration,
) -> Result<T, LabError> {
    let mut child = Child::launch(name, PART, part)?;
    let answer = child.hear(Deadline::after(length + WIND_DOWN))?;
    child.finish(Deadline::after(WIND_DOWN))?;
    Ok(answer)
}

/// Returns the next start of a measurement: late enough for all processes to be told of it.
pub(super) fn soon() -> Monotonic {
    Monotonic::now() + Duration::from_millis(40)
}

const OPTIONS: &str = "-ORBPriorityMapping direct -ORBThreadpoolStrategy leader-followers \
                       -ORBClientConnection exclusive -ORBClientWait block -ORBServerWait block";
/// The time that clients may take to answer, and servers to shut down.
pub(super) const WIND_DOWN: Duration = Duration::from_secs(20);
/// The calls of each thread before the first measurement.
const WARM_UP_CALLS: u32 = 100;
