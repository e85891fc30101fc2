//! Admission: plans that are admitted, and refusals and warnings of the others.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[test]
fn what_fits_is_admitted_with_what_it_takes() {
    let admission = admit(
        &interface(),
        &[
            periodic("video", 70, 10, 8, 100),
            periodic("audio", 80, 5, 2, 100),
        ],
    );
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    assert_eq!(admission.warnings, []);
    let [audio, video] = &admission.classes[..] else {
        panic!("both are there, {admission:?}");
    };
    assert_eq!(audio.reservation.name, "audio", "the most urgent one first");
    // 200 us, behind a packet of video; 800 us behind 200 us.
    assert_eq!(audio.response, Some(micros(300)));
    assert_eq!(video.response, Some(micros(1000)));
    assert_eq!(video.utilisation, Some(0.08));
    // 8 packets of 1500 octets and 42 around each, in 10 ms.
    assert_eq!(video.rate, Some(8 * 1542 * 8 * 100));
    assert_eq!(video.octets, Some(8 * 1500 * 100));
    assert_eq!(
        admission.reserved(),
        2 * 1542 * 8 * 200 + 8 * 1542 * 8 * 100
    );
}

#[test]
fn the_classes_of_the_papers_bandwidth_experiment_are_admitted_on_their_network() {
    let interface = Interface {
        rate: Some(155_000_000),
        mtu: 8040,
        ..interface()
    };
    let class = |name, priority, budget| Reservation {
        packet: Some(8040),
        buffer: 1 << 17,
        ..periodic(name, priority, 10, budget, 50)
    };
    let share = interface.cap(0.4, 8040, None);
    let rest = Reservation {
        processing: Processing::OnDemand { cap: share },
        ..Reservation::default()
    };
    let classes = [
        class("a", 90, 8),
        class("b", 85, 4),
        class("c", 81, 2),
        rest,
    ];
    let admission = admit(&interface, &classes);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    // 14 packets of 8082 octets in 10 ms; 62 Mbit/s more are 2.5 Mbit/s less than what is left.
    assert_eq!(admission.reserved(), 14 * 8082 * 8 * 100);
    let rate = admission.classes[3].rate.expect("it has a cap");
    assert!((61_999_000..=62_001_000).contains(&rate), "{rate}");
}

#[test]
fn a_class_that_is_late_is_told_how_late_and_what_would_fit() {
    let classes = [
        periodic("a", 80, 10, 5, 1000),
        periodic("b", 70, 20, 11, 1000),
    ];
    let admission = admit(&interface_without_rate(), &classes);
    let refusals: Vec<_> = admission.refusals.iter().map(ToString::to_string).collect();
    assert_eq!(
        refusals,
        [
            "class \"b\": a processor is taken to 105.0 %, 10.0 % more than the 95 % that real \
            time has: 9 packets in each period would fit",
            "class \"b\": its work takes at least 21ms with what comes before it, 1ms more than \
            its period of 20ms: 10 packets in each period would fit",
        ]
    );
}

#[test]
fn classes_of_different_processors_do_not_meet() {
    let on = |cpu, class| Reservation {
        cpu: Some(cpu),
        ..class
    };
    let classes = [
        on(0, periodic("a", 80, 10, 9, 1000)),
        on(1, periodic("b", 70, 10, 9, 1000)),
    ];
    let admission = admit(&interface_without_rate(), &classes);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    assert_eq!(admission.classes[1].response, Some(micros(9000)));
    let third = periodic("c", 60, 100, 9, 1000);
    let [a, b] = classes;
    let admission = admit(&interface_without_rate(), &[a, b, third]);
    let why: Vec<_> = admission
        .refusals
        .iter()
        .map(|it| (it.class.as_str(), &it.why))
        .collect();
    assert!(
        matches!(
            why[..],
            [(
                "c",
                Why::Overload {
                    cpu: None,
                    fits: 5,
                    ..
                }
            )]
        ),
        "{why:?}"
    );
}

#[test]
fn a_class_that_may_run_anywhere_gets_the_better_processor() {
    let on = |cpu, class| Reservation {
        cpu: Some(cpu),
        ..class
    };
    let classes = [
        on(0, periodic("full", 80, 10, 9, 1000)),
        on(1, periodic("free", 80, 10, 1, 1000)),
        periodic("any", 70, 10, 2, 1000),
    ];
    let admission = admit(&interface_without_rate(), &classes);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    assert_eq!(admission.classes[2].response, Some(micros(3000)));
}

#[test]
fn what_nothing_bounds_may_not_come_before_what_has_a_promise() {
    let flood = Reservation {
        name: "flood".to_owned(),
        policy: Policy::Fifo,
        priority: 90,
        processing: Processing::OnArrival,
        cost: Some(micros(10)),
        ..Reservation::default()
    };
    let video = periodic("video", 70, 10, 8, 100);
    let admission = admit(&interface(), &[video.clone(), flood.clone()]);
    assert_eq!(
        admission
            .refusals
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [
            "class \"flood\": its packets are processed on arrival without end, and class \
            \"video\" waits as long: give it expected packets, or a native priority below 70"
        ]
    );
    let below = Reservation {
        priority: 69,
        ..flood.clone()
    };
    assert!(admit(&interface(), &[video.clone(), below]).is_admitted());
    let expected = Cap {
        packets: 10,
        period: Duration::from_millis(5),
    };
    let promised = Reservation {
        expected: Some(expected),
        ..flood
    };
    let admission = admit(&interface(), &[video, promised]);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    // The work may come at any time: twice in succession, at the end of one period and at the start
    // of the next.
    assert_eq!(admission.classes[1].response, Some(micros(1000)));
}

#[test]
fn deadlines_come_before_all_priorities_and_are_kept_by_their_share() {
    let deadline = |name, budget| Reservation {
        policy: Policy::Deadline,
        priority: 0,
        ..periodic(name, 0, 10, budget, 1000)
    };
    let classes = [periodic("fixed", 98, 20, 1, 1000), deadline("own", 3)];
    let admission = admit(&interface_without_rate(), &classes);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    assert_eq!(
        admission.classes[0].response,
        Some(Duration::from_millis(10))
    );
    assert_eq!(
        admission.classes[1].response,
        Some(micros(7000)),
        "behind two in a row"
    );
    let admission = admit(
        &interface_without_rate(),
        &[deadline("a", 5), deadline("b", 5)],
    );
    let [
        Refusal {
            class,
            why: Why::Overload { fits: 4, .. },
        },
        ..,
    ] = &admission.refusals[..]
    else {
        panic!("{:?}", admission.refusals);
    };
    assert_eq!(class, "b");
}

#[test]
fn more_than_the_network_carries_is_refused_from_the_least_urgent_on() {
    let interface = Interface {
        rate: Some(10_000_000),
        ..interface()
    };
    let classes = [
        periodic("low", 60, 10, 8, 1),
        periodic("high", 70, 10, 4, 1),
    ];
    let admission = admit(&interface, &classes);
    assert_eq!(
        admission
            .refusals
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [
            "class \"low\": it wants 9.87 Mbit/s of the network, 4.80 Mbit/s more than the 5.07 \
            Mbit/s that are left: 4 packets in each period would fit"
        ]
    );
}

#[test]
fn a_queue_shorter_than_the_windows_is_refused() {
    let class = Reservation {
        queue: 256,
        ..periodic("video", 70, 10, 8, 1)
    };
    let admission = admit(&interface(), &[class]);
    assert_eq!(
        admission
            .refusals
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [
            "class \"video\": its 8 connections with 65536 octets of buffer each can have 368 \
            frames under way, 112 more than its queue of 256 holds: give it queue = 512, fewer \
            connections or smaller buffers"
        ]
    );
}

#[test]
fn a_short_queue_that_is_emptied_as_packets_come_is_told() {
    let class = Reservation {
        queue: 367,
        ..Reservation::default()
    };
    let admission = admit(&interface(), &[class]);
    assert!(admission.is_admitted());
    let told = admission.warnings[0].to_string();
    assert_eq!(
        told,
        "class \"best-effort\" can have 368 frames under way, and its queue holds 367: packets are \
        lost if its thread is late"
    );
}

#[test]
fn what_may_not_be_meant_so_is_told() {
    let interface = Interface {
        rate: Some(20_000_000),
        ..interface()
    };
    let video = Reservation {
        connections: 1,
        buffer: 4096,
        ports: vec![2000..=2999],
        ..periodic("video", 80, 10, 8, 100)
    };
    let audio = Reservation {
        ports: vec![2809..=2809],
        ..periodic("audio", 70, 5, 1, 100)
    };
    let rest = Reservation {
        processing: Processing::OnDemand {
            cap: interface.cap(0.9, 1500, None),
        },
        ..Reservation::default()
    };
    let admission = admit(&interface, &[video, audio, rest]);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    let warnings: Vec<_> = admission.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "class \"best-effort\" may have 18.00 Mbit/s, and reservations leave 7.66 Mbit/s: \
            nothing is promised to it",
            "class \"video\" has 4096 octets of windows, less than the 12000 of its budget: it \
            will not get all of it",
            "the cost of a packet is not known of best-effort: processor time is not looked at \
            where these come in",
            "class \"video\" has a longer period than class \"audio\" and a higher priority: the \
            other way round more would fit (rate-monotonic order)",
            "class \"audio\" gets no packet by its rules: all of them are of class \"video\", \
            which is before it",
        ]
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_counted() {
    let class = |change: fn(&mut Reservation)| {
        let mut class = periodic("x", 50, 10, 1, 1);
        change(&mut class);
        let admission = admit(&interface(), &[class]);
        assert!(admission.classes.is_empty());
        match admission
            .refusals
            .into_iter()
            .next()
            .expect("it is refused")
            .why
        {
            Why::Impossible(error) => error.to_string(),
            other => other.to_string(),
        }
    };
    let wrong = [
        class(|it| it.priority = 99),
        class(|it| it.policy = Policy::Other),
        class(|it| {
            it.processing = Processing::Periodic {
                period: micros(10),
                budget: 1,
            }
        }),
        class(|it| {
            it.processing = Processing::Periodic {
                period: micros(100),
                budget: 0,
            }
        }),
        class(|it| it.packet = Some(1501)),
        class(|it| it.dscp = Some(64)),
        class(|it| it.connections = 0),
        class(|it| {
            it.processing = Processing::OnArrival;
            it.output = Output::Scheduled;
        }),
        class(|it| {
            it.policy = Policy::Deadline;
            it.priority = 0;
            it.cpu = Some(1);
        }),
    ];
    assert_eq!(
        wrong,
        [
            "policy fifo has no native priority 99: fifo and rr have 1 to 98, others only 0",
            "policy other has no native priority 50: fifo and rr have 1 to 98, others only 0",
            "a period of 10µs is not of 100µs to 10s",
            "a budget or cap of 0 packets processes nothing: 1 is the least",
            "packets of 1501 octets are 1 longer than the interface carries: at most 1500",
            "the code point (dscp) 64 is not of 0 to 63",
            "connections is 0, which is not of 1 to 1073741824",
            "output is scheduled, and processing on arrival has no thread of its own for it: it \
            has to be direct",
            "policy deadline goes with no cpu: the kernel lets such threads run on all of them",
        ]
    );
    let twice = [periodic("x", 50, 10, 1, 1), periodic("x", 51, 10, 1, 1)];
    assert_eq!(admit(&interface(), &twice).refusals[0].why, Why::SameName);
    let many: Vec<_> = (0..33)
        .map(|n| periodic(&n.to_string(), 50, 10, 1, 1))
        .collect();
    assert_eq!(
        admit(&interface(), &many).refusals[0].why,
        Why::TooManyClasses
    );
    let scattered = Reservation {
        ports: (1..=129).map(|port| 2 * port..=2 * port).collect(),
        ..Reservation::default()
    };
    assert_eq!(
        admit(&interface(), &[scattered]).refusals[0].why,
        Why::TooManyRules
    );
}

#[test]
fn a_class_has_rules_where_it_says_what_its_packets_are() {
    let class = crate::class::ClassId::new(1).expect("there is");
    let rules = |reservation: &Reservation| reservation.rules(class, None).collect::<Vec<_>>();
    assert_eq!(rules(&Reservation::default()), []);
    let marked = Reservation {
        dscp: Some(46),
        ..Reservation::default()
    };
    assert_eq!(
        rules(&marked),
        [crate::class::Rule {
            dscp: Some(46),
            ..crate::class::Rule::all(class)
        }]
    );
    let ports = Reservation {
        ports: vec![1..=2, 5..=5],
        ..marked
    };
    let found: Vec<_> = rules(&ports)
        .into_iter()
        .map(|rule| (rule.ports, rule.dscp))
        .collect();
    assert_eq!(found, [(Some(1..=2), Some(46)), (Some(5..=5), Some(46))]);
}

#[test]
fn a_share_that_is_just_the_limit_fits() {
    // 9 * 137 / 9000 + 132 * 271 / 44000 = 0.137 + 0.813 = 0.95.
    let first = periodic("high", 80, 9, 9, 137);
    let fits = |budget| {
        let second = periodic("low", 70, 44, budget, 271);
        admit(&interface_without_rate(), &[first.clone(), second])
    };
    assert_eq!(fits(132).refusals, []);
    let refused = fits(154).refusals.remove(0);
    assert!(
        matches!(refused.why, Why::Overload { fits: 132, .. }),
        "{refused}"
    );
}

proptest! {
    #[test]
    fn what_would_fit_fits_and_a_packet_more_does_not(
        high in (1..40_u32, 1..400_u64, 1..50_u64),
        low in (1..400_u32, 1..400_u64, 1..50_u64),
    ) {
        let class = |name, priority, (budget, cost, period)| {
            periodic(name, priority, period, budget, cost)
        };
        let first = class("high", 80, high);
        let interface = Interface { rate: Some(50_000_000), ..interface() };
        let second = class("low", 70, low);
        let admission = admit(&interface, &[first.clone(), second.clone()]);
        prop_assume!(admission.refusals.iter().all(|it| it.class == "low"));
        let fits = admission.refusals.iter().map(|it| match it.why {
            Why::Late { fits, .. } | Why::Overload { fits, .. } | Why::Network { fits, .. } => fits,
            _ => panic!("{it}"),
        });
        let Some(least) = fits.min() else {
            return Ok(());
        };
        let with = |budget| {
            let processing = Processing::Periodic { period: Duration::from_millis(low.2), budget };
            let second = Reservation { processing, ..second.clone() };
            admit(&interface, &[first.clone(), second]).is_admitted()
        };
        prop_assert!(least == 0 || with(least), "{} of {:?}", least, admission.refusals);
        prop_assert!(!with(least + 1), "one more than {}", least);
    }

    #[test]
    fn any_plan_is_looked_at_without_a_panic(
        classes in prop::collection::vec(
            (
                0..4_u8,
                0..110_u8,
                0..4_u8,
                any::<u32>(),
                any::<u64>(),
                any::<Option<u64>>(),
                prop::option::of(0..3_usize),
            ),
            0..6,
        ),
        mtu in any::<u32>(),
        rate in any::<Option<u64>>(),
    ) {
        const POLICIES: [Policy; 4] =
            [Policy::Fifo, Policy::RoundRobin, Policy::Deadline, Policy::Other];
        let classes: Vec<_> = classes.into_iter().enumerate().map(|(n, class)| {
            let (policy, priority, mode, packets, period, cost, cpu) = class;
            let period = Duration::from_nanos(period % 5_000_000_000_000);
            Reservation {
                name: n.to_string(),
                policy: POLICIES[usize::from(policy)],
                priority: if policy < 2 { priority } else { 0 },
                processing: match mode {
                    0 => Processing::OnArrival,
                    1 => Processing::OnDemand { cap: None },
                    2 => Processing::OnDemand { cap: Some(Cap { packets, period }) },
                    _ => Processing::Periodic { period, budget: packets },
                },
                cost: cost.map(Duration::from_nanos),
                cpu: cpu.filter(|_| policy != 2),
                ..Reservation::default()
            }
        }).collect();
        let interface = Interface { rate, mtu: mtu as usize, ..interface() };
        let admission = admit(&interface, &classes);
        for refusal in &admission.refusals {
            prop_assert!(!refusal.to_string().is_empty());
        }
        for warning in &admission.warnings {
            prop_assert!(!warning.to_string().is_empty());
        }
    }
}

fn interface() -> Interface {
    Interface {
        name: "eth7".to_owned(),
        rate: Some(100_000_000),
        mtu: 1500,
        driver: DriverKind::Auto,
    }
}

/// Returns an interface of unknown rate.
fn interface_without_rate() -> Interface {
    Interface {
        rate: Some(u64::MAX),
        ..interface()
    }
}

/// Returns a class with a period in milliseconds and the cost of a packet in microseconds.
fn periodic(name: &str, priority: u8, period: u64, budget: u32, cost: u64) -> Reservation {
    Reservation {
        name: name.to_owned(),
        policy: Policy::Fifo,
        priority,
        processing: Processing::Periodic {
            period: Duration::from_millis(period),
            budget,
        },
        cost: Some(micros(cost)),
        ..Reservation::default()
    }
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
