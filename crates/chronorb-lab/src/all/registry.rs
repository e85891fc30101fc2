//! All experiments, in one place.

use std::path::Path;
use std::time::Duration;

use super::index::ResultSummary;
use crate::demux::Demux;
use crate::endurance::Endurance;
use crate::events::Events;
use crate::experiment::{Experiment, Findings, measure_and_write};
use crate::failover::Failover;
use crate::hostile::Hostile;
use crate::inversion::Inversion;
use crate::latency::Latency;
use crate::os::OperatingSystem;
use crate::overtake::Overtake;
use crate::protocols::Protocols;
use crate::rio::RealTimeIo;
use crate::scheduling::Scheduling;
use crate::thread_pools::ThreadPools;
use crate::throughput::Throughput;
use crate::timeprobes::TimeProbes;
use crate::waits::WaitsExperiment;
use crate::whitebox::Whitebox;

/// All experiments in the order in which they run, with the approximate seconds of their short and
/// full plans.
pub(super) const EXPERIMENTS: &[RegistryEntry] = &[
    RegistryEntry::of::<Demux>(10, 60),
    RegistryEntry::of::<Endurance>(65, 910),
    RegistryEntry::of::<Events>(30, 180),
    RegistryEntry::of::<Failover>(10, 250),
    RegistryEntry::of::<Hostile>(100, 540),
    RegistryEntry::of::<Inversion>(210, 1_260),
    RegistryEntry::of::<Latency>(15, 120),
    RegistryEntry::of::<OperatingSystem>(60, 300),
    RegistryEntry::of::<Overtake>(20, 360),
    RegistryEntry::of::<Protocols>(90, 720),
    RegistryEntry::of::<RealTimeIo>(120, 900),
    RegistryEntry::of::<Scheduling>(30, 130),
    RegistryEntry::of::<ThreadPools>(60, 1_200),
    RegistryEntry::of::<Throughput>(20, 240),
    RegistryEntry::of::<TimeProbes>(10, 30),
    RegistryEntry::of::<WaitsExperiment>(30, 240),
    RegistryEntry::of::<Whitebox>(15, 50),
];

/// An experiment without its types.
#[derive(Debug)]
pub(super) struct RegistryEntry {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    short: Duration,
    full: Duration,
    run: fn(bool, &Path) -> Result<ResultSummary, String>,
}

impl RegistryEntry {
    const fn of<E: Experiment>(short_s: u64, full_s: u64) -> Self {
        Self {
            name: E::NAME,
            title: E::TITLE,
            short: Duration::from_secs(short_s),
            full: Duration::from_secs(full_s),
            run: run::<E>,
        }
    }

    /// Returns the approximate length.
    pub(super) const fn length(&self, short: bool) -> Duration {
        if short { self.short } else { self.full }
    }

    /// Runs the experiment, and writes its report with its figures beside it. Returns the reason of
    /// a failure.
    pub(super) fn run(&self, short: bool, report: &Path) -> Result<ResultSummary, String> {
        (self.run)(short, report)
    }
}

fn run<E: Experiment>(short: bool, report: &Path) -> Result<ResultSummary, String> {
    let plan = if short { E::short() } else { E::full() };
    let (findings, _) = measure_and_write::<E>(&plan, report).map_err(|error| error.to_string())?;
    Ok(ResultSummary {
        headline: findings.headline(),
        caveats: findings.caveats(),
        claims: findings.claims(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_a_name_of_its_own() {
        for (at, entry) in EXPERIMENTS.iter().enumerate() {
            assert!(
                EXPERIMENTS[..at]
                    .iter()
                    .all(|other| other.name != entry.name)
            );
        }
    }

    #[test]
    fn all_of_them_take_less_than_a_quarter_of_an_hour_in_short() {
        let short: Duration = EXPERIMENTS.iter().map(|entry| entry.length(true)).sum();
        assert!(short < Duration::from_secs(15 * 60), "{short:?}");
        assert!(EXPERIMENTS.iter().all(|entry| entry.short <= entry.full));
    }
}
