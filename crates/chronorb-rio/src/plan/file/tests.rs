//! Parsing of plan files, and the positions of errors.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[test]
fn a_whole_plan_is_read() {
    let plan = parse(
        r#"
        [interface]
        name = "eth7"
        rate = "155 Mbit"
        mtu = 9000
        driver = "packet"

        [[class]]
        name = "control"
        priority = 24000
        policy = "rr"
        processing = "arrival"
        period = "10 ms"
        budget = 20
        packet = 1500
        cost = "12us"
        port = 2809
        dscp = 46
        vlan_priority = 5
        cpu = 1

        [[class]]
        name = "video"
        native = 70
        processing = "periodic"
        period = "10 ms"
        budget = 8
        packet = 8040
        ports = [4000, "4002-4009"]
        queue = 256
        connections = 2
        buffer = 131072
        output = "scheduled"

        [[class]]
        name = "rest"
        cap = "40 %"
        period = "100 ms"
        "#,
    )
    .expect("it is a plan");
    let interface = Interface {
        name: "eth7".to_owned(),
        rate: Some(155_000_000),
        mtu: 9000,
        driver: DriverKind::Packet,
    };
    assert_eq!(plan.interface, interface);
    let ten_ms = Duration::from_millis(10);
    let control = Reservation {
        name: "control".to_owned(),
        policy: Policy::RoundRobin,
        priority: 72,
        corba_priority: Some(24_000),
        processing: Processing::OnArrival,
        expected: Some(Cap {
            packets: 20,
            period: ten_ms,
        }),
        packet: Some(1500),
        cost: Some(Duration::from_micros(12)),
        ports: vec![2809..=2809],
        dscp: Some(46),
        vlan_priority: Some(5),
        cpu: Some(1),
        ..Reservation::default()
    };
    let video = Reservation {
        name: "video".to_owned(),
        policy: Policy::Fifo,
        priority: 70,
        processing: Processing::Periodic {
            period: ten_ms,
            budget: 8,
        },
        packet: Some(8040),
        ports: vec![4000..=4000, 4002..=4009],
        queue: 256,
        connections: 2,
        buffer: 131_072,
        output: Output::Scheduled,
        ..Reservation::default()
    };
    // 62 Mbit/s are 85.67 packets of 9042 octets in 100 ms.
    let cap = Cap {
        packets: 85,
        period: Duration::from_millis(100),
    };
    let rest = Reservation {
        name: "rest".to_owned(),
        processing: Processing::OnDemand { cap: Some(cap) },
        ..Reservation::default()
    };
    assert_eq!(plan.classes, [control, video, rest]);
    assert!(plan.admit().is_admitted(), "{:?}", plan.admit().refusals);
}

#[test]
fn a_plan_without_more_than_an_interface_is_one() {
    let plan = parse("interface.name = \"eth7\"").expect("it is a plan");
    assert_eq!((plan.interface.mtu, plan.interface.rate), (1500, None));
    assert_eq!(plan.classes, []);
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_may_be_there() {
    let errors = [
        error("[interface]\nname = \"eth7\"\nspeed = 7"),
        error("[interface]\nname = \"eth7\"\nrate = 100"),
        error("[interface]\nname = \"eth7\"\nrate = \"100 Mbyte\""),
        error("[interface]\nname = \"eth7\"\ndriver = \"dpdk\""),
        error("[interface\nname"),
        error("[[class]]\nname = \"x\""),
        class_error("prio = 7"),
        class_error("period = 10"),
        class_error("period = \"10 minutes\""),
        class_error("native = 300"),
        class_error("port = 0"),
        class_error("port = [1, \"9-7\"]"),
        class_error("cap = \"140 %\""),
        class_error("policy = \"fair\""),
        class_error("priority = -1"),
        class_error("priority = 1\nnative = 1"),
        class_error("processing = \"periodic\"\nperiod = \"1 ms\""),
        class_error("processing = \"periodic\"\nperiod = \"1 ms\"\nbudget = 1\ncap = 1"),
        class_error("processing = \"arrival\"\nbudget = 1"),
        class_error("processing = \"arrival\"\ncap = 1"),
        class_error("budget = 1"),
        class_error("period = \"1 ms\""),
        class_error("cap = 7"),
        class_error("cap = \"40 %\""),
        class_error("policy = \"fifo\""),
    ];
    let told = r#"
line 3, column 1: unknown field `speed`, expected one of `name`, `rate`, `mtu`, `driver`
line 3, column 8: invalid type: integer `100`, expected a rate such as "100 Mbit" or "2.5 Gbit", of at least a bit per second
line 3, column 8: "100 Mbyte" is not a rate such as "100 Mbit" or "2.5 Gbit", of at least a bit per second
line 3, column 10: unknown variant `dpdk`, expected one of `auto`, `xdp`, `packet`, `kernel`
line 1, column 11: unclosed table, expected `]`
line 1, column 1: missing field `interface`
line 4, column 1: unknown field `prio`, expected one of `name`, `priority`, `native`, `policy`, `processing`, `period`, `budget`, `cap`, `packet`, `cost`, `port`, `ports`, `dscp`, `vlan_priority`, `queue`, `connections`, `buffer`, `output`, `cpu`
line 4, column 10: invalid type: integer `10`, expected a time such as "50 us", "2 ms" or "1 s"
line 4, column 10: "10 minutes" is not a time such as "50 us", "2 ms" or "1 s"
line 4, column 10: invalid value: integer `300`, expected u8
line 4, column 8: a port is of 1 to 65535: a port, a range of ports such as "3000-3999", or an array of these
line 4, column 12: "9-7" is not a port, a range of ports such as "3000-3999", or an array of these
line 4, column 7: "140 %" is not a share of the interface such as "40 %", of at most 100 %, or a number of packets from 1 on
line 4, column 10: unknown variant `fair`, expected one of `fifo`, `rr`, `deadline`, `other`
line 2, column 1: class "x": it has priority -1, which is not of 0 to 32767, or has no native one
line 2, column 1: class "x": it has both priority and native: leave one of them out
line 2, column 1: class "x": it is periodic: give it both a period and a budget
line 2, column 1: class "x": it is periodic and has a cap: its budget is one
line 2, column 1: class "x": it is processed on arrival: give it both the period and the budget that its peers keep to, or neither
line 2, column 1: class "x": it is processed on arrival, where nothing can keep a cap: processing = "demand" does
line 2, column 1: class "x": it is processed on demand and has a budget: cap is what limits it, processing = "periodic" what gives it a budget
line 2, column 1: class "x": it has a period and no cap: give it one
line 2, column 1: class "x": it has a cap in packets and no period: give it one
line 2, column 1: class "x": it has a cap in percent, and the interface no rate: give it rate = "100 Mbit", or the cap in packets
line 2, column 1: class "x": policy fifo has no native priority 0: fifo and rr have 1 to 98, others only 0
"#;
    assert_eq!(errors.join("\n"), told.trim_matches('\n'));
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let error = Plan::read(Path::new("/no/such/plan.toml"), &to_native).expect_err("it is not");
    assert_eq!(error.line, 0);
    assert!(error.problem.contains("cannot be read"), "{error}");
}

#[test]
fn a_share_without_a_period_is_kept_exactly() {
    let plan = parse(
        "interface = { name = \"e\", rate = \"100 Mbit\" }\n\
        class = [{ name = \"x\", cap = \"33 %\" }]",
    );
    let plan = plan.expect("it is a plan");
    let rate = plan.admit().classes[0].rate.expect("it has a cap");
    assert!((32_999_000..=33_001_000).contains(&rate), "{rate}");
}

proptest! {
    #[test]
    fn any_text_is_a_plan_or_refused_with_a_place_in_it(
        text in "(\\[interface\\]|\\[\\[class\\]\\]|[a-z_]{1,9} ?= ?|[0-9]{1,12}|\
                 \"[0-9a-zA-Z %-]{0,9}\"|\n|[^a]){0,40}",
    ) {
        if let Err(error) = parse(&text) {
            prop_assert!((1..=text.matches('\n').count() + 1).contains(&error.line));
            prop_assert!(error.column >= 1);
        }
    }

    #[test]
    fn a_class_with_any_values_is_looked_at_without_a_panic(
        period in "[0-9]{1,20} ?(ns|us|ms|s)",
        rate in "[0-9]{1,15}(\\.[0-9]{1,3})? ?[kMG]?bit",
        cap in "[0-9]{1,3}(\\.[0-9]{1,9})? ?%",
        packet in any::<u32>(),
        is_periodic in any::<bool>(),
    ) {
        let given = if is_periodic {
            format!("processing = \"periodic\"\nbudget = {packet}")
        } else {
            format!("cap = \"{cap}\"")
        };
        let text = format!(
            "interface = {{ name = \"e\", rate = \"{rate}\", mtu = 4294967295 }}\n[[class]]\n\
            name = \"x\"\npacket = {packet}\nperiod = \"{period}\"\n{given}"
        );
        if let Ok(plan) = parse(&text) {
            plan.admit();
        }
    }
}

fn parse(text: &str) -> Result<Plan, PlanError> {
    Plan::parse(text, &to_native)
}

fn error(text: &str) -> String {
    parse(text).expect_err("it is no plan").to_string()
}

/// Returns the error of a class with these lines from line 4 on.
fn class_error(lines: &str) -> String {
    error(&format!(
        "interface.name = \"eth7\"\n[[class]]\nname = \"x\"\n{lines}\n"
    ))
}

/// As the linear mapping of an ORB.
fn to_native(corba: i16) -> Option<u8> {
    match corba {
        ..0 => None,
        0 => Some(0),
        corba => u8::try_from(1 + (i32::from(corba) - 1) * 98 / 32_767).ok(),
    }
}
