//! The processor time of threads, by activity.

use core::ops::{Add, Sub};

use chronorb_rt::{COUNT_WORDS, ThreadCounts, count};

/// An activity on which a thread spends processor time.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Activity {
    /// Everything that is not declared to be something else.
    Other,
    /// Input and output, and waiting for it in the kernel: on the way into a wait and out of it, a
    /// thread works too.
    InputOutput,
    /// Locks, waiting for other threads, and waking them.
    Synchronisation,
    /// The application's own work, as far as it declares it.
    Application,
    /// Nothing at all. Its time is the cost of telling activities apart. A measuring thread enters
    /// it now and then to determine that cost.
    Nothing,
}

/// The processor time of threads by [`Activity`], and how often they turned to each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ActivityTimes {
    /// In nanoseconds, in the order of [`Activity::ALL`]. To look at the clock at one end of each
    /// is part of it.
    pub nanoseconds: [u64; ACTIVITIES],
    /// The number of intervals of each activity.
    pub intervals: [u64; ACTIVITIES],
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; ACTIVITIES] = [
        Self::Other,
        Self::InputOutput,
        Self::Synchronisation,
        Self::Application,
        Self::Nothing,
    ];
}

impl ActivityTimes {
    /// Returns the time of an activity in nanoseconds, less the cost of reading the clock, which is
    /// the average time of [`Activity::Nothing`].
    #[must_use]
    pub fn net(&self, activity: Activity) -> f64 {
        let at = activity as usize;
        self.nanoseconds[at] as f64 - self.intervals[at] as f64 * self.look()
    }

    /// Returns the cost of reading the clock once, in nanoseconds, with its side effects. It is 0
    /// if it is unknown, because [`Activity::Nothing`] was never entered.
    #[must_use]
    pub fn look(&self) -> f64 {
        let nothing = Activity::Nothing as usize;
        self.nanoseconds[nothing] as f64 / self.intervals[nothing].max(1) as f64
    }

    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let each = |mine: [u64; ACTIVITIES], others: [u64; ACTIVITIES]| {
            core::array::from_fn(|at| of(mine[at], others[at]))
        };
        Self {
            nanoseconds: each(self.nanoseconds, other.nanoseconds),
            intervals: each(self.intervals, other.intervals),
        }
    }
}

impl Add for ActivityTimes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, Add::add)
    }
}

impl Sub for ActivityTimes {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.zip(before, Sub::sub)
    }
}

impl From<ThreadCounts> for ActivityTimes {
    fn from(counts: ThreadCounts) -> Self {
        Self {
            nanoseconds: core::array::from_fn(|at| counts.words[at]),
            intervals: core::array::from_fn(|at| counts.words[ACTIVITIES + at]),
        }
    }
}

/// Counts an interval of the calling thread, and its length in nanoseconds.
pub(crate) fn spent(activity: Activity, nanoseconds: u64) {
    count(activity as usize, nanoseconds);
    count(ACTIVITIES + activity as usize, 1);
}

/// The number of activities.
const ACTIVITIES: usize = 5;
const _: () = assert!(2 * ACTIVITIES == COUNT_WORDS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_look_costs_is_what_nothing_takes() {
        let times = ActivityTimes {
            nanoseconds: [5000, 0, 900, 600, 2000],
            intervals: [10, 0, 3, 2, 10],
        };
        let net = [
            Activity::Other,
            Activity::InputOutput,
            Activity::Synchronisation,
            Activity::Application,
        ];
        assert_eq!(
            net.map(|activity| times.net(activity)),
            [3000.0, 0.0, 300.0, 200.0]
        );
        assert_eq!(ActivityTimes::default().look(), 0.0);
    }
}
