//! A server with one pool, and clients.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use chronorb::observe::LaneSnapshot;
use chronorb::prelude::*;
use chronorb::rtcorba::ThreadpoolId;
use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::LOW;
use super::floor::{Floor, Held, PATIENCE, stuck};
use crate::bench::{real_time_options, start_orb};
use crate::error::LabError;
use crate::idl::lab::{Work, WorkSkeleton};
use crate::thread_pools::Strategy;

/// A server with one pool, and clients. Both are in this process, and reach each other over the network.
pub(super) struct Site {
    server: Orb,
    client: Orb,
    pool: ThreadpoolId,
    reference: String,
    pub(super) floor: Arc<Floor>,
}

/// A request under way.
pub(super) struct Asked(Receiver<Result<i32, SystemException>>);

impl Asked {
    /// What it came to.
    pub(super) fn answer(self) -> Result<Result<i32, SystemException>, LabError> {
        let answer = self.0.recv_timeout(2 * PATIENCE);
        answer.map_err(|_| stuck("a request was never answered"))
    }

    /// Waits until it was served.
    pub(super) fn answered(self) -> Result<(), LabError> {
        let answer = self.answer()?;
        answer
            .map(drop)
            .map_err(LabError::work("calling the server"))
    }
}

impl Site {
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

    /// A client of this priority asks, and is held on the floor.
    pub(super) fn hold(&self, number: u8, priority: Priority) -> Asked {
        let (sender, answer) = mpsc::channel();
        let (client, reference) = (self.client.clone(), self.reference.clone());
        thread::spawn(move || {
            let call = || {
                client.rt_current().set_priority(priority)?;
                let object = client.string_to_object(&reference)?;
                Work::unchecked_narrow(&object).cube(number, 0)
            };
            // Who asked may have given up.
            let _ = sender.send(call());
        });
        Asked(answer)
    }

    /// What the lanes of the pool are doing.
    pub(super) fn lanes(&self) -> Vec<LaneSnapshot> {
        let mut pools = self.server.snapshot().pools.into_iter();
        let pool = pools.find(|pool| pool.number == self.pool.number());
        pool.map(|pool| pool.lanes).unwrap_or_default()
    }

    /// Waits until so many requests are in the buffer.
    pub(super) fn await_queued(&self, count: u32) -> Result<(), LabError> {
        let queued = || self.lanes().iter().map(|lane| lane.queued).sum::<u32>();
        match self.until(|| queued() == count) {
            true => Ok(()),
            false => Err(stuck(format!("there never were {count} in the buffer"))),
        }
    }

    /// Waits until something is so; returns whether it ever was.
    pub(super) fn until(&self, is_so: impl Fn() -> bool) -> bool {
        let deadline = Deadline::after(PATIENCE);
        while !is_so() {
            if deadline.has_passed() {
                return false;
            }
            sleep_until(Monotonic::now() + LOOK_AGAIN);
        }
        true
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.floor.open();
        // Both fail only where they are ending already.
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
    let object = poa.serve(WorkSkeleton::new(Held(floor.clone())))?;
    root.manager().activate()?;
    Ok(orb.object_to_string(&object))
}

const LOOK_AGAIN: Duration = Duration::from_millis(1);
