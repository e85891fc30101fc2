//! The figures of the experiment.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::architecture::Architecture;
use super::plan::{CpuPlacement, InversionPlan, Mode, Periods};
use crate::bench::OmniOrb;
use crate::environment::Environment;
use crate::named::by_name;
use crate::stats::Summary;

/// The class of a client.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientClass {
    /// The client of high priority.
    High,
    /// The clients of low priority, all together.
    Low,
}

impl ClientClass {
    /// Both.
    pub const ALL: [Self; 2] = [Self::High, Self::Low];
}

by_name!(ClientClass);

/// The calls of one class in one trial.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct InversionRow {
    /// The architecture of the ORB.
    pub architecture: Architecture,
    /// The rates of the clients.
    pub mode: Mode,
    /// The CPUs of client and server.
    pub place: CpuPlacement,
    /// The number of low-priority clients.
    pub low_clients: u32,
    /// The class of the calls.
    pub class: ClientClass,
    /// The latencies from when each call was due.
    #[serde(flatten)]
    pub latency: Summary,
    /// The mean latency from when each call was made.
    pub call_mean_us: f64,
    /// The standard deviation of the same latencies.
    pub call_jitter_us: f64,
    /// The 99th percentile of the same latencies.
    pub call_p99_us: f64,
    /// The longest of the same latencies.
    pub call_max_us: f64,
    /// The time from one call of such a client to its next; 0 for calls back to back.
    pub period_us: f64,
    /// The computing time of a servant for each call.
    pub work_us: f64,
    /// The processor time of the server, as a share of one processor.
    pub server_cpu_percent: f64,
    /// The processor time of the client with all its threads, as a share of one processor.
    pub client_cpu_percent: f64,
    /// The share of all processors that a hypervisor gave to other machines.
    pub stolen_percent: f64,
}

/// The measured rates of a mode whose rates depend on the machine.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Calibration {
    /// The mode.
    pub mode: Mode,
    /// The server's processor time for a request while fifty clients called back to back.
    pub server_cpu_us_per_request: f64,
    /// The client's processor time for a request.
    pub client_cpu_us_per_request: f64,
    /// The requests that were served in a second.
    pub requests_per_s: f64,
    /// The period of the high-priority client in the mode.
    pub high_period_us: f64,
    /// The period of a low-priority client.
    pub low_period_us: f64,
}

impl Calibration {
    pub(crate) fn periods(self) -> Periods {
        let period = |us: f64| Duration::from_secs_f64(us / 1e6);
        Periods {
            high: period(self.high_period_us),
            low: period(self.low_period_us),
        }
    }
}

/// The outcome of the experiment.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct InversionOutcome {
    /// The plan of the run.
    pub plan: InversionPlan,
    /// The machine.
    pub environment: Environment,
    /// Whether clients and servers had real-time priorities.
    pub real_time: bool,
    /// Whether they had their memory locked.
    pub memory_locked: bool,
    /// Whether there was only one processor for them, whatever was planned.
    #[serde(skip)]
    pub one_cpu: bool,
    /// The omniORB that took part, or the reason that none did.
    pub omniorb: OmniOrb,
    /// The measured rates of the modes that have no fixed ones.
    pub calibrations: Vec<Calibration>,
    /// The classes of all trials.
    pub rows: Vec<InversionRow>,
}

/// The two rows of a trial: high and low.
pub(super) type RowPair<'a> = (&'a InversionRow, &'a InversionRow);

impl InversionOutcome {
    /// Returns the modes that were measured.
    pub(super) fn modes(&self) -> Vec<Mode> {
        let measured = |mode: &Mode| self.rows.iter().any(|row| row.mode == *mode);
        Mode::ALL.into_iter().filter(measured).collect()
    }

    /// Returns the architectures that were measured.
    pub(super) fn architectures(&self) -> Vec<Architecture> {
        let measured = |of: &Architecture| self.rows.iter().any(|row| row.architecture == *of);
        Architecture::ALL.into_iter().filter(measured).collect()
    }

    /// Returns the trials of an architecture in a mode in figures of one class, the least clients
    /// first.
    pub(super) fn series(
        &self,
        of: Architecture,
        mode: Mode,
        class: ClientClass,
    ) -> Vec<&InversionRow> {
        let rows = self.rows.iter();
        let mut rows: Vec<_> = rows
            .filter(|row| (row.architecture, row.mode, row.class) == (of, mode, class))
            .collect();
        rows.sort_by_key(|row| row.low_clients);
        rows
    }

    /// Returns both classes of each trial.
    pub(super) fn pairs(&self, of: Architecture, mode: Mode) -> Vec<RowPair<'_>> {
        let [high, low] = ClientClass::ALL.map(|class| self.series(of, mode, class));
        beside(&high, &low)
    }

    /// Returns the high-priority client of two architectures with equal numbers of others.
    pub(super) fn high_of(&self, architectures: [Architecture; 2], mode: Mode) -> Vec<RowPair<'_>> {
        let [one, other] = architectures.map(|of| self.series(of, mode, ClientClass::High));
        beside(&one, &other)
    }
}

/// Returns the rows of two series with equal numbers of low-priority clients.
fn beside<'a>(one: &[&'a InversionRow], other: &[&'a InversionRow]) -> Vec<RowPair<'a>> {
    let pairs = one.iter().filter_map(|row| {
        let mut others = other.iter();
        let same = others.find(|other| other.low_clients == row.low_clients)?;
        Some((*row, *same))
    });
    pairs.collect()
}
