//! A real run of the experiment `os` with its smallest plan.

use chronorb_lab::os::{
    ClientPriority, OperatingSystem, OsOutcome, OsPlan, RateMode, SchedulingClass, Switching,
};
use chronorb_lab::{Experiment, Findings};

use crate::harness;

fn every_part_is_measured_or_refused() {
    let plan = OsPlan::tiny();
    let outcome = OperatingSystem::measure(&plan).expect("it can be measured");
    let may = |class| !outcome.refused.iter().any(|refusal| refusal.class == class);
    assert!(may(SchedulingClass::Other), "time sharing needs no right");
    for class in SchedulingClass::ALL {
        let measured = outcome.classes.iter().filter(|row| row.case.class == class);
        assert_eq!(measured.count() > 0, may(class), "{}", class.name());
    }
    for row in &outcome.classes {
        let period = match row.client {
            ClientPriority::High => plan.high_period,
            ClientPriority::Low => plan.low_period / plan.low_clients,
        };
        let due = plan.case.as_nanos() / period.as_nanos();
        assert_eq!(
            u128::from(row.latency.calls),
            due,
            "every call is answered: {row:?}"
        );
        assert!(row.latency.p50_us <= row.latency.max_us, "{row:?}");
    }
    if may(SchedulingClass::Fifo) {
        assert_real_time_parts(&plan, &outcome);
    }
    for row in &outcome.rates {
        let scale = if row.mode == RateMode::Paper { 1 } else { 10 };
        assert_eq!(row.rate_hz, [20, 10, 5, 1][row.client as usize - 1] * scale);
        assert!(row.latency.calls > 0, "{row:?}");
    }
    assert_reports(&outcome);
}

fn assert_real_time_parts(plan: &OsPlan, outcome: &OsOutcome) {
    assert_eq!(outcome.throttling.len(), 2);
    for switching in Switching::ALL {
        let rows = outcome.switches.iter();
        let row = rows
            .clone()
            .find(|row| row.switching == switching && row.cpus == 1);
        let row = row.expect("it was measured");
        assert_eq!(row.turns, u64::from(plan.turns));
        // Two threads of equal priority on one CPU can run by turns only.
        assert!(row.counted_by_expected >= 0.99, "{row:?}");
        assert!(row.mean_us > 0.0, "{row:?}");
    }
    for row in &outcome.requests {
        assert!(
            row.requests > 0 && plan.clients.contains(&row.clients),
            "{row:?}"
        );
        assert!(row.client_switches_per_request > 0.0, "{row:?}");
        assert!(row.server_switches_per_request > 0.0, "{row:?}");
    }
    for row in &outcome.scavengers {
        assert!(row.requests > 0 && row.left_percent > 0.0, "{row:?}");
    }
}

fn assert_reports(outcome: &OsOutcome) {
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "os");
    assert!(figures["environment"]["preemption"].is_string());
    let rows = figures["rows"].as_array().expect("there are rows");
    for row in rows {
        let cells = row.as_object().expect("a row is an object");
        assert!(cells["part"].is_string(), "{row}");
        let is_flat = |cell: &serde_json::Value| !cell.is_array() && !cell.is_object();
        assert!(cells.values().all(is_flat), "{row}");
    }
    for name in ["class", "load", "placement", "client"] {
        assert!(rows[0][name].is_string(), "{name}: {}", rows[0]);
    }
    for claim in figures["claims"].as_array().expect("there are claims") {
        for name in ["paper", "claim", "published", "measured", "verdict"] {
            assert!(claim[name].is_string(), "{name}: {claim}");
        }
    }
    let page = outcome.html();
    assert!(page.contains(&outcome.headline()) && page.ends_with("</html>\n"));
    assert!(outcome.text().contains("short run"));
}

pub(crate) const TESTS: &[harness::Test] = &[(
    "every_part_is_measured_or_refused",
    every_part_is_measured_or_refused,
)];
