//! The claims and the report of known figures.

use std::time::Duration;

use super::RealTimeIo;
use super::calls::Io;
use super::outcome::{CallRow, EchoRow, FlowRow, RateCurve, RioOutcome};
use super::packets::{Load, PacketRow};
use super::path::PacketPath;
use super::plan::RioPart;
use super::stages::StageRow;
use crate::Claim;
use crate::Verdict;
use crate::environment::Environment;
use crate::experiment::{Experiment, Findings};
use crate::inversion::{ClientClass, Mode};
use crate::stats::{Record, Summary};

/// An outcome as it should be, of two rounds.
pub(super) fn outcome() -> RioOutcome {
    let mut outcome = RioOutcome {
        plan: RealTimeIo::full(),
        environment: Environment::example(),
        real_time: true,
        one_cpu: false,
        congestion: "bbr".to_owned(),
        echoes: Vec::new(),
        flows: flows(),
        calls: calls(),
        packets: packets(),
        receiving_threads: Some(1),
        stages: stages(),
        untraced: None,
        missing: Vec::new(),
        pooled: Default::default(),
        curves: Vec::new(),
    };
    outcome.environment.stolen_percent = vec![0.0];
    for (part, path, us, spread) in [
        (RioPart::Processing, PacketPath::Kernel, 60, 6),
        (RioPart::Processing, PacketPath::Arrival, 64, 6),
        (RioPart::Processing, PacketPath::Scheduled, 66, 6),
        (RioPart::Processing, PacketPath::WrongClass, 90, 60),
        (RioPart::Company, PacketPath::Kernel, 150, 90),
        (RioPart::Company, PacketPath::OneClass, 160, 140),
        (RioPart::Company, PacketPath::Classes, 70, 10),
    ] {
        for round in 0..2 {
            add(&mut outcome, (part, path, round), us, spread);
        }
    }
    outcome.curves.push(RateCurve {
        part: RioPart::Guarantees,
        name: "6.4 MB/s".to_owned(),
        points: vec![(0.1, 6.4e6), (0.2, 6.3e6)],
    });
    outcome
}

/// Adds a turn of latencies from `us` to `us + spread`.
fn add(
    outcome: &mut RioOutcome,
    (part, path, round): (RioPart, PacketPath, u32),
    us: u64,
    spread: u64,
) {
    let mut record = Record::new();
    for step in 0..=10 {
        let latency = Duration::from_micros(us + spread * step / 10);
        record.add(Duration::from_millis(step), latency);
    }
    let bulk = (part == RioPart::Company).then_some(90e6);
    outcome.echoes.push(EchoRow {
        part,
        path,
        round,
        latency: record.summary(),
        min_us: record.min_us(),
        bulk_alone_octets_per_s: bulk,
        bulk_beside_octets_per_s: bulk,
        busy_percent: bulk.map(|_| 97.0),
    });
    outcome.pooled.add((part, path), &record);
}

fn flows() -> Vec<FlowRow> {
    let row = |trial, phase, flow, wanted, mean: f64| FlowRow {
        trial,
        phase,
        flow,
        wanted_octets_per_s: wanted,
        mean_octets_per_s: mean,
        least_octets_per_s: mean * 0.99,
        most_octets_per_s: mean * 1.01,
    };
    vec![
        row("guarantees", "alone", "best-effort", None, 19.8e6),
        row("guarantees", "last", "best-effort", None, 8.5e6),
        row("guarantees", "all", "6.4", Some(6.4e6), 6.4e6),
        row("guarantees", "last", "6.4", Some(6.4e6), 6.4e6),
        row("guarantees", "all", "3.2", Some(3.2e6), 3.2e6),
        row("guarantees", "last", "3.2", Some(3.2e6), 3.2e6),
        row("guarantees", "all", "1.6", Some(1.6e6), 1.6e6),
        row("guarantees", "last", "1.6", Some(1.6e6), 1.6e6),
        row("limit", "all", "capped", Some(8e6), 8e6),
    ]
}

fn calls() -> Vec<CallRow> {
    let of = |io, class, low_clients, us: u64| {
        let mut record = Record::new();
        for step in 0..10 {
            record.add(Duration::ZERO, Duration::from_micros(us + us * step / 20));
        }
        CallRow {
            io,
            mode: Mode::Loaded,
            low_clients,
            class,
            latency: record.summary(),
            server_cpu_percent: 50.0,
        }
    };
    vec![
        of(Io::Kernel, ClientClass::High, 0, 100),
        of(Io::Rio, ClientClass::High, 0, 104),
        of(Io::Kernel, ClientClass::High, 25, 160),
        of(Io::Rio, ClientClass::High, 25, 106),
        of(Io::Kernel, ClientClass::High, 50, 200),
        of(Io::Rio, ClientClass::High, 50, 110),
        of(Io::Kernel, ClientClass::Low, 50, 300),
        of(Io::Rio, ClientClass::Low, 50, 310),
    ]
}

fn packets() -> Vec<PacketRow> {
    let mut rows = Vec::new();
    for (load, low_clients) in RealTimeIo::full().packet_cases() {
        for (io, high, low) in [(Io::Kernel, 200, 300), (Io::Rio, 100, 310)] {
            let kernel_alone = load == Load::Quiet;
            let high = if kernel_alone { 100 } else { high };
            let classes = [(ClientClass::High, high), (ClientClass::Low, low)];
            for (class, us) in classes {
                if class == ClientClass::Low && low_clients == 0 {
                    continue;
                }
                rows.extend((0..2).map(|round| {
                    let mut record = Record::new();
                    for step in 0..10 {
                        let latency = Duration::from_micros(us + us / 100 * us / 100 * step);
                        record.add(Duration::ZERO, latency);
                    }
                    PacketRow {
                        io,
                        load,
                        round,
                        low_clients,
                        class,
                        latency: record.summary(),
                        bulk_octets_per_s: (load == Load::Bulk).then_some(200e6),
                        busy_percent: Some(if load == Load::Bulk { 98.0 } else { 2.0 }),
                    }
                }));
            }
        }
    }
    rows
}

fn stages() -> Vec<StageRow> {
    let of = |path, calls_per_s, class_us, system_calls, wake_ups| StageRow {
        path,
        load: Load::Quiet,
        calls_per_s,
        all: Summary {
            calls: 200,
            p50_us: 21.0,
            p99_us: 80.0,
            p999_us: 90.0,
            max_us: 90.0,
            mean_us: 25.0,
            jitter_us: 9.0,
        },
        queue_us: 1.0,
        receive_us: 5.0,
        wake_us: 3.0,
        class_us,
        input_us: 2.5,
        orb_us: 4.0,
        output_us: 1.5,
        transmit_us: 4.0,
        system_us: 3.0,
        system_calls,
        system_calls_by_name: "input: read 1.0; transmit: sendto 1.0".to_owned(),
        wake_ups,
        switches: wake_ups,
        all_system_calls: system_calls + 1.0,
        all_wake_ups: wake_ups + 0.5,
        packets_in: 2.0,
        packets_out: 1.0,
    };
    vec![
        of(PacketPath::Kernel, 20, 0.0, 2.0, 1.0),
        of(PacketPath::Arrival, 20, 0.0, 2.0, 1.0),
        of(PacketPath::Scheduled, 20, 6.0, 6.0, 2.0),
        of(PacketPath::Kernel, 1_000, 0.0, 2.0, 1.0),
        of(PacketPath::Arrival, 1_000, 0.0, 2.0, 1.0),
        of(PacketPath::Scheduled, 1_000, 5.0, 6.0, 2.0),
        StageRow {
            load: Load::Bulk,
            queue_us: 60.0,
            ..of(PacketPath::Kernel, 200, 0.0, 2.0, 1.0)
        },
        StageRow {
            load: Load::Bulk,
            queue_us: 40.0,
            ..of(PacketPath::Arrival, 200, 0.0, 2.0, 1.0)
        },
    ]
}

/// The one claim that has these words in it.
fn claim(outcome: &RioOutcome, words: &str) -> Claim {
    let claims = outcome.claims();
    let mut found = claims
        .into_iter()
        .filter(|claim| claim.claim.contains(words));
    let claim = found.next().expect("it is claimed");
    assert!(found.next().is_none(), "{words:?} is in several");
    claim
}

#[test]
fn all_is_claimed_that_is_so() {
    let claims = outcome().claims();
    assert_eq!(claims.len(), 3 + 1 + 6 + 5 + 3 + 13 + 3);
    for claim in claims {
        assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
        assert!(!claim.measured.is_empty(), "{claim:?}");
    }
}

#[test]
fn what_costs_too_much_is_said() {
    let mut outcome = outcome();
    for row in &mut outcome.echoes {
        if row.path == PacketPath::Scheduled {
            row.latency.mean_us *= 1.06;
            row.latency.jitter_us *= 3.0;
        }
    }
    for words in ["by a scheduled thread takes", "the jitter of echoes"] {
        assert_eq!(claim(&outcome, words).verdict(), Verdict::Missed);
    }
}

#[test]
fn a_gain_is_held_against_both_others() {
    let mut outcome = outcome();
    for row in &mut outcome.echoes {
        if row.path == PacketPath::OneClass {
            row.latency.max_us = 100.0;
        }
    }
    let by = |other| format!("longest of RIO with classes: at most 0.65 of {other}");
    let same = claim(&outcome, &by("the same stack"));
    assert_eq!(same.verdict(), Verdict::Missed);
    assert_eq!(same.ratio, Some(0.8));
    assert_eq!(claim(&outcome, &by("the kernel")).verdict(), Verdict::Pass);
}

#[test]
fn traffic_that_the_sender_holds_up_keeps_no_receiver_busy() {
    let mut outcome = outcome();
    for row in &mut outcome.echoes {
        row.busy_percent = row.busy_percent.map(|_| 40.0);
    }
    let busy = claim(&outcome, "keeps the receiver's CPU busy");
    assert_eq!(busy.verdict(), Verdict::Missed);
}

#[test]
fn a_reservation_is_not_held_where_one_second_has_more_or_less() {
    for (least, most) in [(0.97, 1.0), (1.0, 1.03)] {
        let mut outcome = outcome();
        for row in &mut outcome.flows {
            let wanted = row.wanted_octets_per_s.unwrap_or(row.mean_octets_per_s);
            row.least_octets_per_s = wanted * least;
            row.most_octets_per_s = wanted * most;
        }
        for words in ["of 6.4 MB/s", "of 3.2 MB/s", "of 1.6 MB/s", "40 %"] {
            assert_eq!(claim(&outcome, words).verdict(), Verdict::Missed, "{words}");
        }
    }
}

#[test]
fn parts_that_were_not_asked_for_claim_nothing() {
    let mut outcome = outcome();
    outcome.plan.parts = vec![RioPart::Guarantees];
    assert_eq!(outcome.claims().len(), 5);
}

#[test]
fn what_is_missing_is_said() {
    let mut outcome = outcome();
    outcome.missing = vec![(Io::KernelDriver, "no <such> thing".to_owned())];
    outcome.real_time = false;
    let (page, text) = (outcome.html(), outcome.text());
    assert!(page.contains("kernel, with a plan: no &lt;such&gt; thing"));
    assert!(text.contains("kernel, with a plan: no <such> thing"));
    assert!(text.contains("not real-time"));
}

#[test]
fn an_experiment_without_any_figure_can_be_told() {
    let mut outcome = outcome();
    outcome.echoes.clear();
    outcome.pooled = Default::default();
    outcome.flows.clear();
    outcome.calls.clear();
    outcome.packets.clear();
    outcome.stages.clear();
    let page = outcome.html();
    assert!(page.contains("<title>Real-time I/O</title>"));
    assert!(outcome.text().contains("not measured"));
}

#[test]
fn programs_read_a_flat_row_for_each_line() {
    let outcome = outcome();
    let figures = outcome.figures();
    let rows = figures["rows"].as_array().expect("there are rows");
    let all = outcome.echoes.len()
        + outcome.flows.len()
        + outcome.calls.len()
        + outcome.packets.len()
        + outcome.stages.len();
    assert_eq!(rows.len(), all);
    for row in rows {
        let cells = row.as_object().expect("a row is an object");
        assert!(cells["part"].is_string(), "{row}");
        let is_flat = |cell: &serde_json::Value| !cell.is_array() && !cell.is_object();
        assert!(cells.values().all(is_flat), "{row}");
    }
    assert_eq!(rows[0]["way"], "kernel");
}
