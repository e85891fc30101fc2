//! The experiment `inversion`, run for real with next to nothing.

use std::time::Duration;

use chronorb_lab::inversion::{
    Architecture, ClientClass, Inversion, InversionOutcome, InversionPlan, InversionRow, Mode,
};
use chronorb_lab::{Experiment, Findings, LabError};

use crate::harness;

fn every_architecture_is_measured_in_every_mode() {
    let mut plan = InversionPlan::of(
        &[Mode::Paper, Mode::Loaded, Mode::OneCpu, Mode::Saturated],
        true,
    );
    for series in &mut plan.series {
        series.length = Duration::from_millis(200);
        (series.low_clients, series.calls) = match series.mode {
            Mode::Paper => (vec![2], 3),
            Mode::Loaded => (vec![1, 3], 0),
            Mode::Short | Mode::OneCpu | Mode::Saturated => (vec![3], 0),
        };
    }
    plan.calibration = Duration::from_millis(200);
    plan.lead = Duration::from_millis(250);
    // The threads that keep processors awake take all the time that is left of them. The test of
    // namespaces has them.
    plan.awake = false;
    let outcome = Inversion::measure(&plan).expect("it can be measured");
    let architectures: Vec<_> = match outcome.omniorb.version {
        Some(_) => Architecture::ALL.to_vec(),
        None => {
            harness::not_run(&outcome.omniorb.missing);
            let ours = Architecture::ALL.into_iter();
            ours.filter(|of| !of.to_string().starts_with("omniorb"))
                .collect()
        }
    };
    for architecture in &architectures {
        let rows = |mode, class| {
            let rows = outcome.rows.iter();
            let of = move |row: &&InversionRow| {
                (row.architecture, row.mode, row.class) == (*architecture, mode, class)
            };
            rows.filter(of).collect::<Vec<_>>()
        };
        let calls = |mode, class| {
            let calls = rows(mode, class).into_iter().map(|row| row.latency.calls);
            calls.collect::<Vec<_>>()
        };
        assert_eq!(calls(Mode::Paper, ClientClass::High), [3], "{architecture}");
        assert_eq!(
            calls(Mode::Paper, ClientClass::Low),
            [2 * 3],
            "{architecture}"
        );
        // Calls are due at 0, 5, … 195 ms.
        assert_eq!(
            calls(Mode::Saturated, ClientClass::High),
            [40],
            "{architecture}"
        );
        let high = calls(Mode::Loaded, ClientClass::High);
        assert_eq!(high[0], high[1], "{architecture}");
        let low = calls(Mode::Loaded, ClientClass::Low);
        assert!(high[0] > low[0], "{architecture}");
        assert_eq!(low[1], 3 * low[0], "{architecture}");
        assert!(
            calls(Mode::Saturated, ClientClass::Low)[0] >= 3,
            "{architecture}"
        );
    }
    assert_eq!(outcome.rows.len(), 2 * 5 * architectures.len());
    for row in &outcome.rows {
        assert!(row.latency.p50_us <= row.latency.p99_us, "{row:?}");
        assert!(row.latency.p99_us <= row.latency.max_us, "{row:?}");
        assert!(row.call_max_us <= row.latency.max_us, "{row:?}");
        assert!(row.call_mean_us <= row.latency.mean_us, "{row:?}");
    }
    it_can_be_told(&outcome);
}

fn it_can_be_told(outcome: &InversionOutcome) {
    let (text, page) = (outcome.text(), outcome.html());
    // Lines are broken between words.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Filter chain", "p99.9", "a rate at which 50 of them"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert_eq!(text.contains("not real-time"), !outcome.real_time, "{text}");
    assert_eq!(page.matches("<svg").count(), 4 * 4);
    for outside in ["src=", "href=\"http", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let figures = outcome.figures();
    assert!(figures["environment"].is_object());
    for (found, mode) in [(0, "loaded"), (1, "one-cpu")] {
        let found = &figures["calibrations"][found];
        assert_eq!(found["mode"], mode);
        assert!(found["low_period_us"].as_f64().is_some_and(|us| us > 0.0));
    }
    for name in ["claim", "paper", "published", "measured", "verdict"] {
        assert!(figures["claims"][0][name].is_string(), "{name}");
    }
}

fn client_and_server_can_have_namespaces_of_their_own() {
    let mut plan = InversionPlan::of(&[Mode::Saturated], true);
    plan.architectures = vec![Architecture::RealTime];
    plan.namespaces = true;
    for series in &mut plan.series {
        series.low_clients = vec![2];
        series.length = Duration::from_millis(50);
    }
    match Inversion::measure(&plan) {
        Ok(outcome) => assert!(outcome.rows.iter().all(|row| row.latency.calls > 0)),
        Err(error @ LabError::Network { .. }) => harness::not_run(&error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn a_report_that_cannot_be_written_is_said_before_anything_is_measured() {
    harness::an_unwritable_report_is_refused::<Inversion>(InversionPlan::full());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "every_architecture_is_measured_in_every_mode",
        every_architecture_is_measured_in_every_mode,
    ),
    (
        "client_and_server_can_have_namespaces_of_their_own",
        client_and_server_can_have_namespaces_of_their_own,
    ),
    (
        "a_report_that_cannot_be_written_is_said_before_anything_is_measured",
        a_report_that_cannot_be_written_is_said_before_anything_is_measured,
    ),
];
