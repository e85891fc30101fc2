//! What is run, and how much of it.

use std::time::Duration;

use serde::Serialize;

/// How much of each part is run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// How often each case of the scheduling classes is measured, all in turn.
    pub rounds: u32,
    /// How long, each time.
    pub case: Duration,
    /// How many clients of low priority call beside that of high priority.
    pub low_clients: u32,
    /// How often the client of high priority calls.
    pub high_period: Duration,
    /// How often those of low priority call.
    pub low_period: Duration,
    /// What a call computes.
    pub work: Duration,
    /// How long a real-time thread computes without end.
    pub hold: Duration,
    /// How often two threads take turns.
    pub turns: u32,
    /// How many clients call at once where context switches are counted.
    pub clients: Vec<u32>,
    /// How long, each.
    pub counting: Duration,
    /// How many calls a second are made beside scavengers.
    pub call_rates_hz: Vec<u32>,
    /// How long scavengers count at a time.
    pub scavenging: Duration,
    /// How often.
    pub scavenging_rounds: u32,
    /// How long four clients call at the papers' rates.
    pub at_paper_rates: Duration,
    /// How long they call at ten times these rates, with more work and load.
    pub at_scaled_rates: Duration,
    /// What a call computes then.
    pub scaled_work: Duration,
}

impl Plan {
    /// Some minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 3,
            case: Duration::from_secs(2),
            low_clients: 4,
            high_period: Duration::from_millis(2),
            low_period: Duration::from_millis(4),
            work: Duration::from_micros(20),
            hold: Duration::from_millis(2500),
            turns: 20_000,
            clients: vec![1, 2, 5, 10, 20, 35, 50],
            counting: Duration::from_millis(300),
            call_rates_hz: vec![500, 1_000, 2_000, 4_000, 8_000],
            scavenging: Duration::from_millis(500),
            scavenging_rounds: 4,
            at_paper_rates: Duration::from_secs(15),
            at_scaled_rates: Duration::from_secs(10),
            scaled_work: Duration::from_millis(1),
        }
    }

    /// About a minute.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 1,
            case: Duration::from_millis(800),
            turns: 5_000,
            clients: vec![1, 5, 20, 50],
            counting: Duration::from_millis(200),
            call_rates_hz: vec![1_000, 4_000],
            scavenging: Duration::from_millis(400),
            scavenging_rounds: 2,
            at_paper_rates: Duration::from_secs(3),
            at_scaled_rates: Duration::from_secs(2),
            ..Self::full()
        }
    }

    /// Next to nothing of each part, for tests.
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
            ..Self::short()
        }
    }
}

/// The rates of the four clients in the papers' test, the most urgent first, in Hz.
pub(super) const PAPER_RATES_HZ: [u32; 4] = [20, 10, 5, 1];
/// By how much they are scaled where the machine is loaded.
pub(super) const SCALE: u32 = 10;
