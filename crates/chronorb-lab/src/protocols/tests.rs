//! Tests of reports and claims with invented figures.

use super::*;
use crate::Claim;
use crate::Verdict;
use crate::bench::{Arrivals, Sizes, Waits};
use crate::experiment::Findings;
use crate::units;

/// An outcome that makes all claims true.
pub(super) fn outcome() -> ProtocolsOutcome {
    let mut outcome = ProtocolsOutcome {
        plan: Protocols::full(),
        environment: Environment::example(),
        omniorb: OmniOrb {
            version: Some("4.2.5".to_owned()),
            missing: String::new(),
            programs: None,
        },
        missing: Vec::new(),
        messages: Workload::ALL
            .map(|workload| WireSizes {
                workload,
                packets: None,
                giop: Sizes {
                    request: 73,
                    reply: 28,
                },
                giop_lite: Some(Sizes {
                    request: 53,
                    reply: 20,
                }),
            })
            .to_vec(),
        rows: Vec::new(),
        rates: Vec::new(),
        floods: Vec::new(),
        pooled: PooledRecords::default(),
    };
    for cell in Cell::all(&outcome.plan) {
        for protocol in Protocol::ALL {
            for system in ProtocolSystem::ALL {
                let rounds = if cell.workload == Workload::Call(0) {
                    6
                } else {
                    1
                };
                for round in 1..=rounds {
                    let contender = Contender::giop(protocol, cell).with(system);
                    take(&mut outcome, ContenderTurn { contender, round });
                }
            }
        }
    }
    outcome
}

fn take(outcome: &mut ProtocolsOutcome, turn: ContenderTurn) {
    let Contender {
        protocol,
        system,
        cell,
    } = turn.contender;
    let spins = cell.waits == Waits::Spin;
    let is_omniorb = matches!(
        system,
        ProtocolSystem::OmniOrbTcp | ProtocolSystem::OmniOrbUnix
    );
    let is_beside = system == ProtocolSystem::OmniOrbUnix && protocol != Protocol::Uiop;
    let has_none = system == ProtocolSystem::GiopLite && !protocol.has_giop_lite();
    let is_missing = is_beside || has_none || (is_omniorb && (spins || cell.workload.is_oneway()));
    if is_missing || !protocol.carries(cell.workload) {
        return;
    }
    let raw = match (protocol, spins) {
        (Protocol::Shmiop, true) => 220.0,
        (Protocol::Shmiop, false) => 2_700.0,
        (Protocol::Uiop, _) => 4_600.0,
        _ => 6_400.0,
    };
    let ns = raw
        * match system {
            ProtocolSystem::Raw => 1.0,
            ProtocolSystem::Giop if protocol == Protocol::Shmiop => 1.09,
            ProtocolSystem::Giop => 1.136,
            ProtocolSystem::GiopLite => 1.12,
            ProtocolSystem::OmniOrbTcp | ProtocolSystem::OmniOrbUnix => 1.3,
        };
    let calls: Vec<u64> = (0..CALLS).map(|n| ns as u64 + n % 3).collect();
    match cell.workload {
        Workload::Clients(_) => outcome.add_rate(turn, CALLS as u32, calls.iter().sum(), None),
        Workload::Flood(_) => {
            outcome.add_rate(turn, SENT, calls.iter().sum(), Some(arrivals(&calls)))
        }
        _ => outcome.add_latencies(turn, CALLS as u32, &calls, Disturbance::default()),
    }
}

/// Messages that came one after the other, for as long as calls take.
fn arrivals(calls_ns: &[u64]) -> Arrivals {
    let mut arrivals = Arrivals::default();
    let mut now = 1;
    for ns in calls_ns {
        arrivals.add(now, now + ns);
        now += ns;
    }
    arrivals
}

/// The calls of a turn.
const CALLS: u64 = 20;
/// The messages of a turn, of which as many arrive as there are calls.
const SENT: u32 = 25;

fn verdict(claims: &[Claim], of: &str) -> Verdict {
    let claim = claims.iter().find(|claim| claim.claim.contains(of));
    claim
        .unwrap_or_else(|| panic!("{of}: {claims:?}"))
        .verdict()
}

#[test]
fn what_holds_passes() {
    let claims = outcome().claims();
    assert_eq!(claims.len(), 3 + 4 + 3 + 1 + 2 + 2);
    for claim in claims {
        assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
    }
}

#[test]
fn each_claim_is_missed_by_what_it_is_about() {
    let mut holding = outcome();
    holding.pooled = PooledRecords::default();
    let missed = |change: &dyn Fn(&mut LatencyTurn)| {
        let mut outcome = holding.clone();
        outcome.rows.iter_mut().for_each(change);
        let claims = outcome.claims();
        let missed = claims
            .iter()
            .filter(|claim| claim.verdict() == Verdict::Missed);
        missed.map(|claim| claim.claim.clone()).collect::<Vec<_>>()
    };
    let slow = |of: Protocol, p50_us: f64| {
        move |row: &mut LatencyTurn| {
            if row.turn.contender.protocol == of
                && row.turn.contender.system == ProtocolSystem::Giop
            {
                row.latency.p50_us = p50_us;
            }
        }
    };
    assert_eq!(
        missed(&slow(Protocol::Shmiop, 0.4)).len(),
        1,
        "above 1.5 of raw"
    );
    assert_eq!(
        missed(&slow(Protocol::Shmiop, 0.5)).len(),
        2,
        "and near omniORB"
    );
    assert_eq!(
        missed(&slow(Protocol::Ssliop, 7.5)).len(),
        3,
        "in every place"
    );
    assert_eq!(
        missed(&slow(Protocol::Shmiop, 3.0)).len(),
        3,
        "and above 1.1 of raw on one CPU"
    );
    assert_eq!(missed(&slow(Protocol::Uiop, 5.4)).len(), 3);
    assert_eq!(
        missed(&slow(Protocol::Uiop, 6.1)).len(),
        4,
        "and above omniORB"
    );
    let no_gain = |row: &mut LatencyTurn| {
        if row.turn.contender.system == ProtocolSystem::GiopLite && row.turn.round.is_multiple_of(2)
        {
            row.latency.p50_us *= 1.1;
        }
    };
    assert_eq!(
        missed(&no_gain),
        ["GIOPlite makes more calls in a second than GIOP"]
    );
}

#[test]
fn what_took_no_part_is_not_measured() {
    let mut outcome = outcome();
    outcome.rows.retain(|row| {
        row.turn.contender.system != ProtocolSystem::GiopLite
            && row.turn.contender.protocol != Protocol::Uiop
    });
    outcome
        .messages
        .iter_mut()
        .for_each(|of| of.giop_lite = None);
    let claims = outcome.claims();
    for of in [
        "uiop, same CPU",
        "GIOPlite spares",
        "GIOPlite makes",
        "Unix-domain sockets",
    ] {
        assert_eq!(verdict(&claims, of), Verdict::NotMeasured, "{of}");
    }
    assert_eq!(verdict(&claims, "ssliop, same CPU"), Verdict::Pass);
}

#[test]
fn tables_tell_what_is_added_what_is_gained_and_what_is_spared() {
    let text = outcome().text();
    for part in [
        "A call, same CPU, blocking, SCHED_OTHER",
        "A call with 64 KiB, across CPUs, spinning, SCHED_OTHER",
        "A message without an answer, same CPU",
        "A message without an answer, 64 KiB, across CPUs, spinning",
        "Calls of 4 clients",
        "Messages without an answer of 4 clients, same CPU, blocking",
        "Calls in a second, GIOP and GIOPlite",
        "+1.4 %",
        "1.14",
        "Octets of a message",
        "73",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn programs_get_flat_rows_with_units_in_their_names() {
    let figures = outcome().figures();
    assert_eq!(figures["experiment"], "protocols");
    let row = &figures["rows"][0];
    assert_eq!(row["protocol"], "iiop");
    assert_eq!(
        (&row["trial"], &row["waits"]),
        (&"call-0".into(), &"block".into())
    );
    for name in [
        "round",
        "calls",
        "min_us",
        "p50_us",
        "p999_us",
        "jitter_us",
        "lost",
    ] {
        assert!(row[name].is_number(), "{name}: {row}");
    }
    assert!(figures["rates"][0]["calls_per_s"].is_number());
    let flood = &figures["floods"][0];
    assert_eq!(
        (&flood["protocol"], &flood["trial"]),
        (&"miop".into(), &"flood-4".into())
    );
    for name in [
        "round",
        "sent",
        "arrived",
        "lost",
        "sent_per_s",
        "arrived_per_s",
    ] {
        assert!(flood[name].is_number(), "{name}: {flood}");
    }
    assert!(figures["ratios"][0]["p50"]["ratio_low"].is_number());
    assert_eq!(figures["messages"][0]["giop"]["request"], 73);
}

#[test]
fn what_did_not_arrive_is_counted() {
    let mut outcome = outcome();
    let cell = Cell::all(&outcome.plan)
        .into_iter()
        .find(|cell| cell.workload == Workload::Oneway(0))
        .expect("there is one");
    let contender = Contender::giop(Protocol::Miop, cell);
    let turn = |round| ContenderTurn { contender, round };
    outcome.add_latencies(turn(9), 10, &[1_000; 7], Disturbance::default());
    outcome.add_latencies(turn(10), 10, &[], Disturbance::default());
    let rounds = outcome.rounds(contender).expect("it was measured");
    assert_eq!(rounds.latency.calls, CALLS + 7);
    assert_eq!(rounds.lost, 13);
}

#[test]
fn messages_of_several_clients_are_told_by_those_that_arrive() {
    let outcome = outcome();
    let cell = Cell::all(&outcome.plan)
        .into_iter()
        .find(|cell| matches!(cell.workload, Workload::Flood(_)))
        .expect("there is one");
    let contender = Contender::giop(Protocol::Miop, cell);
    let flood = outcome
        .floods_of(contender)
        .next()
        .expect("it was measured");
    assert_eq!((flood.sent, flood.arrived, flood.lost), (SENT, 20, 5));
    let by_sent = f64::from(flood.arrived) / f64::from(flood.sent);
    let by_rate = flood.arrived_per_s / flood.sent_per_s;
    assert!((by_rate - by_sent).abs() < 1e-9, "{flood:?}");
    assert_eq!(outcome.rates_of(contender), [(1, flood.arrived_per_s)]);
}

#[test]
fn octets_and_packets_to_a_group_are_told_beside_those_of_streams() {
    let mut outcome = outcome();
    let workloads = [Workload::Oneway(0), Workload::Oneway(1 << 16)];
    let sizes = [168, 67_148].map(|request| Sizes { request, reply: 0 });
    for (at, packets) in [(0, 1), (1, 46)] {
        outcome.messages.push(WireSizes {
            workload: workloads[at],
            packets: Some(packets),
            giop: sizes[at],
            giop_lite: None,
        });
    }
    let of = |protocol| outcome.sizes(protocol);
    assert_eq!(of(Protocol::Miop), [0, 1].map(|n| (workloads[n], sizes[n])));
    assert_eq!(
        of(Protocol::Iiop).len(),
        Protocol::Iiop.workloads_and_operations().0.len()
    );
    let text = outcome.text();
    for part in [
        "a message without an answer, 64 KiB, to a group",
        &units::count(67_148),
        "46",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}
