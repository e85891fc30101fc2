//! The result of the demonstration: the same load without priorities and with them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::environment::Environment;
use crate::stats::Record;
use crate::units;

/// The load of the demonstration.
#[derive(Clone, Debug)]
pub struct LoadSetup {
    /// The length of each of the two phases.
    pub phase: Duration,
    /// The time from one call of the high-priority client to its next.
    pub period: Duration,
    /// The number of low-priority client processes.
    pub low_clients: u32,
    /// The threads of each of these clients; each thread calls back to back.
    pub threads_per_low_client: u32,
    /// The number of server threads for low-priority requests in the phase with priorities.
    pub low_lane_threads: u32,
    /// The number of server threads for high-priority requests in the phase with priorities.
    pub high_lane_threads: u32,
    /// The computing time of one low-priority call.
    pub low_work: Duration,
    /// The computing time of one high-priority call.
    pub high_work: Duration,
}

impl Default for LoadSetup {
    fn default() -> Self {
        Self {
            phase: Duration::from_secs(10),
            period: Duration::from_millis(50),
            low_clients: 16,
            threads_per_low_client: 2,
            low_lane_threads: 2,
            high_lane_threads: 1,
            low_work: Duration::from_millis(1),
            high_work: Duration::from_micros(20),
        }
    }
}

/// The calls of both classes in one phase.
#[derive(Clone, Debug, Default)]
pub struct PhaseCalls {
    /// The calls of the high-priority client, timed from when each was due.
    pub high: Record,
    /// The calls of all low-priority clients, timed from when each was sent.
    pub low: Record,
}

/// The same load without priorities and with them.
#[derive(Clone, Debug)]
pub struct PriorityComparison {
    /// Whether the threads had real-time priorities in the second phase.
    pub real_time: bool,
    /// The load.
    pub setup: LoadSetup,
    /// The phase with one shared pool and no priorities.
    pub without_priorities: PhaseCalls,
    /// The phase with priorities from the client's thread to the servant.
    pub with_priorities: PhaseCalls,
    /// The machine.
    pub environment: Environment,
}

impl PriorityComparison {
    /// Returns the figures for programs, the output of `chronorb demo --json`.
    #[must_use]
    pub fn figures(&self) -> Value {
        let phase = |phase: &PhaseCalls| {
            let (high, low) = (phase.high.summary(), phase.low.summary());
            json!({"high": high, "low": low})
        };
        json!({
            "real_time": self.real_time,
            "without_priorities": phase(&self.without_priorities),
            "with_priorities": phase(&self.with_priorities),
            "environment": self.environment,
        })
    }

    /// Returns the result in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let (without, with) = self.high_p99_us();
        format!(
            "High-priority p99: {} without priorities, {} with: {}",
            units::time(without),
            units::time(with),
            change(without, with)
        )
    }

    /// Returns the meaning of the figures in a sentence.
    #[must_use]
    pub fn meaning(&self) -> String {
        let (without, with) = self.high_p99_us();
        let low = throughput_change(
            self.without_priorities.low.calls(),
            self.with_priorities.low.calls(),
        );
        let helps = with < without;
        let (with, without) = (units::time(with), units::time(without));
        if helps {
            let threads = self.setup.low_clients * self.setup.threads_per_low_client;
            format!(
                "While {threads} low-priority threads kept the server saturated, 99 of 100 \
                 high-priority calls were answered within {with} when priorities held from the \
                 client's thread to the servant, and within {without} when they did not; the \
                 low-priority clients made {low}."
            )
        } else {
            format!(
                "Priorities did not help here: 99 of 100 high-priority calls were answered within \
                 {with} with priorities and within {without} without; the low-priority clients \
                 made {low}."
            )
        }
    }

    /// Returns the restrictions of the figures, a sentence each; nothing in the best case.
    ///
    /// The threads may have had no real-time priorities, or a hypervisor may have disturbed them.
    #[must_use]
    pub fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if !self.real_time {
            caveats.push(
                "These figures are not real-time: this process may not use real-time priorities, \
                 so the threads of both phases ran under the ordinary scheduler, and only the \
                 lanes kept the classes apart."
                    .to_owned(),
            );
        }
        if let [without, with] = self.environment.stolen_percent[..]
            && without.max(with) >= NOTABLE_PERCENT
        {
            caveats.push(format!(
                "This is a virtual machine, and its host took the processors away for \
                 {without:.1} % of the time without priorities and {with:.1} % with them: no \
                 thread in here runs then, whatever its priority.",
            ));
        }
        caveats
    }

    fn high_p99_us(&self) -> (f64, f64) {
        (
            self.without_priorities.high.quantile_us(0.99),
            self.with_priorities.high.quantile_us(0.99),
        )
    }
}

fn change(before: f64, after: f64) -> String {
    if after <= 0.0 || before <= 0.0 {
        "no comparison".to_owned()
    } else if after < before {
        format!("{} times lower", units::factor(before / after))
    } else {
        format!("{} times higher", units::factor(after / before))
    }
}

fn throughput_change(before: u64, after: u64) -> String {
    if before == 0 {
        return "no calls to compare".to_owned();
    }
    let percent = (after as f64 / before as f64 - 1.0) * 100.0;
    if percent.abs() < 0.5 {
        "as many calls in both".to_owned()
    } else if percent < 0.0 {
        format!("{:.0}\u{a0}% fewer calls with priorities", -percent)
    } else {
        format!("{percent:.0}\u{a0}% more calls with priorities")
    }
}

/// The stolen time that may show in the 99th percentile.
const NOTABLE_PERCENT: f64 = 0.5;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn comparison(high_without_us: u64, high_with_us: u64) -> PriorityComparison {
        PriorityComparison {
            real_time: true,
            setup: LoadSetup::default(),
            without_priorities: phase(high_without_us, 20_000),
            with_priorities: phase(high_with_us, 21_000),
            environment: Environment::example(),
        }
    }

    fn phase(high_us: u64, low_us: u64) -> PhaseCalls {
        let mut phase = PhaseCalls::default();
        for n in 0..200 {
            phase.high.add(
                Duration::from_millis(50 * n),
                Duration::from_micros(high_us + n % 7 * high_us / 20),
            );
        }
        for n in 0..10_000 {
            phase.low.add(
                Duration::from_millis(n),
                Duration::from_micros(low_us + n % 5000),
            );
        }
        phase
    }

    #[test]
    fn the_headline_says_by_how_much() {
        let headline = comparison(10_000, 100).headline();
        assert_eq!(
            headline,
            "High-priority p99: 13.0 ms without priorities, 130 µs with: 100 times lower"
        );
    }

    #[test]
    fn the_meaning_says_whether_priorities_help() {
        let comparison = comparison(100, 300);
        assert!(comparison.headline().ends_with("3.0 times higher"));
        assert!(comparison.meaning().starts_with("Priorities did not help"));
    }

    #[test]
    fn figures_that_are_not_real_time_or_disturbed_carry_a_caveat() {
        let mut comparison = comparison(10_000, 100);
        assert_eq!(comparison.caveats(), [""; 0]);
        comparison.real_time = false;
        comparison.environment.stolen_percent = vec![0.0, 3.12];
        let caveats = comparison.caveats();
        assert_eq!(caveats.len(), 2);
        assert!(caveats[0].contains("not real-time"), "{caveats:?}");
        assert!(caveats[1].contains("3.1 % with"), "{caveats:?}");
    }

    #[test]
    fn figures_for_programs_have_the_documented_shape() {
        let figures = comparison(10_000, 100).figures();
        assert_eq!(figures["real_time"], true);
        assert!(figures["environment"].is_object());
        for phase in ["without_priorities", "with_priorities"] {
            for class in ["high", "low"] {
                let summary = &figures[phase][class];
                for name in [
                    "calls",
                    "p50_us",
                    "p99_us",
                    "p999_us",
                    "max_us",
                    "mean_us",
                    "jitter_us",
                ] {
                    assert!(summary[name].is_number(), "{phase}.{class}.{name}");
                }
            }
        }
    }
}
