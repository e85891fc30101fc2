//! Classification by rules.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::frame::{Ethernet, Flags, Tcp, Vlan};

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = rules([
        Rule {
            ports: Some(1000..=1000),
            ..Rule::all(CLASS[0])
        },
        Rule {
            ports: Some(1000..=1999),
            ..Rule::all(CLASS[1])
        },
    ]);
    assert_eq!(
        classify(&rules, packet(1000, 0, None)),
        Verdict::Class(CLASS[0])
    );
    assert_eq!(
        classify(&rules, packet(1999, 0, None)),
        Verdict::Class(CLASS[1])
    );
    assert_eq!(classify(&rules, packet(2000, 0, None)), Verdict::Kernel);
}

#[test]
fn a_code_point_and_a_vlan_priority_have_to_be_those_of_the_rule() {
    let rules = rules([
        Rule {
            dscp: Some(46),
            ..Rule::all(CLASS[0])
        },
        Rule {
            vlan_priority: Some(0),
            ..Rule::all(CLASS[1])
        },
    ]);
    assert_eq!(
        classify(&rules, packet(1, 46, None)),
        Verdict::Class(CLASS[0])
    );
    assert_eq!(
        classify(&rules, packet(1, 45, Some(0))),
        Verdict::Class(CLASS[1])
    );
    assert_eq!(classify(&rules, packet(1, 45, Some(1))), Verdict::Kernel);
    assert_eq!(
        classify(&rules, packet(1, 45, None)),
        Verdict::Kernel,
        "no tag is no priority"
    );
}

#[test]
fn unknown_packets_of_tcp_go_where_they_are_said_to_go_and_no_others() {
    let mut rules = Rules::new();
    rules.set_unknown(Unknown::Class(CLASS[2]));
    let known = packet(1, 0, None);
    assert_eq!(classify(&rules, known), Verdict::Class(CLASS[2]));
    assert_eq!(
        classify(&rules, Headers { tcp: None, ..known }),
        Verdict::Kernel
    );
    let foreign = Headers {
        to: Ipv4Addr::BROADCAST.into(),
        ..known
    };
    assert_eq!(classify(&rules, foreign), Verdict::Kernel);
    rules.remove_class(CLASS[2]);
    assert_eq!(
        classify(&rules, known),
        Verdict::Kernel,
        "the class is closed"
    );
}

#[test]
fn a_rule_that_no_packet_can_match_is_refused() {
    let refused = |rule: Rule| Rules::new().add(rule).expect_err("it is refused");
    let all = Rule::all(CLASS[0]);
    assert_eq!(
        refused(Rule {
            dscp: Some(64),
            ..all.clone()
        }),
        RuleError::Dscp(64)
    );
    let rule = Rule {
        vlan_priority: Some(8),
        ..all.clone()
    };
    assert_eq!(refused(rule), RuleError::VlanPriority(8));
    for (first, last) in [(2, 1), (0, 0)] {
        let rule = Rule {
            ports: Some(first..=last),
            ..all.clone()
        };
        assert_eq!(refused(rule), RuleError::Ports { first, last });
    }
}

#[test]
fn there_is_an_end_to_rules() {
    let mut rules = Rules::new();
    for _ in 0..MAX_RULES {
        rules.add(Rule::all(CLASS[0])).expect("there is room");
    }
    assert_eq!(rules.add(Rule::all(CLASS[0])), Err(RuleError::TooMany));
    assert!(rules.remove(&Rule::all(CLASS[0])));
    assert!(!rules.remove(&Rule::all(CLASS[1])));
    assert_eq!(rules.add(Rule::all(CLASS[1])), Ok(()));
}

proptest! {
    #[test]
    fn a_rule_added_last_changes_nothing_for_packets_that_others_match(
        list in prop::collection::vec(rule(), 0..10),
        last in rule(),
        port in 0..20_u16,
        dscp in 0..4_u8,
        vlan in prop::option::of(0..3_u8),
    ) {
        let headers = packet(port, dscp, vlan);
        let before = classify(&rules(list.clone()), headers);
        let after = classify(&rules(list.into_iter().chain([last.clone()])), headers);
        if before == Verdict::Kernel {
            let alone = classify(&rules([last]), headers);
            prop_assert_eq!(after, alone);
        } else {
            prop_assert_eq!(after, before);
        }
    }

    #[test]
    fn rules_of_a_class_that_are_taken_away_leave_the_others_as_they_were(
        list in prop::collection::vec(rule(), 0..10),
        port in 0..20_u16,
        dscp in 0..4_u8,
    ) {
        let headers = packet(port, dscp, None);
        let mut rules_left = rules(list.clone());
        rules_left.remove_class(CLASS[0]);
        let others = rules(list.into_iter().filter(|rule| rule.class != CLASS[0]));
        prop_assert_eq!(classify(&rules_left, headers), classify(&others, headers));
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let ports =
        prop::option::of((1..20_u16, 0..10_u16).prop_map(|(port, more)| port..=port + more));
    let other = (prop::option::of(0..4_u8), prop::option::of(0..3_u8));
    (0..3_usize, any::<bool>(), ports, other).prop_map(
        |(class, to_host, ports, (dscp, vlan_priority))| Rule {
            class: CLASS[class],
            to: to_host.then_some(HOST),
            ports,
            dscp,
            vlan_priority,
        },
    )
}

fn rules(list: impl IntoIterator<Item = Rule>) -> Rules {
    let mut rules = Rules::new();
    for rule in list {
        rules.add(rule).expect("it can match");
    }
    rules
}

fn classify(rules: &Rules, headers: Headers) -> Verdict {
    rules.classify(&headers, HARDWARE, &[(HOST, 24)])
}

fn packet(port: u16, dscp: u8, vlan: Option<u8>) -> Headers {
    let ethernet = Ethernet {
        to: HARDWARE,
        from: [0; 6],
        vlan: vlan.map(|priority| Vlan {
            priority,
            may_drop: false,
            id: 1,
        }),
        kind: Ethernet::IPV4,
    };
    let tcp = Tcp {
        from: 1,
        to: port,
        sequence: 0,
        acknowledgement: 0,
        flags: Flags::default(),
        payload: 54,
    };
    Headers {
        ethernet,
        network: 14,
        transport: 34,
        end: 54,
        from: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
        to: HOST,
        dscp,
        is_fragment: false,
        tcp: Some(tcp),
    }
}

const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLASS: [ClassId; 3] = [ClassId(0), ClassId(1), ClassId(2)];
