//! What is run, and how much of it.

use std::time::Duration;

use serde::Serialize;

use super::part::Part;
use crate::inversion::{InversionPlan, Mode};

/// What is run, and how much of it.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Which of the experiments.
    pub parts: Vec<Part>,
    /// By which driver RIO has its packets: `auto`, `xdp` or `packet`.
    pub driver: String,
    /// How often each way has its turn where latencies are measured.
    pub rounds: u32,
    /// Echoes of a turn where nothing competes (E10).
    pub echoes: u32,
    /// Echoes of a turn beside bulk traffic (E11).
    pub echoes_in_company: u32,
    /// From one of these to the next, about.
    pub pause: Duration,
    /// How long there is bulk traffic alone, before them and after.
    pub aside: Duration,
    /// What the receiver computes for each block of bulk data.
    pub bulk_work: Duration,
    /// Bits in a second that the switch lets through then: so many that it is not the link that holds traffic up.
    pub bulk_rate: u64,
    /// How long each flow is alone with those before it, until the next one begins (E12).
    pub step: Duration,
    /// How many calls, by how many clients, and how often (E13).
    pub calls: InversionPlan,
}

impl Plan {
    /// As many echoes as the paper had and more, in some minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            parts: Part::ALL.to_vec(),
            driver: "auto".to_owned(),
            rounds: 10,
            echoes: 1_000,
            echoes_in_company: 1_000,
            pause: Duration::from_millis(1),
            aside: Duration::from_millis(500),
            bulk_work: Duration::from_micros(12),
            bulk_rate: 10_000_000_000,
            step: Duration::from_secs(5),
            calls: Self::calls_of(&MODES, false),
        }
    }

    /// The same in less than a minute or two.
    #[must_use]
    pub fn short() -> Self {
        Self {
            rounds: 3,
            echoes: 500,
            echoes_in_company: 300,
            aside: Duration::from_millis(300),
            step: Duration::from_secs(2),
            calls: Self::calls_of(&MODES, true),
            ..Self::full()
        }
    }

    /// Next to nothing of each part, for tests.
    #[must_use]
    pub fn tiny() -> Self {
        let mut calls = Self::calls_of(&MODES, true);
        calls.calibration = Duration::from_millis(200);
        for series in &mut calls.series {
            series.low_clients = vec![0, 2];
            series.length = Duration::from_millis(300);
        }
        Self {
            rounds: 1,
            echoes: 20,
            echoes_in_company: 20,
            // So that there is bulk traffic to be measured beside them.
            pause: Duration::from_millis(5),
            aside: Duration::from_millis(100),
            step: Duration::from_millis(200),
            calls,
            ..Self::short()
        }
    }

    /// Calls in these modes, by none to fifty low-priority clients; in little time where that is wanted.
    #[must_use]
    pub fn calls_of(modes: &[Mode], short: bool) -> InversionPlan {
        let mut plan = InversionPlan::of(modes, short);
        for series in &mut plan.series {
            series.low_clients = match short {
                true => vec![0, 25, 50],
                false => (0..=10).map(|step| step * 5).collect(),
            };
            if series.mode == Mode::Short && !short {
                series.length = Duration::from_secs(10);
            }
        }
        plan
    }

    /// Whether it has this part.
    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// The commands that repeat it, in full and in little time.
    pub(super) fn commands(&self) -> String {
        let mut command = "cargo run --release -- lab rio".to_owned();
        if self.parts != Part::ALL {
            let names: Vec<_> = self.parts.iter().map(|part| part.name()).collect();
            command.push_str(&format!(" --only {}", names.join(",")));
        }
        if self.driver != "auto" {
            command.push_str(&format!(" --driver {}", self.driver));
        }
        format!("{command}\n{command} --short\n{command} --json")
    }
}

const MODES: [Mode; 2] = [Mode::Short, Mode::Loaded];
