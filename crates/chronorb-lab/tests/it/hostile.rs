//! The experiment `hostile`, run for real with next to nothing.

use chronorb_lab::hostile::{Attack, AttackPhase, Hostile, HostilePlan, ServiceAttack};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_attack_is_measured_in_all_phases() {
    let mut plan = HostilePlan::tiny();
    plan.services.attacks.clear();
    let outcome = Hostile::measure(&plan).expect("it can be measured");
    assert_eq!(
        outcome.rows.len(),
        Attack::ALL.len() * AttackPhase::ALL.len()
    );
    let mut rows = outcome.rows.iter();
    for attack in Attack::ALL {
        for phase in AttackPhase::ALL {
            let row = rows.next().expect("there is a row");
            assert_eq!((row.attack, row.phase), (attack, phase));
            let is_during = phase == AttackPhase::During;
            assert_eq!(row.connections > 0, is_during, "{row:?}");
            // Idle connections send nothing.
            let sends = is_during && attack != Attack::IdleConnections;
            assert_eq!(row.sent_octets > 0, sends, "{row:?}");
            assert!(row.resident_octets <= row.resident_most_octets, "{row:?}");
            if row.survived_percent == 0.0 {
                // Small as it is, this one may; that is a finding.
                assert_eq!(attack, Attack::OwnAlias, "{row:?}");
                continue;
            }
            assert!(row.resident_octets > 100_000, "{row:?}");
            assert!(row.latency.calls > 0, "{row:?}");
            assert!(row.newcomers > 0, "{row:?}");
            assert!(row.latency.p50_us <= row.latency.p99_us, "{row:?}");
            assert_eq!(row.failed_calls_percent, 0.0, "{row:?}");
            assert_eq!(row.failed_newcomers_percent, 0.0, "{row:?}");
        }
    }
    let dead = outcome
        .rows
        .iter()
        .filter(|row| row.phase == AttackPhase::After);
    let dead = dead.filter(|row| row.survived_percent == 0.0).count();
    assert_eq!(outcome.deaths.len(), dead);

    let mut claims = outcome.claims();
    let of_services = claims.split_off(Attack::ALL.len());
    let mut of_services = of_services.iter();
    assert!(of_services.all(|claim| claim.verdict() == Verdict::NotMeasured));
    let missed = claims
        .iter()
        .filter(|claim| claim.verdict() == Verdict::Missed);
    assert_eq!(missed.count(), dead, "{claims:?}");

    let text = outcome.text();
    for attack in Attack::ALL {
        assert!(text.contains(attack.title()), "{attack:?}:\n{text}");
    }
    let page = outcome.html();
    assert!(page.contains("<svg"));
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "hostile");
    let row = &figures["rows"][1];
    assert_eq!(row["attack"], "idle-connections");
    assert_eq!(row["phase"], "during");
    for name in [
        "calls",
        "p99_us",
        "failed_calls_percent",
        "failed_newcomers_percent",
        "sent_octets",
        "resident_octets",
        "resident_most_octets",
        "cpu_percent",
        "survived_percent",
    ] {
        assert!(row[name].is_number(), "{name}: {row}");
    }
}

fn every_attack_on_a_service_is_measured_twice() {
    let mut plan = HostilePlan::tiny();
    plan.attacks.clear();
    let outcome = Hostile::measure(&plan).expect("it can be measured");
    let attacks = ServiceAttack::ALL.into_iter();
    let mut expected = attacks.flat_map(|attack| [(attack, 1), (attack, 2)]);
    for row in &outcome.service_rows {
        assert_eq!(Some((row.attack, row.amount)), expected.next());
        assert_eq!(row.service, row.attack.service());
        assert!(row.sent_octets > 0, "{row:?}");
        assert!(row.alone_calls > 0, "{row:?}");
        assert!(row.resident_octets > 100_000, "{row:?}");
        assert!(row.resident_octets <= row.resident_most_octets, "{row:?}");
        assert_eq!(row.survived_percent, 100.0, "{row:?}");
    }
    assert_eq!(expected.next(), None);
    assert!(outcome.service_deaths.is_empty());

    let claims = outcome.claims();
    let mut claims = claims.iter();
    assert!(claims.all(|claim| claim.verdict() != Verdict::NotMeasured));
    let text = outcome.text();
    for attack in ServiceAttack::ALL {
        assert!(text.contains(attack.title()), "{attack:?}:\n{text}");
    }
    let row = &outcome.figures()["service_rows"][1];
    assert_eq!(row["attack"], "long-texts");
    assert_eq!(row["service"], "names");
    assert_eq!(row["amount"], 2);
    for name in ["calls", "p99_us", "sent_octets", "cpu_ms", "rest_ms"] {
        assert!(row[name].is_number(), "{name}: {row}");
    }
}

fn a_server_that_ends_is_a_finding() {
    let mut plan = HostilePlan::tiny();
    plan.services.attacks.clear();
    plan.attacks = vec![Attack::OwnAlias];
    let outcome = Hostile::measure(&plan).expect("it is no failure");
    let [before, during, after] = &outcome.rows[..] else {
        panic!("{:?}", outcome.rows);
    };
    assert_eq!(before.survived_percent, 100.0);
    // This holds whether the server withstands the attack or not.
    let is_dead = !outcome.deaths.is_empty();
    assert_eq!(after.survived_percent == 0.0, is_dead);
    assert_eq!(after.failed_calls_percent > 0.0, is_dead, "{after:?}");
    assert_eq!(after.latency.calls == 0, is_dead, "{after:?}");
    assert!(during.sent_octets > 0, "{during:?}");
}

fn an_unwritable_report_is_refused() {
    harness::an_unwritable_report_is_refused::<Hostile>(HostilePlan::tiny());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "every_attack_is_measured_in_all_phases",
        every_attack_is_measured_in_all_phases,
    ),
    (
        "every_attack_on_a_service_is_measured_twice",
        every_attack_on_a_service_is_measured_twice,
    ),
    (
        "a_server_that_ends_is_a_finding",
        a_server_that_ends_is_a_finding,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];
