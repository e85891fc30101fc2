//! The experiment `rio`, run for real with next to nothing.

use chronorb_lab::rio::{Io, Load, PacketPath, RealTimeIo, RioOutcome, RioPart, RioPlan};
use chronorb_lab::{Experiment, Findings, LabError};

use crate::harness;

/// Measures the least of some parts; returns nothing where this process may not make networks.
fn measured(parts: &[RioPart]) -> Option<RioOutcome> {
    let needs_awake = |part: &RioPart| matches!(part, RioPart::Company | RioPart::Packets);
    let plan = RioPlan {
        parts: parts.to_vec(),
        // The threads that keep processors awake take all the time that is left of them.
        awake: parts.iter().any(needs_awake),
        ..RioPlan::tiny()
    };
    match RealTimeIo::measure(&plan) {
        Ok(outcome) => Some(outcome),
        Err(error @ LabError::Network { .. }) => {
            harness::not_run(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn echoes_are_measured_by_every_path() {
    let Some(outcome) = measured(&[RioPart::Processing, RioPart::Company]) else {
        return;
    };
    let paths = [
        (
            RioPart::Processing,
            &[
                PacketPath::Kernel,
                PacketPath::Arrival,
                PacketPath::Scheduled,
                PacketPath::WrongClass,
            ][..],
        ),
        (
            RioPart::Company,
            &[
                PacketPath::Kernel,
                PacketPath::OneClass,
                PacketPath::Classes,
            ][..],
        ),
    ];
    for (part, paths) in paths {
        for path in paths {
            let mut rows = outcome.echoes.iter();
            let row = rows.find(|row| (row.part, row.path) == (part, *path));
            let row = row.unwrap_or_else(|| panic!("{part}, {path:?} was not measured"));
            assert_eq!(row.latency.calls, 20, "{row:?}");
            assert!(
                0.0 < row.min_us && row.min_us <= row.latency.mean_us,
                "{row:?}"
            );
            assert!(row.latency.mean_us <= row.latency.max_us, "{row:?}");
            let floods = part == RioPart::Company;
            let bulk = row.bulk_beside_octets_per_s;
            assert_eq!(bulk.is_some(), floods, "{row:?}");
            assert!(bulk.unwrap_or(1.0) > 0.0, "{row:?}");
        }
    }
    it_can_be_told(&outcome, 2 * 2 + 1);
}

fn flows_have_what_was_reserved() {
    let Some(outcome) = measured(&[RioPart::Guarantees]) else {
        return;
    };
    let reserved = outcome.flows.iter().filter(|row| row.phase == "all");
    let flows: Vec<_> = reserved.map(|row| row.flow).collect();
    assert_eq!(flows, ["best-effort", "6.4", "3.2", "1.6", "capped"]);
    for row in &outcome.flows {
        assert!(row.mean_octets_per_s > 0.0, "{row:?}");
        assert!(row.least_octets_per_s <= row.most_octets_per_s, "{row:?}");
    }
    it_can_be_told(&outcome, 1);
}

fn calls_are_made_with_rio_below_the_orb_and_without() {
    let Some(outcome) = measured(&[RioPart::Orb]) else {
        return;
    };
    if !outcome.missing.is_empty() {
        harness::not_run(&format!("in part: {:?}", outcome.missing));
    }
    for io in Io::ALL {
        if outcome.missing.iter().any(|(missing, _)| *missing == io) {
            continue;
        }
        let rows = outcome.calls.iter().filter(|row| row.io == io);
        // Two modes with none and two low-priority clients; none make no low-priority calls.
        assert_eq!(rows.clone().count(), 2 * 3, "{io:?}");
        for row in rows {
            assert!(row.latency.calls > 0 && row.latency.p50_us > 0.0, "{row:?}");
        }
    }
    it_can_be_told(&outcome, 2 * 4);
}

fn calls_are_made_beside_bulk_data() {
    let Some(outcome) = measured(&[RioPart::Packets]) else {
        return;
    };
    if !outcome.missing.is_empty() {
        harness::not_run(&format!("in part: {:?}", outcome.missing));
    }
    for io in Io::ALL {
        if outcome.missing.iter().any(|(missing, _)| *missing == io) {
            continue;
        }
        let rows = outcome.packets.iter().filter(|row| row.io == io);
        // Without load, and beside bulk data with none and with two low-priority clients.
        assert_eq!(rows.clone().count(), 2 + 2, "{io:?}");
        for row in rows {
            assert!(row.latency.calls > 0 && row.latency.p50_us > 0.0, "{row:?}");
            let has_bulk = row.load == Load::Bulk;
            assert_eq!(row.bulk_octets_per_s.is_some(), has_bulk, "{row:?}");
            assert!(row.bulk_octets_per_s.unwrap_or(1.0) > 0.0, "{row:?}");
        }
    }
    it_can_be_told(&outcome, 3);
}

fn the_stages_of_calls_are_traced() {
    let Some(outcome) = measured(&[RioPart::Stages]) else {
        return;
    };
    if let Some(why) = &outcome.untraced {
        harness::not_run(why);
        return;
    }
    let rows = outcome.stages.iter();
    let cases: Vec<_> = rows.map(|row| (row.calls_per_s, row.path)).collect();
    let quiet = [20, 1_000].map(|calls_per_s| {
        [
            PacketPath::Kernel,
            PacketPath::Arrival,
            PacketPath::Scheduled,
        ]
        .map(|path| (calls_per_s, path))
    });
    let beside_bulk = [PacketPath::Kernel, PacketPath::Arrival].map(|path| (200, path));
    assert_eq!(cases, [quiet.as_flattened(), &beside_bulk].concat());
    for row in &outcome.stages {
        assert!(row.all.calls > 0 && row.input_us > 0.0, "{row:?}");
        assert!(row.orb_us > 0.0 && row.output_us > 0.0, "{row:?}");
        let has_class_thread = row.path == PacketPath::Scheduled;
        assert_eq!(row.class_us > 0.0, has_class_thread, "{row:?}");
        assert!(row.transmit_us > 0.0 && row.wake_ups > 0.0, "{row:?}");
        assert!(row.system_calls <= row.all_system_calls, "{row:?}");
    }
    it_can_be_told(&outcome, 1);
}

fn it_can_be_told(outcome: &RioOutcome, plots: usize) {
    let page = outcome.html();
    assert_eq!(page.matches("<svg").count(), plots);
    for outside in ["src=", "href=\"http", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let text = outcome.text();
    assert_eq!(text.contains("not real-time"), !outcome.real_time, "{text}");
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "rio");
    let rows = figures["rows"].as_array().expect("there are rows");
    for row in rows {
        assert!(row["part"].is_string(), "{row}");
    }
    for claim in figures["claims"].as_array().expect("there are claims") {
        for name in ["paper", "claim", "published", "measured", "verdict"] {
            assert!(claim[name].is_string(), "{name}: {claim}");
        }
        assert_ne!(claim["measured"], "", "{claim}");
    }
}

fn an_unwritable_report_is_refused() {
    harness::an_unwritable_report_is_refused::<RealTimeIo>(RioPlan::tiny());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "echoes_are_measured_by_every_path",
        echoes_are_measured_by_every_path,
    ),
    ("flows_have_what_was_reserved", flows_have_what_was_reserved),
    (
        "calls_are_made_with_rio_below_the_orb_and_without",
        calls_are_made_with_rio_below_the_orb_and_without,
    ),
    (
        "calls_are_made_beside_bulk_data",
        calls_are_made_beside_bulk_data,
    ),
    (
        "the_stages_of_calls_are_traced",
        the_stages_of_calls_are_traced,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];
