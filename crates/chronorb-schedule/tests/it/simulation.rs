//! Schedules in virtual time, as the ORB executes them.

use chronorb_schedule::{
    LaneOrder, Numbers, Schedule, SimulationOutcome, SimulationRun, Time, Work,
};

use crate::schedule;

const MILLI: Time = 1_000_000;

/// Simulates a run with the numbers of the assignment.
fn simulated(it: &Schedule, run: &SimulationRun) -> SimulationOutcome {
    let numbers = it.assign().expect("it is analysed").numbers(it);
    it.simulate(&numbers, run).expect("it is simulated")
}

/// Returns the longest response of an operation of all activities.
fn longest(it: &Schedule, outcome: &SimulationOutcome, name: &str) -> Time {
    let operation = it.operation(name).expect("it is declared");
    let works = outcome.activities.iter().flat_map(|it| &it.works);
    let own = works.filter(|it| it.work == Work::Execution { operation });
    own.map(|it| it.longest).max().expect("it is executed")
}

/// Of a one-way call to a more urgent operation: 15.19 ms on average with the ORB.
#[test]
fn a_more_urgent_oneway_call_delays_its_caller() {
    let it = schedule(
        r#"
        [[operation]]
        name = "A::run"
        wcet = "5 ms"
        period = "100 ms"
        deadline = "6 ms"
        priority = 10
        calls = [{ operation = "B::push", oneway = true, before = "1 ms" }]
        [[operation]]
        name = "B::push"
        wcet = "10 ms"
        deadline = "50 ms"
        priority = 20
    "#,
    );
    let outcome = simulated(&it, &SimulationRun::synchronous(&it, 1_000 * MILLI));
    assert_eq!(longest(&it, &outcome, "A::run"), 15 * MILLI);
    assert_eq!(longest(&it, &outcome, "B::push"), 11 * MILLI);
    assert_eq!((outcome.counted(), outcome.missed()), (10, 10));
}

/// Three callers of an operation that waits 20 ms, and a fast one of its lane. With the ORB `ping`
/// took at most 63.7, 41.6, 23.0 and 4.9 ms.
#[test]
fn a_thread_that_waits_for_a_call_serves_nothing_else() {
    let mut text = r#"
        [[node]]
        name = "server"
        [[node]]
        name = "disk"
        [[operation]]
        name = "Store::save"
        node = "server"
        wcet = "1 ms"
        calls = [{ operation = "Disk::write", before = "500 us" }]
        [[operation]]
        name = "Store::ping"
        node = "server"
        wcet = "1 ms"
        [[operation]]
        name = "Disk::write"
        node = "disk"
        wcet = "20 ms"
    "#
    .to_owned();
    for (client, period, called) in [
        ("C1::run", 200, "Store::save"),
        ("C2::run", 200, "Store::save"),
        ("C3::run", 200, "Store::save"),
        ("C4::fast", 20, "Store::ping"),
    ] {
        let node = &client[..2];
        text += &format!(
            "[[node]]\nname = \"{node}\"\n[[operation]]\nname = \"{client}\"\nnode = \"{node}\"\n\
             wcet = \"1 ms\"\nperiod = \"{period} ms\"\n\
             calls = [{{ operation = \"{called}\", before = \"500 us\" }}]\n"
        );
    }
    let it = schedule(&text);
    let assigned = it.assign().expect("it is analysed").numbers(&it);
    let lane = assigned.lane_of[it.operation("Store::ping").expect("it is declared")];
    assert_eq!(lane, assigned.lane_of[0], "one lane serves both");
    let runs = [SimulationRun::synchronous(&it, 1_000 * MILLI)];
    let random = (0..100).map(|seed| SimulationRun::random(seed, 1_000 * MILLI));
    let runs: Vec<_> = runs.into_iter().chain(random).collect();
    for (threads, expected) in [(1, 65_000), (2, 43_000), (3, 23_000), (4, 3_500)] {
        let mut numbers = assigned.clone();
        numbers.lanes[lane].threads = threads;
        let times = runs.iter().map(|run| {
            let outcome = it.simulate(&numbers, run).expect("it is simulated");
            longest(&it, &outcome, "C4::fast")
        });
        assert_eq!(times.max(), Some(expected * 1_000), "{threads} threads");
    }
}

#[test]
fn the_jobs_of_one_thread_wait_for_each_other() {
    let it = schedule(
        r#"
        [[node]]
        name = "client"
        [[node]]
        name = "s1"
        [[node]]
        name = "s2"
        [[operation]]
        name = "Client::loop"
        node = "client"
        wcet = "2 ms"
        period = "10 ms"
        deadline = "100 ms"
        calls = ["S1::x", "S2::y"]
        [[operation]]
        name = "S1::x"
        node = "s1"
        wcet = "8 ms"
        [[operation]]
        name = "S2::y"
        node = "s2"
        wcet = "8 ms"
    "#,
    );
    let mut numbers = it.assign().expect("it is analysed").numbers(&it);
    let run = SimulationRun::synchronous(&it, 1_000 * MILLI);
    let outcome = it.simulate(&numbers, &run).expect("it is simulated");
    // Each job takes 18 ms, so the 55th one has waited for 54 times 8 ms.
    assert!(longest(&it, &outcome, "Client::loop") >= 450 * MILLI);
    assert!(outcome.missed() > 0);
    numbers.threads[0] = 2;
    let outcome = it.simulate(&numbers, &run).expect("it is simulated");
    assert_eq!(longest(&it, &outcome, "Client::loop"), 18 * MILLI);
}

#[test]
fn messages_are_packets_by_priority_with_headers() {
    let it = schedule(
        r#"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "lan"
        rate = "100 Mbit"
        [[operation]]
        name = "A::big"
        node = "a"
        wcet = "1 us"
        period = "100 ms"
        priority = 1
        calls = { operation = "B::big", oneway = true, before = "1 us", request = 100_000 }
        [[operation]]
        name = "A::small"
        node = "a"
        wcet = "1 us"
        period = "500 us"
        priority = 9
        calls = { operation = "B::small", oneway = true, before = "1 us", request = 1_400 }
        [[operation]]
        name = "B::big"
        node = "b"
        wcet = "1 us"
        deadline = "10 ms"
        priority = 1
        [[operation]]
        name = "B::small"
        node = "b"
        wcet = "1 us"
        priority = 9
    "#,
    );
    let outcome = simulated(&it, &SimulationRun::synchronous(&it, 200 * MILLI));
    // 70 packets of 1,542 octets on the wire and one of 154, and 23 times one of 1,514.
    let on_wire = 70 * 123_360 + 12_320 + 23 * 121_120;
    let big = longest(&it, &outcome, "B::big");
    assert!((on_wire..on_wire + 10_000).contains(&big), "{big}");
    // At most one packet comes before.
    let small = longest(&it, &outcome, "B::small");
    assert!(
        (121_120..121_120 + 123_360 + 10_000).contains(&small),
        "{small}"
    );
}

/// A node sends while it receives, and another node sends at the same time.
#[test]
fn the_directions_of_a_link_are_apart() {
    let it = schedule(
        r#"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "lan"
        [[operation]]
        name = "A::run"
        node = "a"
        wcet = "1 us"
        period = "100 ms"
        calls = { operation = "B::serve", before = "1 us", request = "5 ms", reply = "1 us" }
        [[operation]]
        name = "B::serve"
        node = "b"
        wcet = "1 us"
        [[operation]]
        name = "B::run"
        node = "b"
        wcet = "1 us"
        period = "100 ms"
        calls = { operation = "A::serve", before = "1 us", request = "5 ms", reply = "1 us" }
        [[operation]]
        name = "A::serve"
        node = "a"
        wcet = "1 us"
    "#,
    );
    let outcome = simulated(&it, &SimulationRun::synchronous(&it, 100 * MILLI));
    for name in ["A::run", "B::run"] {
        let time = longest(&it, &outcome, name);
        assert!((5 * MILLI..6 * MILLI).contains(&time), "{name}: {time}");
    }
}

/// Declares two operations of one lock. In the simulation the section is as long as `held`.
fn locked(text: &str, operation: &str, held: Time) -> Schedule {
    let mut it = schedule(text);
    let operation = it.operation(operation).expect("it is declared");
    it.operations[operation].locks[0].time = held;
    it
}

#[test]
fn a_section_that_fits_into_no_piece_is_held_over_a_call() {
    // The reader may refuse such a file.
    let it = locked(
        r#"
        [[node]]
        name = "near"
        [[node]]
        name = "far"
        [[processor]]
        name = "p"
        node = "near"
        cpu = 0
        [[operation]]
        name = "A::low"
        node = "near"
        wcet = "2 ms"
        period = "200 ms"
        priority = 1
        locks = { m = "1 ms" }
        calls = [{ operation = "R::far", before = "1 ms" }]
        [[operation]]
        name = "R::far"
        node = "far"
        wcet = "30 ms"
        priority = 1
        [[operation]]
        name = "A::high"
        node = "near"
        wcet = "1 ms"
        period = "200 ms"
        deadline = "5 ms"
        priority = 2
        locks = { m = "500 us" }
    "#,
        "A::low",
        1_500_000,
    );
    let run = SimulationRun {
        first: vec![0, 100_000],
        ..SimulationRun::synchronous(&it, 200 * MILLI)
    };
    let outcome = simulated(&it, &run);
    // The section ends at 31.5 ms.
    assert_eq!(longest(&it, &outcome, "A::high"), 32_400_000);
}

/// Work outside of the file, and a lock of a less urgent operation that inherits.
#[test]
fn work_outside_of_the_file_and_a_lock_add_up_by_inheritance() {
    for (locks, expected) in [("inheritance", 11 * MILLI - 2), ("ceiling", 6 * MILLI - 2)] {
        let text = r#"
            [scheduling]
            locks = "LOCKS"
            [[processor]]
            name = "p"
            cpu = 0
            blocking = "5 ms"
            [[operation]]
            name = "H::h"
            wcet = "1 ms"
            period = "100 ms"
            deadline = "8 ms"
            priority = 2
            locks = { m = "100 us" }
            [[operation]]
            name = "L::l"
            wcet = "6 ms"
            period = "100 ms"
            priority = 1
            locks = { m = "5 ms" }
        "#;
        let it = schedule(&text.replace("LOCKS", locks));
        let run = SimulationRun {
            first: vec![2, 0],
            outside: Some(1),
            ..SimulationRun::synchronous(&it, 100 * MILLI)
        };
        let outcome = simulated(&it, &run);
        assert_eq!(longest(&it, &outcome, "H::h"), expected, "{locks}");
    }
}

#[test]
fn requests_wait_in_the_order_of_their_lane() {
    let text = r#"
        [[processor]]
        name = "p"
        cpu = 0
        [[lane]]
        name = "all"
        processor = "p"
        threads = 1
        order = "ORDER"
        [[operation]]
        name = "A::first"
        lane = "all"
        wcet = "3 ms"
        period = "100 ms"
        [[operation]]
        name = "A::late"
        lane = "all"
        wcet = "2 ms"
        period = "100 ms"
        deadline = "50 ms"
        [[operation]]
        name = "A::soon"
        lane = "all"
        wcet = "1 ms"
        period = "100 ms"
        deadline = "10 ms"
        importance = 1
    "#;
    for (order, late, soon) in [
        (LaneOrder::Fifo, 5, 6),
        (LaneOrder::Deadline, 6, 4),
        (LaneOrder::Laxity, 6, 4),
        (LaneOrder::Urgency, 6, 4),
    ] {
        let it = schedule(&text.replace("ORDER", order.name()));
        let outcome = simulated(&it, &SimulationRun::synchronous(&it, 100 * MILLI));
        let times = ["A::late", "A::soon"].map(|name| longest(&it, &outcome, name) / MILLI);
        assert_eq!(times, [late, soon], "{}", order.name());
    }
}

#[test]
fn steps_of_a_transaction_follow_each_other() {
    let it = schedule(
        r#"
        [[node]]
        name = "a"
        overhead = "100 us"
        [[node]]
        name = "b"
        [[link]]
        name = "lan"
        [[operation]]
        name = "A::read"
        node = "a"
        wcet = "1 ms"
        [[operation]]
        name = "B::write"
        node = "b"
        wcet = "1 ms"
        [[transaction]]
        name = "copy"
        period = "10 ms"
        deadline = "6 ms"
        jitter = "1 ms"
        steps = ["A::read", { link = "lan", message = "2 ms" }, "B::write"]
    "#,
    );
    let run = SimulationRun {
        first: vec![0],
        record: true,
        ..SimulationRun::synchronous(&it, 10 * MILLI)
    };
    let outcome = simulated(&it, &run);
    let copy = &outcome.activities[0];
    let works: Vec<_> = copy.works.iter().map(|it| (it.work, it.longest)).collect();
    assert_eq!(
        works,
        [
            (Work::Execution { operation: 0 }, 2_100_000),
            (Work::Message { step: 1 }, 4_100_000),
            (Work::Execution { operation: 1 }, 5_100_000),
        ]
    );
    assert_eq!((copy.jobs, outcome.missed()), (1, 0));
    let slices = outcome.slices.iter().map(|it| (it.start, it.end));
    let expected = [
        (1_000_000, 2_100_000),
        (2_100_000, 4_100_000),
        (4_100_000, 5_100_000),
    ];
    assert_eq!(slices.collect::<Vec<_>>(), expected);
}

/// A job that never ends is missed, and its time so far is a response.
#[test]
fn unfinished_jobs_are_counted() {
    let it = schedule(
        r#"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[lane]]
        name = "one"
        node = "a"
        [[operation]]
        name = "A::run"
        node = "b"
        wcet = "1 ms"
        period = "100 ms"
        calls = "A::outer"
        [[operation]]
        name = "A::outer"
        lane = "one"
        wcet = "1 ms"
        calls = "B::middle"
        [[operation]]
        name = "B::middle"
        node = "b"
        wcet = "1 ms"
        calls = "A::inner"
        [[operation]]
        name = "A::inner"
        lane = "one"
        wcet = "1 ms"
    "#,
    );
    let numbers = Numbers {
        priorities: vec![1; 4],
        lane_of: vec![0, 1, 2, 1],
        threads: vec![1; 4],
        lanes: vec![
            chronorb_schedule::LaneNumbers {
                threads: 1,
                order: LaneOrder::Fifo
            };
            3
        ],
    };
    let run = SimulationRun::synchronous(&it, 300 * MILLI);
    let outcome = it.simulate(&numbers, &run).expect("it is simulated");
    // The only thread of the lane waits for a request that waits for it.
    assert_eq!(longest(&it, &outcome, "A::inner"), 300 * MILLI);
    assert_eq!((outcome.counted(), outcome.missed()), (3, 12));
}

/// Less urgent work goes on for the blocking of what becomes ready, if all operations between have
/// that, too.
#[test]
fn less_urgent_work_goes_on_for_the_blocking_of_an_operation() {
    let file = |high: &str, middle: &str| {
        schedule(&format!(
            r#"
            [scheduling]
            priorities = "declared"
            [[operation]]
            name = "A::low"
            wcet = "10 ms"
            period = "100 ms"
            priority = 1
            [[operation]]
            name = "A::middle"
            wcet = "1 ms"
            {middle}
            period = "100 ms"
            priority = 2
            [[operation]]
            name = "A::high"
            wcet = "1 ms"
            {high}
            period = "100 ms"
            priority = 3
        "#
        ))
    };
    let responses = |high: &str, middle: &str| {
        let it = file(high, middle);
        let analysis = it.assign().expect("it is analysed").analysis;
        let run = SimulationRun {
            first: vec![0, 5 * MILLI, 4 * MILLI],
            ..SimulationRun::synchronous(&it, 100 * MILLI)
        };
        let outcome = simulated(&it, &run);
        let names = ["A::low", "A::middle", "A::high"];
        let simulated = names.map(|name| longest(&it, &outcome, name) / MILLI);
        let analysed = analysis.operations.iter();
        let analysed = analysed.map(|it| it.response.time().map(|time| time / MILLI));
        (
            simulated,
            analysed.collect::<Option<Vec<_>>>().expect("bounds"),
        )
    };
    assert_eq!(responses("", ""), ([12, 1, 1], vec![12, 2, 1]));
    let high = "blocking = \"3 ms\"";
    assert_eq!(responses(high, ""), ([12, 1, 1], vec![12, 2, 4]));
    let middle = "blocking = \"2 ms\"";
    assert_eq!(responses(high, middle), ([12, 3, 3], vec![12, 4, 4]));
}
