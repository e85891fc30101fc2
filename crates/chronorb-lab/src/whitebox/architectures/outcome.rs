//! What was found of the architectures.

use std::collections::BTreeMap;

use chronorb_probe::{Activity, ActivityTimes};
use serde::Serialize;

use super::super::Plan;
use super::super::counts::Counts;
use super::super::outcome::{Side, SystemCall};
use super::order::{Found, Times};
use super::{CLIENTS, Configuration};

/// What calls of ten clients cost one side of an architecture, all its threads together.
#[derive(Clone, Debug)]
pub struct ArchitectureRow {
    /// The architecture.
    pub configuration: Configuration,
    /// The side.
    pub side: Side,
    /// How many calls it is of.
    pub requests: u64,
    /// What threads counted of themselves, for all of these calls. Octets that are copied are not counted here.
    pub counts: Counts,
    /// What processor time was spent on, in as many calls.
    pub shares: Shares,
    /// What the kernel was asked for, for [`traced`](Self::traced) calls; nothing where it could not be traced.
    pub system_calls: Option<Vec<SystemCall>>,
    /// How many calls were traced.
    pub traced: u64,
}

/// What processor time was spent on.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// In the order of [`Use::ALL`], in nanoseconds.
    spent: [f64; 4],
}

/// What processor time is spent on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Use {
    /// Locks, waiting for other threads, and waking them.
    Synchronisation,
    /// To send, to receive, and to wait for something to receive.
    InputOutput,
    /// All else that the ORB does: GIOP, marshalling, to find the target.
    Protocol,
    /// The servant, or who calls.
    Application,
}

impl ArchitectureRow {
    pub(super) fn new(
        configuration: Configuration,
        side: Side,
        plan: Plan,
        counted: Found,
        timed: Found,
        system_calls: Option<Vec<SystemCall>>,
    ) -> Self {
        let of_all = |each: u32| u64::from(CLIENTS) * u64::from(each);
        Self {
            configuration,
            side,
            requests: of_all(plan.calls_of_each),
            counts: counted.counts,
            shares: Shares::of(timed.times),
            system_calls,
            traced: of_all(plan.traced_of_each()),
        }
    }

    /// So many system calls for each call.
    pub(super) fn each_traced(&self, system_calls: u64) -> f64 {
        system_calls as f64 / self.traced.max(1) as f64
    }

    /// So many for each call.
    pub(super) fn each(&self, count: u64) -> f64 {
        count as f64 / self.requests.max(1) as f64
    }

    /// Lock operations of one call as the papers count them: that a lock is taken, and that it is given back.
    pub(super) fn locks_as_in_papers(&self) -> f64 {
        2.0 * self.each(self.counts.lock_operations)
    }

    /// Futex calls, of all calls together; nothing where they could not be traced.
    #[must_use]
    pub fn futex_calls(&self) -> Option<u64> {
        let calls = self.system_calls.as_ref()?;
        let futexes = calls.iter().filter(|of| of.name == "futex");
        Some(futexes.map(|of| of.calls).sum())
    }

    /// Processor time of one call, in µs.
    #[must_use]
    pub fn processor_us(&self) -> f64 {
        self.shares.spent.iter().sum::<f64>() / 1e3 / self.requests.max(1) as f64
    }

    /// All figures, for programs.
    pub(in super::super) fn figures(&self) -> RowFigures<'_> {
        let percent = |of| self.shares.percent(of);
        let counts = &self.counts;
        RowFigures {
            case: "ten-clients",
            architecture: self.configuration.name(),
            side: self.side,
            clients: CLIENTS,
            requests: self.requests,
            allocations: self.each(counts.allocations),
            allocated_octets: self.each(counts.allocated_octets),
            lock_operations: self.each(counts.lock_operations),
            futex_calls: self.futex_calls().map(|calls| self.each_traced(calls)),
            minor_faults: self.each(counts.minor_faults),
            major_faults: self.each(counts.major_faults),
            voluntary_switches: self.each(counts.voluntary_switches),
            involuntary_switches: self.each(counts.involuntary_switches),
            synchronisation_percent: percent(Use::Synchronisation),
            io_percent: percent(Use::InputOutput),
            protocol_percent: percent(Use::Protocol),
            application_percent: percent(Use::Application),
            processor_us: self.processor_us(),
            system_calls: self.system_calls.as_ref().map(|calls| {
                let named = calls
                    .iter()
                    .map(|of| (of.name.as_str(), self.each_traced(of.calls)));
                named.collect()
            }),
        }
    }
}

impl Shares {
    /// Next to nothing may have been measured as less than nothing.
    pub(super) fn of(times: Times) -> Self {
        let times = ActivityTimes::from(times);
        let spent = Use::ALL.map(Use::activity);
        Self {
            spent: spent.map(|activity| times.net(activity).max(0.0)),
        }
    }

    /// How many hundredths of the time were spent so.
    #[must_use]
    pub fn percent(&self, on: Use) -> f64 {
        let all: f64 = self.spent.iter().sum();
        match all > 0.0 {
            true => 100.0 * self.spent[on as usize] / all,
            false => 0.0,
        }
    }
}

impl Use {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Synchronisation,
        Self::InputOutput,
        Self::Protocol,
        Self::Application,
    ];

    const fn activity(self) -> Activity {
        match self {
            Self::Synchronisation => Activity::Synchronisation,
            Self::InputOutput => Activity::InputOutput,
            Self::Protocol => Activity::Other,
            Self::Application => Activity::Application,
        }
    }

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Synchronisation => "synchronisation",
            Self::InputOutput => "I/O",
            Self::Protocol => "protocol",
            Self::Application => "application",
        }
    }
}

/// All of one call.
#[derive(Serialize)]
pub(in super::super) struct RowFigures<'a> {
    case: &'static str,
    architecture: &'static str,
    side: Side,
    clients: u32,
    requests: u64,
    allocations: f64,
    allocated_octets: f64,
    lock_operations: f64,
    futex_calls: Option<f64>,
    minor_faults: f64,
    major_faults: f64,
    voluntary_switches: f64,
    involuntary_switches: f64,
    synchronisation_percent: f64,
    io_percent: f64,
    protocol_percent: f64,
    application_percent: f64,
    processor_us: f64,
    system_calls: Option<BTreeMap<&'a str, f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_time_that_was_spent() {
        let shares = Shares::of(Times {
            nanoseconds: [320, 610, 20, 110, 40],
            intervals: [2, 1, 3, 1, 4],
        });
        assert_eq!(
            Use::ALL.map(|on| shares.percent(on)),
            [0.0, 60.0, 30.0, 10.0]
        );
        assert_eq!(Shares::of(Times::default()).percent(Use::Protocol), 0.0);
    }
}
