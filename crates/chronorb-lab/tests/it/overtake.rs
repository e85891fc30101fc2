//! The experiment `overtake`, run for real with next to nothing.

use chronorb_lab::overtake::{
    CallSeries, Overtake, OvertakeCase, OvertakeLoad, OvertakePlan, OvertakePool, OvertakeTrial,
    Strategy,
};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_case_is_measured_by_both_strategies() {
    let plan = OvertakePlan::tiny();
    let outcome = Overtake::measure(&plan).expect("it can be measured");
    for strategy in Strategy::ALL {
        for case in OvertakeCase::ALL {
            for series in CallSeries::ALL {
                let trial = OvertakeTrial {
                    strategy,
                    case,
                    series,
                };
                let rows: Vec<_> = outcome.rows.iter().filter(|r| r.trial == trial).collect();
                assert_eq!(rows.len(), 1, "{trial:?}");
                let row = rows[0];
                assert_eq!(row.round, 1);
                assert!(row.latency.p50_us <= row.latency.p99_us, "{row:?}");
                assert!(row.latency.p99_us <= row.latency.max_us, "{row:?}");
                if series == CallSeries::Periodic {
                    let due = plan.periodic.as_nanos() / plan.period.as_nanos();
                    assert_eq!(
                        u128::from(row.latency.calls),
                        due,
                        "every call was answered"
                    );
                }
                let loads_middle = matches!(
                    case.load,
                    OvertakeLoad::Saturated | OvertakeLoad::Full | OvertakeLoad::ExhaustedSaturated
                );
                assert_eq!(
                    row.middle_longest_stop_us.is_some(),
                    loads_middle,
                    "{row:?}"
                );
                if case.load != OvertakeLoad::Full {
                    assert_eq!(row.refused_requests, 0, "only full buffers refuse: {row:?}");
                }
            }
        }
    }
    assert_eq!(outcome.rows.len(), 2 * 2 * OvertakeCase::ALL.len());
    let full = outcome.rows.iter().filter(|row| {
        let case = row.trial.case;
        case.pool == OvertakePool::Buffering && case.load == OvertakeLoad::Full
    });
    assert!(full.map(|row| row.refused_requests).sum::<u64>() > 0);

    let claims = outcome.claims();
    assert_eq!(claims.len(), 12);
    for claim in &claims {
        let is_measured = claim.verdict() != Verdict::NotMeasured;
        assert_eq!(claim.ratio.is_some(), is_measured, "{claim:?}");
        assert_eq!(claim.measured.is_empty(), !is_measured, "{claim:?}");
    }

    let text = outcome.text();
    for part in [
        "Leader/Followers, a call every 10 ms",
        "Half-Sync/Half-Async, calls back to back",
        "buffering: full",
        "no lanes: saturated",
        "short run",
        "throttling",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert_eq!(text.contains("not real-time"), !outcome.real_time, "{text}");

    let page = outcome.html();
    assert_eq!(page.matches("<svg").count(), 6);
    for outside in ["src=", "href=\"http", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.ends_with("</html>\n"));

    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "overtake");
    assert!(figures["environment"].is_object());
    let row = &figures["rows"][0];
    for name in ["strategy", "pool", "load", "series"] {
        assert!(row[name].is_string(), "{name}: {row}");
    }
    for name in [
        "round",
        "calls",
        "mean_us",
        "jitter_us",
        "p50_us",
        "p99_us",
        "p999_us",
        "max_us",
        "cpu_busy_percent",
        "cpu_stolen_percent",
        "refused_requests",
    ] {
        assert!(row[name].is_number(), "{name}: {row}");
    }
    for name in ["claim", "paper", "published", "measured", "verdict"] {
        assert!(figures["claims"][0][name].is_string(), "{name}");
    }
}

fn an_unwritable_report_is_refused() {
    harness::an_unwritable_report_is_refused::<Overtake>(OvertakePlan::tiny());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "every_case_is_measured_by_both_strategies",
        every_case_is_measured_by_both_strategies,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];
