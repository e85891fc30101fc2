//! A server, its clients and what competes with them, and the course of a measurement.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};
use serde::de::DeserializeOwned;

use super::PART_COMMAND;
use super::class::Class;
use super::load::Load;
use super::order::{ClientOrder, Measured, Pace, Part, Ready, Run, ServerOrder, Serving};
use crate::contest::{Cpus, Placement};
use crate::environment::ProcessorTime;
use crate::error::LabError;
use crate::process::Child;

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
pub(super) struct Company {
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

impl Company {
    /// Starts all processes; when this returns, all are connected and in their places, and the load is on.
    pub(super) fn start(members: &Members) -> Result<Self, LabError> {
        let up = Deadline::after(START_UP);
        let order = ServerOrder {
            class: members.class,
            lock_memory: members.lock_memory,
            lanes: members.lanes.clone(),
        };
        let mut server = Child::start("server", PART_COMMAND, &Part::Server(order))?;
        let serving: Serving = server.hear(up)?;
        let order = ClientOrder {
            class: members.class,
            lock_memory: members.lock_memory,
            reference: serving.reference,
            server: server.id(),
            callers: members.callers.clone(),
        };
        let mut client = Child::start("client", PART_COMMAND, &Part::Client(order))?;
        let Ready {} = client.hear(up)?;
        // Where nothing is to be pinned, nothing is: who has a reservation would not have it otherwise.
        if members.placement != Placement::Unpinned {
            let cpus = Cpus::of_this_process()?;
            cpus.place(members.placement, client.id(), server.id())?;
        }
        let load = match members.load {
            Load::Idle => None,
            load => {
                let mut child = Child::start("load", PART_COMMAND, &Part::Load(load))?;
                let Ready {} = child.hear(up)?;
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
        self.client.tell(&Some(Run {
            at_ns: start.as_nanos(),
            length,
            paces: paces.to_vec(),
            steps,
        }))?;
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
    pub(super) fn stop(mut self) -> Result<(), LabError> {
        let end = Deadline::after(WIND_DOWN);
        if let Some(load) = self.load {
            load.stop(end)?;
        }
        self.client.tell(&None::<Run>)?;
        self.client.finish(end)?;
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
    let mut child = Child::start(name, PART_COMMAND, part)?;
    let answer = child.hear(Deadline::after(length + WIND_DOWN))?;
    child.finish(Deadline::after(WIND_DOWN))?;
    Ok(answer)
}

/// How long processes may take to start, and clients to connect.
const START_UP: Duration = Duration::from_secs(20);
/// From the telling of the clients to the start.
const LEAD: Duration = Duration::from_millis(40);
/// How long clients may take to answer, and servers to shut down, after the end.
const WIND_DOWN: Duration = Duration::from_secs(20);
