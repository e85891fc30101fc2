//! Time and memory of a program.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::Failure;

/// The time and memory that a run of a program took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) time: Duration,
    /// The greatest resident memory in KiB, as the kernel said at most 1 ms before the end.
    pub(super) memory: u64,
}

/// Runs a program to its end. One that fails is a failure here.
pub(super) fn cost(command: &mut Command) -> Result<Cost, Failure> {
    let shown = format!("{command:?}");
    let failed = |what: String| Failure(format!("{shown}: {what}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let mut memory = 0;
    loop {
        // The kernel keeps the peak, but not beyond the end of the program.
        memory = memory.max(peak(child.id()));
        let status = child
            .try_wait()
            .map_err(|error| failed(error.to_string()))?;
        match status {
            Some(status) if status.success() => break,
            Some(status) => return Err(failed(status.to_string())),
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(Cost {
        time: start.elapsed(),
        memory,
    })
}

/// The greatest resident memory of a process so far in KiB; 0 where it has ended.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The middle one of an odd number of values.
pub(super) fn median<T: Copy + Ord>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// Milliseconds with one digit behind the point.
pub(super) fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}
