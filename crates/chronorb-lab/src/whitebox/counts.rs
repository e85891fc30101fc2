//! What threads count of themselves.

use chronorb_probe::counts_of_this_thread;
use chronorb_rt::{ThreadCounts, Usage, counts_of_others};
use serde::{Deserialize, Serialize};

use crate::idl::whitebox;

/// What one thread or several have done, as far as they can tell themselves.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Heap allocations and reallocations.
    pub allocations: u64,
    /// What was asked for by them, in octets.
    pub allocated_octets: u64,
    /// Lock operations of the user's level: each time that a mutex was locked, or tried.
    pub lock_operations: u64,
    /// Octets that were copied in user space, as [`chronorb_cdr::octets_copied`] counts them.
    pub octets_copied: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults served from a disk.
    pub major_faults: u64,
    /// Context switches because the thread waited.
    pub voluntary_switches: u64,
    /// Context switches because another thread was to run.
    pub involuntary_switches: u64,
}

impl Counts {
    /// What all threads of the process have done so far, as far as the ORB made them, and the calling
    /// one; it says itself how many octets were copied. To ask is a lock operation.
    pub(super) fn of_process(octets_copied: u64) -> Self {
        let threads = counts_of_others() + counts_of_this_thread();
        Self::of_threads(threads, Usage::of_process(), octets_copied)
    }

    /// What threads counted, with what the kernel counted of them.
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

    /// What was done since `before`, and not for anything else.
    pub(super) fn since(self, before: Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }

    /// Of several runs of the same calls, what they cost. What a program does it does in each of
    /// them, so the most counts; but the kernel may move a page or let somebody else run at any time,
    /// which is not for the calls, so the least counts of that.
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

    /// All of them, in the order of their declaration.
    pub(super) fn to_array(self) -> [u64; KINDS] {
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

    fn from_array(array: [u64; KINDS]) -> Self {
        let [
            allocations,
            allocated_octets,
            lock_operations,
            octets_copied,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
        ] = array;
        Self {
            allocations,
            allocated_octets,
            lock_operations,
            octets_copied,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
        }
    }

    /// As the server says it.
    pub(super) fn to_idl(self) -> whitebox::Counts {
        whitebox::Counts {
            allocations: self.allocations,
            allocated_octets: self.allocated_octets,
            lock_operations: self.lock_operations,
            octets_copied: self.octets_copied,
            minor_faults: self.minor_faults,
            major_faults: self.major_faults,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
        }
    }

    /// As the server said it.
    pub(super) fn of_idl(counts: &whitebox::Counts) -> Self {
        Self {
            allocations: counts.allocations,
            allocated_octets: counts.allocated_octets,
            lock_operations: counts.lock_operations,
            octets_copied: counts.octets_copied,
            minor_faults: counts.minor_faults,
            major_faults: counts.major_faults,
            voluntary_switches: counts.voluntary_switches,
            involuntary_switches: counts.involuntary_switches,
        }
    }

    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let (mine, others) = (self.to_array(), other.to_array());
        Self::from_array(std::array::from_fn(|n| of(mine[n], others[n])))
    }
}

/// How many there are.
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
