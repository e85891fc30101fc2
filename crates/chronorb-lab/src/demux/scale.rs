//! What very many objects and POAs take.

use std::process;
use std::time::Instant;

use chronorb_orb::Demultiplexing;
use chronorb_orb::codegen::v1::OperationTable;
use chronorb_orb::poa::ObjectId;
use chronorb_rt::{allocations, live_octets};
use serde::Serialize;

use super::Plan;
use super::operations::{Empty, Operations};
use super::population::Home;
use crate::error::LabError;
use crate::progress::Progress;
use crate::usage::resident;

/// What very many objects in one POA take, and very many POAs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scale {
    /// Objects that were activated in one POA and deactivated, each with a servant of its own.
    pub objects: Many,
    /// POAs that were made and destroyed, without objects.
    pub poas: Many,
}

/// What many of a kind take, from their beginning to their end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Many {
    /// How many there were at a time.
    pub count: u32,
    /// How long it took to make each, in ns.
    pub begin_ns: f64,
    /// How long it took to end each, in ns.
    pub end_ns: f64,
    /// Octets for each.
    pub octets: MemoryUse,
    /// Octets that were left of all of them after their end.
    pub rest: MemoryUse,
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryUse {
    /// As the program asked its allocator for them; nothing where nobody counts that.
    pub allocated: Option<f64>,
    /// By the resident memory of the process, which comes in pages and returns when the
    /// allocator thinks fit.
    pub resident: f64,
}

/// What the process has.
#[derive(Clone, Copy)]
struct Memory {
    allocated: Option<f64>,
    resident: f64,
}

impl Memory {
    fn now() -> Self {
        // This thread has allocated before.
        let counts = allocations() > 0;
        Self {
            allocated: counts.then(|| live_octets() as f64),
            resident: resident(process::id()) as f64,
        }
    }

    /// What has come since then, divided by `count`.
    fn since(self, before: Self, count: u32) -> MemoryUse {
        let each = |now: f64, before: f64| tenths((now - before) / f64::from(count));
        let allocated = self.allocated.zip(before.allocated);
        MemoryUse {
            allocated: allocated.map(|(now, before)| each(now, before)),
            resident: each(self.resident, before.resident),
        }
    }
}

/// Activates and makes as many as the plan says, and ends them.
pub(super) fn measure(plan: &Plan) -> Result<Scale, LabError> {
    let progress = Progress::start("activating and making many", 2);
    let home = Home::new(Demultiplexing::Active)?;
    let objects = objects(&home, plan.scale_objects)?;
    progress.advance(1);
    let poas = poas(&home, plan.scale_poas)?;
    Ok(Scale { objects, poas })
}

fn objects(home: &Home, count: u32) -> Result<Many, LabError> {
    let find = Operations::new(1).perfect;
    let poa = home.poa("many", &[])?;
    let activate = || {
        let id = poa.activate_object(Empty(find));
        id.map_err(LabError::work("an object could not be activated"))
    };
    // What comes with the first object of a POA is none of the many, nor are their ids.
    activate()?;
    let mut ids = vec![ObjectId::new([0; 8]); count as usize];
    many(
        count,
        || {
            for id in &mut ids {
                *id = activate()?;
            }
            Ok(ids)
        },
        |ids| {
            for id in ids {
                let ended = poa.deactivate_object(id);
                ended.map_err(LabError::work("an object could not be deactivated"))?;
            }
            Ok(())
        },
    )
}

fn poas(home: &Home, count: u32) -> Result<Many, LabError> {
    let names: Vec<String> = (0..count).map(|n| format!("many_{n:05}")).collect();
    let mut poas = Vec::with_capacity(names.len());
    many(
        count,
        || {
            for name in &names {
                poas.push(home.poa(name, &[])?);
            }
            Ok(poas)
        },
        |poas| {
            for poa in poas.drain(..) {
                let ended = poa.destroy(false, false);
                ended.map_err(LabError::work("a POA could not be destroyed"))?;
            }
            Ok(())
        },
    )
}

/// Makes many, ends them, and looks at clock and memory before, between and after.
fn many<T>(
    count: u32,
    begin: impl FnOnce() -> Result<T, LabError>,
    end: impl FnOnce(&mut T) -> Result<(), LabError>,
) -> Result<Many, LabError> {
    let each = |start: Instant| tenths(start.elapsed().as_nanos() as f64 / f64::from(count));
    let before = Memory::now();
    let start = Instant::now();
    let mut all = begin()?;
    let begin_ns = each(start);
    let full = Memory::now();
    let start = Instant::now();
    end(&mut all)?;
    let end_ns = each(start);
    let after = Memory::now();
    Ok(Many {
        count,
        begin_ns,
        end_ns,
        octets: full.since(before, count),
        rest: after.since(before, 1),
    })
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Octets of each object's servant, as the reference-counted allocation that it is.
pub(super) const SERVANT: usize = 2 * size_of::<usize>() + size_of::<Empty<&OperationTable>>();
