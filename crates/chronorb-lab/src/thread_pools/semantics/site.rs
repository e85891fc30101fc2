//! A server with one pool, and clients.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use chronorb::observe::{LaneSnapshot, ThreadSnapshot};
use chronorb::prelude::*;
use chronorb::rtcorba::ThreadpoolId;
use chronorb_rt::{Deadline, Monotonic, Scheduling, sleep_until};

use super::floor::{Floor, HoldingServant, PATIENCE, Sight, stuck};
use super::{LOW, thread};
use crate::bench::{real_time_options, start_orb};
use crate::error::LabError;
use crate::idl::peers::{Power, PowerSkeleton};
use crate::thread_pools::Strategy;

/// A server with one pool, and clients. Both are in this process, and communicate over sockets.
pub(super) struct PoolSite {
    server: Orb,
    client: Orb,
    pool: ThreadpoolId,
    reference: String,
    pub(super) floor: Arc<Floor>,
}

/// A request that is under way.
pub(super) struct PendingRequest(Receiver<Result<i32, SystemException>>);

impl PendingRequest {
    /// Waits for the reply, and returns it.
    pub(super) fn reply(self) -> Result<Result<i32, SystemException>, LabError> {
        let reply = self.0.recv_timeout(2 * PATIENCE);
        reply.map_err(|_| stuck("a request was never answered"))
    }

    /// Waits until the request was served.
    pub(super) fn served(self) -> Result<(), LabError> {
        let reply = self.reply()?.map(drop);
        reply.map_err(LabError::work("calling the server"))
    }
}

impl PoolSite {
    pub(super) fn with_lanes(strategy: Strategy, pool: ThreadpoolLanes) -> Result<Self, LabError> {
        Self::new(strategy, |orb| orb.rt().create_threadpool_with_lanes(&pool))
    }

    pub(super) fn without_lanes(strategy: Strategy, pool: &Threadpool) -> Result<Self, LabError> {
        Self::new(strategy, |orb| orb.rt().create_threadpool(pool))
    }

    fn new(
        strategy: Strategy,
        pool: impl FnOnce(&Orb) -> Result<ThreadpoolId, SystemException>,
    ) -> Result<Self, LabError> {
        let mut options = real_time_options(false);
        let client = start_orb(&options)?;
        options.extend(["-ORBThreadpoolStrategy", strategy.option()].map(str::to_owned));
        let server = start_orb(&options)?;
        let floor = Arc::new(Floor::new());
        let pool = pool(&server).map_err(LabError::work("making the pool"))?;
        let reference = offer(&server, pool, &floor);
        let reference = reference.map_err(LabError::work("offering the object"))?;
        Ok(Self {
            server,
            client,
            pool,
            reference,
            floor,
        })
    }

    /// Sends a request of a client of this priority, which the floor holds.
    pub(super) fn hold(&self, number: u8, priority: Priority) -> PendingRequest {
        let (sender, reply) = mpsc::channel();
        let (client, reference) = (self.client.clone(), self.reference.clone());
        std::thread::spawn(move || {
            let call = || {
                client.rt_current().set_priority(priority)?;
                let object = client.string_to_object(&reference)?;
                Power::unchecked_narrow(&object).cube(number)
            };
            // The thread that waits for the reply may have given up.
            let _ = sender.send(call());
        });
        PendingRequest(reply)
    }

    /// Returns the present state of the lanes of the pool.
    pub(super) fn lanes(&self) -> Vec<LaneSnapshot> {
        let mut pools = self.server.snapshot().pools.into_iter();
        let pool = pools.find(|pool| pool.number == self.pool.number());
        pool.map(|pool| pool.lanes).unwrap_or_default()
    }

    /// Returns the threads of all lanes.
    pub(super) fn threads(&self) -> Vec<ThreadSnapshot> {
        let lanes = self.lanes().into_iter();
        lanes.flat_map(|lane| lane.threads).collect()
    }

    /// Returns the present native scheduling of the thread of a request.
    pub(super) fn scheduling(&self, sight: &Sight) -> Option<Scheduling> {
        Some(thread(&self.threads(), sight)?.scheduling)
    }

    /// Waits until so many requests are in the buffer.
    pub(super) fn await_queued(&self, count: u32) -> Result<(), LabError> {
        let queued = || self.lanes().iter().map(|lane| lane.queued).sum::<u32>();
        let were = self.until(|| queued() == count);
        were.then_some(())
            .ok_or_else(|| stuck(format!("there never were {count} in the buffer")))
    }

    /// Waits until a condition holds. Returns whether it ever did.
    pub(super) fn until(&self, holds: impl Fn() -> bool) -> bool {
        let deadline = Deadline::after(PATIENCE);
        while !holds() {
            if deadline.has_passed() {
                return false;
            }
            sleep_until(Monotonic::now() + POLL_PERIOD);
        }
        true
    }
}

impl Drop for PoolSite {
    fn drop(&mut self) {
        self.floor.open();
        // Both fail only if they have been shut down already.
        let _ = self.client.shutdown(false);
        let _ = self.server.shutdown(true);
    }
}

/// Activates an object on a pool and returns its reference.
fn offer(
    orb: &Orb,
    pool: ThreadpoolId,
    floor: &Arc<Floor>,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ClientPropagated, LOW),
    ];
    let poa = root.create_poa("held", Some(root.manager()), &policies)?;
    let object = poa.serve(PowerSkeleton::new(HoldingServant(floor.clone())))?;
    root.manager().activate()?;
    Ok(orb.object_to_string(&object))
}

const POLL_PERIOD: Duration = Duration::from_millis(1);
