//! The look-up of an operation in the run-time scheduler, in instructions.

use std::hint::black_box;

use chronorb_orb::schedule::{OperationSchedule, ScheduleTable};
use chronorb_probe::{StepCounter, TraceError, step_mark};
use chronorb_rt::Deadline;
use rustix::thread::gettid;
use serde::{Deserialize, Serialize};

use super::fleet::PATIENCE;
use crate::bench::priority;
use crate::error::LabError;
use crate::process::{self, Child, Parent};

/// The look-ups in a table of some size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TableLookUps {
    /// The operations of the table.
    pub operations: u32,
    /// The user-space instructions of a look-up by handle, the mean.
    pub by_handle: f64,
    /// The user-space instructions of a look-up by name, the mean.
    pub by_name: f64,
}

/// The figures of the part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SchedulerLookUps {
    /// The tables, by their size.
    pub tables: Vec<TableLookUps>,
    /// The reason why instructions could not be counted; empty if they were.
    pub refused: String,
}

/// The sizes of the tables.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct LookUpOrder {
    sizes: Vec<u32>,
    /// The look-ups in each table.
    looked_up: u32,
}

/// The thread whose instructions are counted.
#[derive(Debug, Deserialize, Serialize)]
struct LookUpThread {
    tid: u32,
}

/// Counts the instructions of look-ups in another process.
pub(super) fn measure(looked_up: u32) -> Result<SchedulerLookUps, LabError> {
    let order = LookUpOrder {
        sizes: SIZES.to_vec(),
        looked_up,
    };
    let (mut child, thread): (_, LookUpThread) = Child::start("look-ups", LOOK_UPS, &order)?;
    // An empty span; for each table, one before its look-ups and two of them.
    let marks = 2 + 3 * SIZES.len();
    let counter = match StepCounter::attach(thread.tid, marks) {
        Err(error @ TraceError::Refused(_)) => {
            child.tell(&())?;
            child.finish(Deadline::after(PATIENCE))?;
            return Ok(SchedulerLookUps {
                tables: Vec::new(),
                refused: error.to_string(),
            });
        }
        counter => counter.map_err(counting())?,
    };
    child.tell(&())?;
    let spans = counter.spans().map_err(counting())?;
    child.finish(Deadline::after(PATIENCE))?;
    let [empty, spans @ ..] = &spans[..] else {
        return Err(counting()(TraceError::Ended));
    };
    let each = |span: u64| {
        let instructions = span.saturating_sub(*empty) as f64 / f64::from(looked_up);
        (instructions * 10.0).round() / 10.0
    };
    let tables = SIZES.into_iter().zip(spans.chunks_exact(3));
    let tables = tables.map(|(operations, spans)| TableLookUps {
        operations,
        by_handle: each(spans[1]),
        by_name: each(spans[2]),
    });
    Ok(SchedulerLookUps {
        tables: tables.collect(),
        refused: String::new(),
    })
}

/// Makes tables, and looks operations up between marks.
pub(crate) fn look_ups_main(order: &str) -> Result<(), LabError> {
    let order: LookUpOrder = process::order(order)?;
    let parent = Parent::or_exit();
    let tables = order.sizes.iter().map(|size| {
        let operations = (0..*size).map(|number| {
            let position = OperationSchedule::new(priority((number % 32_768) as i16), number, 0);
            (
                format!("Module{}::Interface::operation_{number}", number % 13),
                position,
            )
        });
        ScheduleTable::new(operations).map_err(LabError::work("making a table"))
    });
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let looked_up = order.looked_up as usize;
    let chosen = tables.iter().map(|table| {
        let step = (table.len() / looked_up).max(1);
        let all = table.iter().step_by(step);
        let all = all.map(|(handle, name, _)| (handle, name.to_owned()));
        let all: Vec<_> = all.collect();
        all.into_iter().cycle().take(looked_up).unzip()
    });
    let chosen: Vec<(Vec<_>, Vec<_>)> = chosen.collect();
    // What happens only once is not counted.
    for (table, (handles, names)) in tables.iter().zip(&chosen) {
        by_handle(table, handles);
        by_name(table, names);
    }
    let tid = gettid().as_raw_nonzero().get().unsigned_abs();
    process::tell(&LookUpThread { tid })?;
    let () = parent.hear()?;
    step_mark();
    step_mark();
    for (table, (handles, names)) in tables.iter().zip(&chosen) {
        step_mark();
        by_handle(table, handles);
        step_mark();
        by_name(table, names);
        step_mark();
    }
    Ok(())
}

#[inline(never)]
fn by_handle(table: &ScheduleTable, handles: &[chronorb_orb::schedule::OperationHandle]) {
    for handle in handles {
        black_box(table.get(black_box(*handle)));
    }
}

#[inline(never)]
fn by_name(table: &ScheduleTable, names: &[String]) {
    for name in names {
        black_box(table.find(black_box(name)));
    }
}

fn counting() -> impl Fn(TraceError) -> LabError {
    LabError::work("counting the instructions of look-ups")
}

/// The part of a process that looks operations up.
pub(crate) const LOOK_UPS: &str = "scheduling-look-ups";
/// The sizes of the tables.
const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];
