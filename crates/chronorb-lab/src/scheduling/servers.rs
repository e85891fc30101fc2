//! Servers of the experiment: one with a policy for overruns, and a relay before another server.

use std::sync::Arc;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_orb::schedule::{OperationSchedule, ScheduleTable};
use serde::{Deserialize, Serialize};

use crate::bench::work::find;
use crate::bench::{
    Model, ObjectReferences, PoolSpec, ServerSpec, orb_arguments, priority, serve, start_orb,
};
use crate::error::LabError;
use crate::idl::lab::{Work, WorkServant, WorkSkeleton};
use crate::process;

/// A server with a policy for overruns.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct OverrunServer {
    pub(super) spec: ServerSpec,
    /// The value of `-ORBOverrun`.
    pub(super) policy: String,
    pub(super) budget: Duration,
}

/// Runs a server with a policy for overruns.
pub(crate) fn overrun_server_main(order: &str) -> Result<(), LabError> {
    let order: OverrunServer = process::order(order)?;
    let mut arguments = orb_arguments(&order.spec.options);
    arguments.extend(["-ORBOverrun".to_owned(), order.policy]);
    let mut config = OrbConfig::read(&mut arguments).map_err(LabError::work(STARTING))?;
    let mut budget = OperationSchedule::new(priority(1), 0, 0);
    budget.budget = Some(order.budget);
    let table = ScheduleTable::new([("Lab::Burst::compute".to_owned(), budget)]);
    config.schedule_table = Some(Arc::new(table.map_err(LabError::work(STARTING))?));
    let orb = Orb::with_config(config).map_err(LabError::work(STARTING))?;
    let serving = order.spec.offer(&orb)?;
    serve(&orb, &serving)
}

/// A relay: the options of its ORB, its pool, and the objects that it calls.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RelaySpec {
    pub(super) options: Vec<String>,
    pub(super) pool: PoolSpec,
    pub(super) targets: Vec<RelayTarget>,
}

/// An object that a relay calls for an object of its own.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RelayTarget {
    /// The name of the relay's object.
    pub(super) name: String,
    pub(super) reference: String,
    pub(super) model: Model,
}

/// Runs the relay of an order.
pub(crate) fn relay_main(order: &str) -> Result<(), LabError> {
    let spec: RelaySpec = process::order(order)?;
    let orb = start_orb(&spec.options)?;
    let serving = spec.offer(&orb)?;
    serve(&orb, &serving)
}

impl RelaySpec {
    fn offer(&self, orb: &Orb) -> Result<ObjectReferences, LabError> {
        let root = orb.root_poa().map_err(LabError::work(OFFERING))?;
        let pool = self.pool.make(orb).map_err(LabError::work(OFFERING))?;
        let mut serving = ObjectReferences::new();
        for target in &self.targets {
            let relay = Relay(find(orb, None, &target.reference)?);
            let policies = [Policy::Threadpool(pool), target.model.policy()];
            let poa = root.create_poa(&target.name, Some(root.manager()), &policies);
            let poa = poa.map_err(LabError::work(OFFERING))?;
            let object = poa.serve(WorkSkeleton::new(relay));
            let object = object.map_err(LabError::work(OFFERING))?;
            serving.insert(target.name.clone(), orb.object_to_string(&object));
        }
        let active = root.manager().activate();
        active.map_err(LabError::work(OFFERING))?;
        Ok(serving)
    }
}

/// The servant that has another object do its work.
struct Relay(Work);

impl WorkServant for Relay {
    fn cube(&self, _call: &Call<'_>, value: u8, steps: u32) -> Result<i32, SystemException> {
        self.0.cube(value, steps)
    }

    fn work_until(
        &self,
        _call: &Call<'_>,
        until_ns: u64,
        compute_us: u32,
        rest_us: u32,
    ) -> Result<u32, SystemException> {
        self.0.work_until(until_ns, compute_us, rest_us)
    }

    fn occupy(&self, _call: &Call<'_>, length_us: u32) -> Result<(), SystemException> {
        self.0.occupy(length_us)
    }

    fn compute(&self, _call: &Call<'_>, cpu_us: u32) -> Result<u64, SystemException> {
        self.0.compute(cpu_us)
    }
}

/// The part of a process that is a server with a policy for overruns.
pub(crate) const OVERRUN_SERVER: &str = "scheduling-overrun-server";
/// The part of a process that is a relay.
pub(crate) const RELAY: &str = "scheduling-relay";
const STARTING: &str = "starting the ORB";
const OFFERING: &str = "offering the objects of the relay";
