//! The experiments `latency`, `protocols` and `throughput`, run for real with next to nothing.

use std::env;
use std::fs;

use chronorb_lab::bench::{CallScheduling, OmniOrb, Placement};
use chronorb_lab::latency::{self, Latency};
use chronorb_lab::protocols::{self, Protocols};
use chronorb_lab::throughput::{self, Throughput};
use chronorb_lab::{Claim, Experiment, Findings, LabError, Options, Verdict, run};

use crate::harness;

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "a_call_is_measured_on_every_system_in_every_place",
        a_call_is_measured_on_every_system_in_every_place,
    ),
    (
        "calls_and_data_are_measured_on_every_system",
        calls_and_data_are_measured_on_every_system,
    ),
    (
        "calls_are_measured_by_every_protocol_and_by_what_it_stands_on",
        calls_are_measured_by_every_protocol_and_by_what_it_stands_on,
    ),
    (
        "real_time_priorities_are_for_all_or_for_none",
        real_time_priorities_are_for_all_or_for_none,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];

fn a_call_is_measured_on_every_system_in_every_place() {
    use latency::LatencySystem as System;

    let plan = latency::LatencyPlan::tiny();
    let outcome = Latency::measure(&plan).expect("it can be measured");
    let has_omniorb = takes_part(&outcome.omniorb);
    let several_cpus = has_several_cpus();
    for system in System::ALL {
        for placement in Placement::ALL {
            let across = placement == Placement::AcrossCpus;
            let is_measured = (system != System::OmniOrb || has_omniorb)
                && (!system.spins() || across)
                && (!across || several_cpus);
            let rows = outcome.rows.iter();
            let rows = rows.filter(|row| row.system == system && row.placement == placement);
            let rows: Vec<_> = rows.collect();
            let expected = if is_measured { plan.rounds } else { 0 };
            assert_eq!(rows.len(), expected as usize, "{system:?} {placement:?}");
            for row in rows {
                assert_eq!(row.latency.calls, u64::from(plan.calls));
                assert!(row.min_us <= row.latency.p50_us, "{row:?}");
                assert!(row.latency.p50_us <= row.latency.p99_us, "{row:?}");
                assert!(row.latency.p99_us <= row.latency.max_us, "{row:?}");
            }
        }
    }
    assert_eq!(outcome.messages.reply, 28);

    let idle = outcome.idle.as_ref().expect("it was asked for");
    assert_eq!(idle.connections, plan.connections, "{}", idle.fewer_because);
    for rows in [&idle.alone, &idle.among_idle] {
        assert_eq!(rows.len(), plan.rounds as usize);
    }
    assert!(idle.resident_before > 1_000_000);

    let claims = outcome.claims();
    assert_eq!(claims.len(), 15);
    check(&claims);
    let text = outcome.text();
    for part in [
        "A call, same CPU",
        "by raw",
        "chronorb, blocking",
        "50 more connections",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let page = outcome.html();
    check_page(&page, if several_cpus { 3 } else { 2 });

    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "latency");
    let row = &figures["rows"][0];
    for name in ["system", "placement"] {
        assert!(row[name].is_string(), "{name}: {row}");
    }
    for name in [
        "round",
        "calls",
        "min_us",
        "p50_us",
        "p99_us",
        "p999_us",
        "max_us",
        "mean_us",
        "jitter_us",
    ] {
        assert!(row[name].is_number(), "{name}: {row}");
    }
    assert!(figures["ratios"][0]["p50_by_raw"].is_number());
    assert!(figures["idle_connections"]["resident_with"].is_number());
}

fn calls_and_data_are_measured_on_every_system() {
    use throughput::{ThroughputSystem as System, ThroughputTrial as Trial};

    let plan = throughput::ThroughputPlan::tiny();
    let outcome = Throughput::measure(&plan).expect("it can be measured");
    let has_omniorb = takes_part(&outcome.omniorb);
    for trial in Trial::ALL {
        for system in System::ALL {
            let is_of_calls = matches!(trial, Trial::Clients(_));
            let is_measured = match system {
                System::Chronorb => true,
                System::OmniOrb => has_omniorb,
                System::EpollOne | System::EpollMany => is_of_calls,
                System::RawTcp => !is_of_calls,
                System::RawTcpApart => trial.name().ends_with("of octets"),
            };
            let rows = outcome.rows.iter();
            let rows: Vec<_> = rows
                .filter(|row| row.trial == trial && row.system == system)
                .collect();
            assert_eq!(!rows.is_empty(), is_measured, "{trial:?} {system:?}");
            for row in rows {
                assert!(row.calls > 0 && row.calls_per_s > 0.0, "{row:?}");
                assert_eq!(row.mib_per_s > 0.0, !is_of_calls, "{row:?}");
            }
        }
    }
    check(&outcome.claims());
    let text = outcome.text();
    for part in [
        "16 clients, unpinned",
        "1 MiB of octets, same CPU",
        "MiB/s",
        "73 and 28",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    check_page(&outcome.html(), 2);
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "throughput");
    assert!(figures["rows"][0]["calls_per_s"].is_number());
}

fn calls_are_measured_by_every_protocol_and_by_what_it_stands_on() {
    use protocols::{ContenderTurn, Protocol, ProtocolSystem, ProtocolsPlan};

    let plan = ProtocolsPlan::tiny();
    let outcome = Protocols::measure(&plan).expect("it can be measured");
    let has_omniorb = takes_part(&outcome.omniorb);
    for protocol in Protocol::ALL {
        for system in [
            ProtocolSystem::Raw,
            ProtocolSystem::Giop,
            ProtocolSystem::OmniOrbTcp,
        ] {
            let mut missing = outcome.missing.iter();
            let missing = missing.find(|of| of.protocol == protocol && of.system == system);
            let carries_calls = protocol != Protocol::Miop;
            let is_measured = match system {
                ProtocolSystem::OmniOrbTcp => has_omniorb && carries_calls,
                _ => missing.is_none(),
            };
            if let Some(missing) = missing {
                not_run(
                    &format!("{} of {}", system.name(protocol), protocol.scheme()),
                    &missing.why,
                );
            }
            let is_of = |turn: &ContenderTurn| {
                (turn.contender.protocol, turn.contender.system) == (protocol, system)
            };
            let rows = outcome.rows.iter();
            let rows: Vec<_> = rows.filter(|row| is_of(&row.turn)).collect();
            assert_eq!(!rows.is_empty(), is_measured, "{protocol:?} {system:?}");
            for row in rows {
                assert!(
                    row.latency.calls > 0 && row.min_us <= row.latency.p50_us,
                    "{row:?}"
                );
                assert!(row.latency.p50_us <= row.latency.max_us, "{row:?}");
            }
            let rates = outcome.rates.iter();
            let mut rates = rates.filter(|rate| is_of(&rate.turn));
            assert_eq!(
                rates.next().is_some(),
                is_measured && carries_calls,
                "{protocol:?} {system:?}"
            );
            let floods = outcome.floods.iter();
            let mut floods = floods.filter(|flood| is_of(&flood.turn));
            assert_eq!(
                floods.next().is_some(),
                is_measured && !carries_calls,
                "{protocol:?} {system:?}"
            );
            for flood in floods {
                assert_eq!(flood.arrived + flood.lost, flood.sent, "{flood:?}");
                assert!(flood.arrived > 0 && flood.arrived_per_s > 0.0, "{flood:?}");
            }
        }
    }
    let text = outcome.text();
    for part in [
        "A call, same CPU, blocking",
        "raw shared memory",
        "iiop, GIOP",
        "Calls of 4 clients",
        "miop, GIOP",
        "A message without an answer, 64 KiB, same CPU, blocking",
        "Messages without an answer of 4 clients",
        "Octets of a message",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let plots = if has_several_cpus() { 12 } else { 4 };
    check_page(&outcome.html(), plots);
    assert_eq!(outcome.figures()["experiment"], "protocols");
}

fn real_time_priorities_are_for_all_or_for_none() {
    let mut plan = latency::LatencyPlan::tiny();
    plan.scheduled = CallScheduling::Fifo;
    plan.connections = 0;
    plan.rounds = 1;
    match (
        Latency::measure(&plan),
        chronorb_rt::Rights::probe().max_fifo,
    ) {
        (Ok(outcome), Some(_)) => assert!(outcome.text().contains("SCHED_FIFO 20")),
        (Err(error), _) => {
            assert!(matches!(error, LabError::Scheduling { .. }), "{error}");
        }
        (Ok(_), None) => panic!("there is no such right"),
    }
}

fn an_unwritable_report_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let error = run::<Latency>(&Options {
        json: false,
        report: Some(folder.path().join("missing/report.html")),
        plan: latency::LatencyPlan::tiny(),
    })
    .expect_err("there is no such directory")
    .to_string();
    assert!(error.contains("missing/report.html"), "{error}");
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0);
}

/// Whether omniORB is there; where it has to be, that it is.
fn takes_part(omniorb: &OmniOrb) -> bool {
    let is_there = omniorb.version.is_some();
    if !is_there {
        not_run("calls of omniORB", &omniorb.missing);
    }
    is_there
}

/// Says what was left out; where it has to be there, fails.
fn not_run(what: &str, why: &str) {
    println!("NOT RUN: {what}: {why}");
    let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
    assert!(!required, "{what} has to be measured: {why}");
}

fn check(claims: &[Claim]) {
    for claim in claims {
        let is_measured = claim.verdict() != Verdict::NotMeasured;
        assert_eq!(claim.ratio.is_some(), is_measured, "{claim:?}");
        assert_eq!(claim.measured.is_empty(), !is_measured, "{claim:?}");
    }
}

fn check_page(page: &str, plots: usize) {
    assert_eq!(page.matches("<svg").count(), plots);
    for outside in ["src=", "href=\"http", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.ends_with("</html>\n"));
}

fn has_several_cpus() -> bool {
    std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}
