//! The experiment `timeprobes`, run for real with next to nothing.

use chronorb_lab::timeprobes::{
    Layer, MissingTransport, PartRow, TRANSPORTS, TimeProbes, TimeProbesOutcome, TimeProbesPlan,
};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn calls_are_followed_by_every_transport() {
    let outcome = TimeProbes::measure(&TimeProbesPlan::tiny()).expect("it can be measured");
    if !outcome.missing.is_empty() {
        harness::not_run(&format!("in part: {:?}", outcome.missing));
    }
    for transport in TRANSPORTS {
        let is_missing = |missing: &MissingTransport| missing.transport == transport;
        if outcome.missing.iter().any(is_missing) {
            assert_eq!(transport, "ssliop", "the others need nothing");
            continue;
        }
        parts_add_up_to_the_call(&outcome, transport);
    }

    let cost = &outcome.cost;
    assert!(cost.stamp_ns > cost.stage_off_ns, "{cost:?}");
    // The stages of both sides, and their marks around the system calls that send and receive.
    assert!(
        outcome.stamps_of_a_call >= 13 + 8,
        "{}",
        outcome.stamps_of_a_call
    );

    let claims = outcome.claims();
    let measured = claims
        .iter()
        .all(|claim| claim.verdict() != Verdict::NotMeasured);
    assert!(measured, "{claims:?}");

    let text = outcome.text();
    for part in [
        "A call by iiop, same CPU",
        "whole call, points off",
        "all operating system",
        "Where no stamps are kept",
        "MIOP is not among them",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let page = outcome.html();
    assert_eq!(page.matches("<svg").count(), 2);
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "timeprobes");
    for name in ["stamp_ns", "stage_off_ns", "turn_off_ns"] {
        assert!(
            figures["cost"][name].is_number(),
            "{name}: {}",
            figures["cost"]
        );
    }
}

fn parts_add_up_to_the_call(outcome: &TimeProbesOutcome, transport: &str) {
    let of_transport: Vec<_> = outcome
        .rows
        .iter()
        .filter(|row| row.transport == transport)
        .collect();
    let wholes = of_transport.iter().filter(|row| row.what == "whole call");
    assert!(wholes.clone().next().is_some(), "{transport} is missing");
    for whole in wholes {
        let rows = || {
            of_transport
                .iter()
                .filter(|row| row.placement == whole.placement)
        };
        assert!(whole.time.calls >= 90, "{whole:?}");
        assert!(
            0.0 < whole.time.p50_us && whole.time.p50_us <= whole.time.max_us,
            "{whole:?}"
        );
        let parts = rows().filter(|row| row.part.is_some());
        let sum: f64 = parts.clone().map(|row| row.usual_us).sum();
        assert!(
            (sum / whole.usual_us - 1.0).abs() < 0.01,
            "{sum}: {whole:?}"
        );
        for layer in Layer::ALL {
            let of_layer = |row: &&&_| is_sum_of(row, layer);
            let row = rows().find(of_layer).expect("it is told");
            assert!(row.time.mean_us > 0.0, "each layer takes time: {row:?}");
        }
        let mut off = rows().filter(|row| row.what == "whole call, points off");
        let off = off.next().expect("it is measured");
        assert!(off.time.calls >= 100 && off.time.p50_us > 0.0, "{off:?}");
    }
}

fn is_sum_of(row: &PartRow, layer: Layer) -> bool {
    row.part.is_none() && row.layer == Some(layer)
}

fn one_transport_can_be_asked_for_alone() {
    let mut plan = TimeProbesPlan::tiny();
    plan.only = vec!["uiop"];
    let outcome = TimeProbes::measure(&plan).expect("it can be measured");
    assert!(outcome.rows.iter().all(|row| row.transport == "uiop"));
    assert!(outcome.missing.is_empty(), "others were not asked for");
    let claims = outcome.claims();
    let of_iiop = claims.iter().filter(|claim| claim.claim.contains("iiop"));
    for claim in of_iiop {
        assert_eq!(claim.verdict(), Verdict::NotMeasured, "{claim:?}");
    }
}

fn an_unwritable_report_is_refused() {
    harness::an_unwritable_report_is_refused::<TimeProbes>(TimeProbesPlan::tiny());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "calls_are_followed_by_every_transport",
        calls_are_followed_by_every_transport,
    ),
    (
        "one_transport_can_be_asked_for_alone",
        one_transport_can_be_asked_for_alone,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];
