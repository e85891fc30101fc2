//! The processor time, the memory and the context switches of processes, by proc(5).

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::environment::value_of;

/// The processor time and the context switches of the threads that a process has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProcessUsage {
    /// The processor time, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// The context switches, voluntary or not.
    pub(crate) switches: u64,
}

impl ProcessUsage {
    /// Returns the usage since an earlier one.
    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// Returns the usage of all threads that a process has now; none for a process that is gone.
pub(crate) fn of(process: u32) -> ProcessUsage {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let mut used = ProcessUsage::default();
    for thread in threads.into_iter().flatten().flatten() {
        let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        used.cpu_ns += run_ns(&read("schedstat"));
        used.switches += switches(&read("status"));
    }
    used
}

/// Returns the processor time of a thread of this process, if it is known.
pub(crate) fn of_own_thread(tid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).ok()?;
    Some(Duration::from_nanos(run_ns(&text)))
}

/// Returns the processor time of the calling thread.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let [seconds, nanos] = [time.tv_sec, time.tv_nsec].map(|part| part.max(0).cast_unsigned());
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

/// Returns the processor time of all threads of a process so far, with those that have ended; zero
/// for a process that is gone.
pub(crate) fn computed(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let ticks = ticks(&stat).unwrap_or(0);
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

/// Returns the resident memory of a process in bytes; 0 if it cannot be read.
pub(crate) fn resident(process: u32) -> u64 {
    memory(process, "VmRSS")
}

/// Returns the most resident memory that a process has had, in bytes; 0 if it cannot be read.
pub(crate) fn resident_peak(process: u32) -> u64 {
    memory(process, "VmHWM")
}

fn memory(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib = value_of(&status, name).and_then(|value| value.split_whitespace().next());
    kib.and_then(|kib| kib.parse().ok()).unwrap_or(0_u64) * 1024
}

/// Parses the run time in nanoseconds, the first word of `/proc/PID/task/TID/schedstat`.
fn run_ns(schedstat: &str) -> u64 {
    let first = schedstat.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Parses the context switches of `/proc/PID/task/TID/status`, voluntary or not.
fn switches(status: &str) -> u64 {
    let lines = status
        .lines()
        .filter_map(|line| line.split_once("ctxt_switches:"));
    lines
        .filter_map(|(_, number)| number.trim().parse::<u64>().ok())
        .sum()
}

/// Adds `utime` and `stime` of `/proc/PID/stat`, proc(5): the 14th and the 15th word. The second
/// word is a name in parentheses, which may have spaces and parentheses itself.
fn ticks(stat: &str) -> Option<u64> {
    let (_, words) = stat.rsplit_once(')')?;
    let mut words = words.split_whitespace().skip(11);
    let user: u64 = words.next()?.parse().ok()?;
    let system: u64 = words.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 100 0 0 0 250 30 0 0 20 0 1 0 5 9 9";
        assert_eq!(ticks(stat), Some(280));
        assert_eq!(ticks(""), None);
        assert_eq!(ticks("77 (a) S 1 2"), None);
    }

    #[test]
    fn run_times_and_switches_are_parsed() {
        assert_eq!(run_ns("1500 20 3\n"), 1500);
        assert_eq!(run_ns(""), 0);
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(switches(status), 12);
        // The sum over all threads of the process would fall when another test ends.
        let own = || fs::read_to_string("/proc/thread-self/status").expect("it can be read");
        let before = switches(&own());
        std::thread::sleep(Duration::from_millis(1));
        assert!(switches(&own()) > before);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident(std::process::id()) > 100_000);
        assert_eq!(resident(u32::MAX), 0);
    }

    #[test]
    fn a_process_that_is_gone_has_used_nothing() {
        assert_eq!(computed(u32::MAX), Duration::ZERO);
        assert_eq!(of(u32::MAX), ProcessUsage::default());
    }
}
