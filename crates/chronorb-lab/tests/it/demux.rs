//! A real run of the experiment `demux` with its smallest plan.

use chronorb_lab::demux::{Demux, DemuxPlan, Stage};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_stage_is_measured_by_every_strategy_for_every_number_of_entries() {
    let outcome = Demux::measure(&DemuxPlan::tiny()).expect("it can be measured");
    for (stage, strategies) in [
        (Stage::Request, &["giop"][..]),
        (Stage::Poa, &["active", "hash", "linear"]),
        (
            Stage::Servant,
            &[
                "active",
                "user-id",
                "persistent",
                "no-hint",
                "hash",
                "linear",
            ],
        ),
        (Stage::Operation, &["perfect", "hash", "binary", "linear"]),
        (Stage::Total, &["active", "hash", "linear"]),
    ] {
        for strategy in strategies {
            for entries in [1, 10] {
                let rows = outcome.rows.iter().filter(|row| {
                    (row.stage, row.strategy, row.entries) == (stage, *strategy, entries)
                });
                let rows: Vec<_> = rows.collect();
                assert_eq!(rows.len(), 1, "{stage:?} {strategy} {entries}");
                assert!(rows[0].p50_ns <= rows[0].p99_ns, "{:?}", rows[0]);
            }
        }
    }
    assert_eq!(outcome.rows.len(), 2 * (1 + 3 + 6 + 4 + 3));
    assert_eq!(outcome.hot.len(), 2 * (3 + 6));

    // The memory of objects is counted, and comes back.
    let each = outcome.scale.objects.octets.allocated;
    assert!(each.is_some_and(|octets| octets > 0.0), "{each:?}");
    let claims = outcome.claims();
    let memory = claims.last().expect("there are some");
    assert_eq!(memory.verdict(), Verdict::Pass, "{memory:?}");

    let text = outcome.text();
    for part in [
        "Finding the servant, by the number of objects in the POA",
        "active, hot",
        "10\u{a0}000 objects in one POA",
        "short run",
        "not measured    The whole way",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(outcome.html().contains("<svg"));
}

pub(crate) const TESTS: &[harness::Test] = &[(
    "every_stage_is_measured_by_every_strategy_for_every_number_of_entries",
    every_stage_is_measured_by_every_strategy_for_every_number_of_entries,
)];
