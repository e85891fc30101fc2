//! Counts of the work of threads.

use chronorb_probe::{ActivityTimes, counts_of_this_thread};
use chronorb_rt::{ThreadCounts, Usage, counts_of_others};
use serde::{Deserialize, Serialize};

use crate::idl::whitebox;

/// Counts of one thread or several. Those of a call are fractions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Counts<T = u64> {
    /// Heap allocations and reallocations.
    pub allocations: T,
    /// The octets that these asked for.
    pub allocated_octets: T,
    /// Lock operations in user space: each time that a mutex was locked, or tried.
    pub lock_operations: T,
    /// Octets copied in user space, as [`chronorb_cdr::octets_copied`] counts them.
    pub octets_copied: T,
    /// Page faults served from memory.
    pub minor_faults: T,
    /// Page faults served from a disk.
    pub major_faults: T,
    /// Context switches because the thread waited.
    pub voluntary_switches: T,
    /// Context switches because another thread was to run.
    pub involuntary_switches: T,
}

impl Counts {
    /// The counts of threads, with those that the kernel keeps of them.
    pub(super) const fn of_threads(
        threads: ThreadCounts,
        usage: Usage,
        octets_copied: u64,
    ) -> Self {
        Self {
            allocations: threads.allocations,
            allocated_octets: threads.allocated_octets,
            lock_operations: threads.lock_operations,
            octets_copied,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
        }
    }

    /// Returns the counts since `before`, or without the counts of something else.
    pub(super) fn since(self, before: Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }

    /// Returns the counts of one run of several with the same calls. A program does its own work
    /// in each of them, so the greatest count is right; but the kernel may move a page or switch
    /// threads at any time, so the least count of that is right.
    pub(super) fn of_runs(runs: &[Self]) -> Self {
        let pick = |of: fn(u64, u64) -> u64| {
            let picked = runs.iter().copied().reduce(|a, b| a.zip(b, of));
            picked.unwrap_or_default()
        };
        let (most, least) = (pick(u64::max), pick(u64::min));
        Self {
            allocations: most.allocations,
            allocated_octets: most.allocated_octets,
            lock_operations: most.lock_operations,
            octets_copied: most.octets_copied,
            ..least
        }
    }

    /// Returns the counts of one of so many calls.
    pub(super) fn each(self, calls: u64) -> Counts<f64> {
        Counts::from_array(self.to_array().map(|count| per_call(count, calls)))
    }

    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let (mine, others) = (self.to_array(), other.to_array());
        Self::from_array(std::array::from_fn(|n| of(mine[n], others[n])))
    }
}

impl<T: Copy> Counts<T> {
    /// Returns all counts in the order of their declaration.
    fn to_array(self) -> [T; KINDS] {
        [
            self.allocations,
            self.allocated_octets,
            self.lock_operations,
            self.octets_copied,
            self.minor_faults,
            self.major_faults,
            self.voluntary_switches,
            self.involuntary_switches,
        ]
    }

    fn from_array(counts: [T; KINDS]) -> Self {
        Self {
            allocations: counts[0],
            allocated_octets: counts[1],
            lock_operations: counts[2],
            octets_copied: counts[3],
            minor_faults: counts[4],
            major_faults: counts[5],
            voluntary_switches: counts[6],
            involuntary_switches: counts[7],
        }
    }
}

/// The costs of a process: counts, and processor time by activity if that is kept.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct ProcessCosts {
    pub(super) counts: Counts,
    #[serde(with = "ActivityTimesFields")]
    pub(super) times: ActivityTimes,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "ActivityTimes")]
struct ActivityTimesFields {
    nanoseconds: [u64; 5],
    intervals: [u64; 5],
}

impl ProcessCosts {
    /// Returns the costs of this process so far: of all threads of the ORB, and the calling one.
    /// This takes a lock. The caller knows the octets that were copied.
    pub(super) fn so_far(octets_copied: u64) -> Self {
        let threads = counts_of_others() + counts_of_this_thread();
        Self::of_threads(threads, Usage::of_process(), octets_copied)
    }

    /// The costs of threads, with the counts that the kernel keeps of them.
    pub(super) fn of_threads(threads: ThreadCounts, usage: Usage, octets_copied: u64) -> Self {
        Self {
            counts: Counts::of_threads(threads, usage, octets_copied),
            times: ActivityTimes::from(threads),
        }
    }

    /// Returns the costs since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            times: self.times - before.times,
            ..self.without(before.counts)
        }
    }

    /// Returns the costs without some counts.
    pub(super) fn without(self, counts: Counts) -> Self {
        Self {
            counts: self.counts.since(counts),
            ..self
        }
    }

    /// Returns the costs of one run of several with the same calls, if there are any.
    pub(super) fn of_runs(runs: &[Self]) -> Option<Self> {
        let counts: Vec<_> = runs.iter().map(|run| run.counts).collect();
        Some(Self {
            counts: Counts::of_runs(&counts),
            ..*runs.first()?
        })
    }

    /// Returns the sum of both costs.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            counts: self.counts.zip(other.counts, u64::wrapping_add),
            times: self.times + other.times,
        }
    }
}

impl From<ProcessCosts> for whitebox::Costs {
    fn from(costs: ProcessCosts) -> Self {
        Self {
            counts: costs.counts.to_array(),
            nanoseconds: costs.times.nanoseconds,
            intervals: costs.times.intervals,
        }
    }
}

impl From<whitebox::Costs> for ProcessCosts {
    fn from(costs: whitebox::Costs) -> Self {
        Self {
            counts: Counts::from_array(costs.counts),
            times: ActivityTimes {
                nanoseconds: costs.nanoseconds,
                intervals: costs.intervals,
            },
        }
    }
}

/// Returns a count of one of so many calls.
pub(super) fn per_call(count: u64, calls: u64) -> f64 {
    count as f64 / calls.max(1) as f64
}

/// The number of counts.
const KINDS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_does_counts_at_its_most_and_what_the_kernel_does_at_its_least() {
        let run = |n| Counts::from_array([n; KINDS]);
        let counts = Counts::of_runs(&[run(2), run(1), run(3)]);
        assert_eq!(counts.to_array(), [3, 3, 3, 3, 1, 1, 1, 1]);
        assert_eq!(run(5).since(run(3)), run(2));
    }
}
