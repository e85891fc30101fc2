//! The cost of very many objects and POAs.

use std::process;
use std::time::Instant;

use chronorb_orb::Demultiplexing;
use chronorb_orb::codegen::v1::OperationTable;
use chronorb_orb::poa::ObjectId;
use chronorb_rt::{allocations, live_octets};
use serde::Serialize;

use super::DemuxPlan;
use super::operations::{EmptySkeleton, Operations};
use super::population::Home;
use crate::error::LabError;
use crate::progress::Progress;
use crate::usage::resident;

/// The cost of very many objects in one POA, and of very many POAs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scale {
    /// Objects that were activated in one POA and deactivated, each with a servant of its own.
    pub objects: BulkCost,
    /// POAs without objects that were made and destroyed.
    pub poas: BulkCost,
}

/// The cost of many things of a kind, from their creation to their end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BulkCost {
    /// The number of things at a time.
    pub count: u32,
    /// The time to make each, in ns.
    pub begin_ns: f64,
    /// The time to end each, in ns.
    pub end_ns: f64,
    /// The bytes of each.
    pub octets: MemoryUse,
    /// The bytes that are left of all of them after their end.
    pub rest: MemoryUse,
}

/// An amount of memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryUse {
    /// The bytes that the program has from its allocator, if they are counted.
    pub allocated: Option<f64>,
    /// The resident memory of the process, which grows by pages, and which the allocator returns
    /// late.
    pub resident: f64,
}

impl MemoryUse {
    fn now() -> Self {
        // This thread has allocated before, so that the count is 0 only without a counter.
        let counts = allocations() > 0;
        Self {
            allocated: counts.then(|| live_octets() as f64),
            resident: resident(process::id()) as f64,
        }
    }

    /// Returns the growth since then, divided by `count`.
    fn since(self, before: Self, count: u32) -> Self {
        let each = |now: f64, before: f64| tenths((now - before) / f64::from(count));
        let allocated = self.allocated.zip(before.allocated);
        Self {
            allocated: allocated.map(|(now, before)| each(now, before)),
            resident: each(self.resident, before.resident),
        }
    }
}

/// Makes and ends as many objects and POAs as the plan says.
pub(super) fn measure(plan: &DemuxPlan) -> Result<Scale, LabError> {
    let progress = Progress::start("activating and making many", 2);
    let home = Home::new(Demultiplexing::Active)?;
    let objects = objects(&home, plan.scale_objects)?;
    progress.advance(1);
    let poas = poas(&home, plan.scale_poas)?;
    Ok(Scale { objects, poas })
}

fn objects(home: &Home, count: u32) -> Result<BulkCost, LabError> {
    let find = Operations::new(1).by_perfect_hash();
    let poa = home.poa("many", &[])?;
    let activate = || {
        let id = poa.activate_object(EmptySkeleton(find));
        id.map_err(LabError::work("an object could not be activated"))
    };
    // The memory of the first object of a POA, and that of the ids, is not counted.
    activate()?;
    home.wait_for_threads()?;
    let mut ids = vec![ObjectId::new([0; 8]); count as usize];
    let begin = || {
        for id in &mut ids {
            *id = activate()?;
        }
        Ok(ids)
    };
    cost(count, begin, |ids| {
        let mut ids = ids.iter();
        let ended = ids.try_for_each(|id| poa.deactivate_object(id));
        ended.map_err(LabError::work("an object could not be deactivated"))
    })
}

fn poas(home: &Home, count: u32) -> Result<BulkCost, LabError> {
    let names: Vec<String> = (0..count).map(|n| format!("many_{n:05}")).collect();
    let mut poas = Vec::with_capacity(names.len());
    let begin = || {
        for name in &names {
            poas.push(home.poa(name, &[])?);
        }
        Ok(poas)
    };
    cost(count, begin, |poas| {
        let ended = poas.drain(..).try_for_each(|poa| poa.destroy(false, false));
        ended.map_err(LabError::work("a POA could not be destroyed"))
    })
}

/// Makes things, ends them, and reads clock and memory before, between and after.
fn cost<T>(
    count: u32,
    begin: impl FnOnce() -> Result<T, LabError>,
    end: impl FnOnce(&mut T) -> Result<(), LabError>,
) -> Result<BulkCost, LabError> {
    let each = |start: Instant| tenths(start.elapsed().as_nanos() as f64 / f64::from(count));
    let before = MemoryUse::now();
    let start = Instant::now();
    let mut all = begin()?;
    let begin_ns = each(start);
    let full = MemoryUse::now();
    let start = Instant::now();
    end(&mut all)?;
    let end_ns = each(start);
    Ok(BulkCost {
        count,
        begin_ns,
        end_ns,
        octets: full.since(before, count),
        rest: MemoryUse::now().since(before, 1),
    })
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The bytes of each object's servant, which is a reference-counted allocation.
pub(super) const SERVANT: usize =
    2 * size_of::<usize>() + size_of::<EmptySkeleton<&OperationTable>>();
