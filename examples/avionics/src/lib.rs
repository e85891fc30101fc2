//! The operations of a mission computer. Each computes for most of the time that the schedule
//! grants it.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use chronorb::prelude::*;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

mod idl {
    chronorb::include_idl!("avionics");
}

pub use idl::avionics::*;

/// The servant of all interfaces.
#[derive(Debug)]
pub struct MissionComputer;

impl FlightServant for MissionComputer {
    fn control(&self, _call: &Call<'_>, pitch_rate: i32) -> Result<i32, SystemException> {
        compute(Duration::from_micros(5_500));
        Ok(-pitch_rate / 4)
    }
}

impl NavigationServant for MissionComputer {
    fn locate(&self, _call: &Call<'_>, speed: i32) -> Result<i32, SystemException> {
        compute(Duration::from_micros(9_200));
        Ok(120_000 - speed)
    }
}

impl DisplayServant for MissionComputer {
    fn draw(&self, _call: &Call<'_>, page: i32) -> Result<i32, SystemException> {
        compute(Duration::from_micros(18_500));
        Ok(200 + page)
    }
}

impl MaintenanceServant for MissionComputer {
    fn inspect(&self, _call: &Call<'_>, _sensors: i32) -> Result<i32, SystemException> {
        compute(Duration::from_millis(75));
        Ok(0)
    }
}

/// Computes until this thread has taken so much processor time.
fn compute(time: Duration) {
    let thread_time = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_nsec.unsigned_abs() as u32,
        )
    };
    let end = thread_time() + time;
    while thread_time() < end {
        for step in 0..300_u32 {
            black_box(step.wrapping_mul(step));
        }
    }
}

/// A processor among those that the process may use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProcessorChoice {
    /// The first one.
    First,
    /// The last one.
    Last,
}

/// Keeps the calling thread, and threads that it starts, on one processor: the analysis of a node
/// with one processor holds only then.
///
/// # Errors
/// The kernel refuses it.
pub fn pin(choice: ProcessorChoice) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let cpu = match choice {
        ProcessorChoice::First => cpus.next(),
        ProcessorChoice::Last => cpus.next_back(),
    };
    let mut one = CpuSet::new();
    one.set(cpu.unwrap_or_default());
    Ok(sched_setaffinity(None, &one)?)
}
