//! A server, its clients and what competes with them, and the course of a measurement.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};
use serde::de::DeserializeOwned;

use super::PART;
use super::class::Class;
use super::load::Load;
use super::order::Part;
use crate::bench::{
    self, ClientSpec, Cpus, Measured, Model, OBJECT, Pace, PacedRun, Placement, PoolSpec,
    ServerSpec, Serving, real_time_options,
};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::{Child, Ready};

/// Who takes part.
#[derive(Clone, Debug)]
pub(super) struct Members {
    pub(super) class: Class,
    pub(super) lock_memory: bool,
    pub(super) placement: Placement,
    pub(super) load: Load,
    /// The priority of each lane, and its threads.
    pub(super) lanes: Vec<(u8, u32)>,
    /// The priority of each thread that calls.
    pub(super) callers: Vec<u8>,
}

/// The running processes.
#[derive(Debug)]
pub(super) struct OsFleet {
    server: Child,
    client: Child,
    load: Option<Child>,
}

/// What came of a measurement, and what the machine did meanwhile.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) measured: Measured,
    pub(super) busy_percent: f64,
    pub(super) stolen_percent: f64,
}

impl Members {
    /// Returns the server: an object that has a lane for each priority.
    fn server(&self) -> ServerSpec {
        let lanes = self
            .lanes
            .iter()
            .map(|(native, threads)| (i16::from(*native), *threads));
        let lanes: Vec<(i16, u32)> = lanes.collect();
        let least = lanes.iter().map(|(priority, _)| *priority).min();
        let model = Model::Propagated(least.unwrap_or_default());
        ServerSpec::of_work(self.options(), PoolSpec::lanes(lanes), model)
    }

    /// Returns the options of the ORBs: nothing spins, and priorities are those of the system.
    fn options(&self) -> Vec<String> {
        let mut options = real_time_options(self.lock_memory);
        options.extend(bench::options(&[
            "-ORBSchedulingPolicy",
            self.class.option(),
            "-ORBPriorityMapping",
            "direct",
            "-ORBThreadpoolStrategy",
            "leader-followers",
            "-ORBClientConnection",
            "exclusive",
            "-ORBClientWait",
            "block",
            "-ORBServerWait",
            "block",
        ]));
        options
    }
}

/// Runs the server; the threads of its lanes get what a priority cannot give them.
pub(super) fn serve(class: Class, lanes: &[u8], spec: &ServerSpec) -> Result<(), LabError> {
    let orb = bench::start_orb(&spec.options)?;
    let serving = spec.offer(&orb)?;
    class.finish_lanes(lanes)?;
    bench::serve(&orb, &serving)
}

/// Runs the client; its threads get what a priority cannot give them.
pub(super) fn call(class: Class, spec: &ClientSpec) -> Result<(), LabError> {
    spec.run(|index| match spec.threads[index] {
        Some(native) => class.finish_this_thread(u8::try_from(native).unwrap_or_default()),
        None => Ok(()),
    })
}

impl OsFleet {
    /// Starts all processes; when this returns, all are connected and in their places, and the load
    /// is on.
    pub(super) fn start(members: &Members) -> Result<Self, LabError> {
        let lanes: Vec<u8> = members
            .lanes
            .iter()
            .map(|(priority, _)| *priority)
            .collect();
        let part = Part::Server(members.class, lanes, members.server());
        let (server, serving): (_, Serving) = Child::start("server", PART, &part)?;
        let spec = ClientSpec {
            options: members.options(),
            reference: serving[OBJECT].clone(),
            threads: members
                .callers
                .iter()
                .map(|native| Some((*native).into()))
                .collect(),
            warm_up: WARM_UP_CALLS,
            server: Some(server.id()),
        };
        let part = Part::Client(members.class, spec);
        let (client, Ready {}) = Child::start("client", PART, &part)?;
        // Unpinned processes are left alone: a thread that is pinned gets no reservation.
        if members.placement != Placement::Unpinned {
            let cpus = Cpus::of_this_process()?;
            cpus.place(members.placement, client.id(), server.id())?;
        }
        let load = match members.load {
            Load::Idle => None,
            load => {
                let (child, Ready {}) = Child::start("load", PART, &Part::Load(load))?;
                Some(child)
            }
        };
        Ok(Self {
            server,
            client,
            load,
        })
    }

    /// Lets each thread of the client do its part for `length`. `soon` is told when that begins.
    pub(super) fn run(
        &mut self,
        paces: &[Pace],
        length: Duration,
        steps: u32,
        mut soon: impl FnMut(Monotonic) -> Result<(), LabError>,
    ) -> Result<Course, LabError> {
        let start = Monotonic::now() + LEAD;
        soon(start)?;
        self.client
            .tell(&Some(PacedRun::new(start, length, paces, steps)))?;
        sleep_until(start);
        let before = ProcessorTime::now();
        sleep_until(start + length);
        let after = ProcessorTime::now();
        let measured = self.client.hear(Deadline::after(WIND_DOWN))?;
        Ok(Course {
            measured,
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
        self.server.stop(end)?;
        Ok(())
    }
}

/// Lets a child that needs nobody else do its part, and hears what came of it.
pub(super) fn ask<T: DeserializeOwned>(
    name: &str,
    part: &Part,
    length: Duration,
) -> Result<T, LabError> {
    let mut child = Child::launch(name, PART, part)?;
    let answer = child.hear(Deadline::after(length + WIND_DOWN))?;
    child.finish(Deadline::after(WIND_DOWN))?;
    Ok(answer)
}

/// From the telling of the clients to the start.
const LEAD: Duration = Duration::from_millis(40);
/// How long clients may take to answer, and servers to shut down, after the end.
const WIND_DOWN: Duration = Duration::from_secs(20);
/// The calls of each thread that are not measured.
const WARM_UP_CALLS: u32 = 100;
