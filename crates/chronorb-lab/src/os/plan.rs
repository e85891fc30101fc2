//! The measurements of a run, and their lengths.

use std::time::Duration;

use serde::Serialize;

use super::OperatingSystem;
use crate::experiment::Experiment;

/// The measurements of a run, and their lengths.
#[derive(Clone, Debug, Serialize)]
pub struct OsPlan {
    /// The number of rounds, each of which measures every case of the scheduling classes once.
    pub rounds: u32,
    /// The length of one measurement of a case.
    pub case: Duration,
    /// The number of clients of low priority beside the client of high priority.
    pub low_clients: u32,
    /// The period of the calls of high priority.
    pub high_period: Duration,
    /// The period of the calls of each client of low priority.
    pub low_period: Duration,
    /// The computing time of a call.
    pub work: Duration,
    /// The time for which a real-time thread computes without a break.
    pub hold: Duration,
    /// The number of turns of two threads.
    pub turns: u32,
    /// The numbers of concurrent clients for which context switches are counted.
    pub clients: Vec<u32>,
    /// The length of each of these counts.
    pub counting: Duration,
    /// The rates of the calls beside scavengers.
    pub call_rates_hz: Vec<u32>,
    /// The length of one count of the scavengers.
    pub scavenging: Duration,
    /// The number of these counts.
    pub scavenging_rounds: u32,
    /// The time for which four clients call at the rates of the papers.
    pub at_paper_rates: Duration,
    /// The time for which they call at ten times these rates, with more work and load.
    pub at_scaled_rates: Duration,
    /// The computing time of a call at the scaled rates.
    pub scaled_work: Duration,
}

impl OsPlan {
    /// Returns the smallest plan that has all parts, for tests.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            case: Duration::from_millis(20),
            hold: Duration::from_millis(20),
            turns: 100,
            clients: vec![1, 3],
            counting: Duration::from_millis(20),
            call_rates_hz: vec![500],
            scavenging: Duration::from_millis(20),
            scavenging_rounds: 1,
            at_paper_rates: Duration::from_millis(60),
            at_scaled_rates: Duration::from_millis(60),
            ..OperatingSystem::short()
        }
    }
}

/// The rates of the four clients in the papers' test, the most urgent first, in Hz.
pub(super) const PAPER_RATES_HZ: [u32; 4] = [20, 10, 5, 1];
/// The factor of the rates under load.
pub(super) const SCALE: u32 = 10;
