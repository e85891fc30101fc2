//! The processor time and the memory of a process.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

use crate::environment::value_of;

/// The time that all threads of a process have computed so far, those that have ended too; nothing when it is gone.
pub(crate) fn computed(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let ticks = ticks(&stat).unwrap_or(0);
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

/// The resident memory of a process in octets; 0 where it cannot be read.
pub(crate) fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib = value_of(&status, "VmRSS").and_then(|value| value.split_whitespace().next());
    kib.and_then(|kib| kib.parse().ok()).unwrap_or(0_u64) * 1024
}

/// `utime` and `stime` of `/proc/PID/stat`, proc(5): the 14th and the 15th word. The second is a name in parentheses,
/// which may have spaces and parentheses itself.
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
    fn this_process_has_memory() {
        assert!(resident(std::process::id()) > 100_000);
        assert_eq!(resident(u32::MAX), 0);
    }

    #[test]
    fn a_process_that_is_gone_has_computed_nothing() {
        assert_eq!(computed(u32::MAX), Duration::ZERO);
    }
}
