//! The experiment `events`, run for real with next to nothing.

use chronorb_lab::events::{ConnectionOrder, Events, EventsPart, EventsPlan, PeerSystem};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_part_is_measured() {
    let plan = EventsPlan::tiny();
    let outcome = Events::measure(&plan).expect("it can be measured");
    assert_eq!(outcome.priority.len(), 4);
    for row in &outcome.priority {
        assert_eq!(row.latency.calls, u64::from(plan.urgent), "{row:?}");
    }
    let pushes = outcome.pushes.as_ref().expect("they were counted");
    assert_eq!(pushes.rows.len(), 1 + 5 + 8 + 3);
    for row in &pushes.rows {
        assert_eq!(row.instructions.is_none(), !pushes.refused.is_empty());
        let all = (row.allocations, row.lock_operations, row.system_calls);
        assert_eq!((all.0, all.1, all.2.unwrap_or(0)), (0, 0, 0), "{row:?}");
    }
    let fan_out = outcome.fan_out.as_ref().expect("it was measured");
    assert_eq!(fan_out.rows.len(), plan.consumers.len());
    assert_eq!(outcome.bursts.len(), 4);
    for row in &outcome.bursts {
        assert_eq!(row.taken + row.lost, row.asked, "{row:?}");
        assert!(row.asked >= u64::from(plan.burst), "{row:?}");
    }
    let connections = plan.connections.len() * ConnectionOrder::ALL.len();
    assert_eq!(outcome.connections.len(), connections);
    let timers = outcome.timers.as_ref().expect("they ran");
    assert!(
        timers.lateness.calls > 0 && timers.drifted == 0,
        "{timers:?}"
    );
    let [alone, beside] = &outcome.slow[..] else {
        panic!("there are two rows: {:?}", outcome.slow);
    };
    assert_eq!(alone.pushed, u64::from(plan.beside_slow));
    assert_eq!(beside.slow_taken + beside.slow_lost, beside.pushed);
    assert_eq!(outcome.ring.len(), plan.cursors.len() + plan.sleepers.len());
    for row in &outcome.ring {
        let asked = row.published * u64::from(row.cursors);
        assert_eq!(row.taken + row.lost, asked, "{row:?}");
    }
    let peers = outcome.peers.as_ref().expect("they were measured");
    let systems = PeerSystem::ALL.len() - peers.absent.len();
    assert_eq!(peers.rows.len(), systems * plan.peer_consumers.len());
    for row in &peers.rows {
        let asked = u64::from(row.consumers * plan.peer_events * plan.peer_rounds);
        assert_eq!(row.latency.calls + row.missing, asked, "{row:?}");
    }
    let claims = outcome.claims();
    assert_eq!(claims.len(), 22);
    let of = |words: &str| {
        let claim = claims.iter().find(|claim| claim.claim.contains(words));
        claim.expect("there is such a claim").verdict()
    };
    assert_eq!(of("neither allocate nor lock"), verdict(&pushes.refused));
    assert_eq!(of("is encoded once"), Verdict::Pass);
    assert_eq!(of("In bursts"), Verdict::Pass);
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "events");
    for row in figures["rows"].as_array().expect("it is a list") {
        assert!(row["part"].is_string(), "{row}");
    }
    assert!(outcome.html().contains("<svg"));
}

/// The verdict on what is counted, if it could be.
fn verdict(refused: &str) -> Verdict {
    if refused.is_empty() {
        Verdict::Pass
    } else {
        Verdict::NotMeasured
    }
}

fn one_part_is_run_alone() {
    let mut plan = EventsPlan::tiny();
    plan.parts = vec![EventsPart::Ring];
    let outcome = Events::measure(&plan).expect("it can be measured");
    assert!(outcome.pushes.is_none() && outcome.priority.is_empty());
    assert!(outcome.html().contains("lab events --only ev9"));
    assert_eq!("ev2".parse(), Ok(EventsPart::Collocated));
    let error = "ev0".parse::<EventsPart>().expect_err("there is none");
    assert!(error.contains("ev1, ev2, ev3"), "{error}");
}

pub(crate) const TESTS: &[harness::Test] = &[
    ("every_part_is_measured", every_part_is_measured),
    ("one_part_is_run_alone", one_part_is_run_alone),
];
