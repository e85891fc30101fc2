//! Files whose deadlines are missed by the ORB, or by a simulator of operations, lanes and threads
//! that shares no code with the analysis. The figures are those of such runs.

use chronorb_sched::Response;
use chronorb_schedule::{Assignment, FACTOR_UNIT, Schedule, ThreadOwner};

use crate::{millis, mistakes, schedule};

/// Whether the longest response of an operation is at least this.
fn takes_at_least(assignment: &Assignment, it: &Schedule, operation: &str, least: u64) -> bool {
    let operation = it.operation(operation).expect("it is declared");
    let response = assignment.analysis.operations[operation].response;
    response.time().is_none_or(|time| time >= least)
}

/// On the ORB the caller took 15.2 ms on average.
#[test]
fn a_more_urgent_operation_that_is_called_one_way_delays_the_rest_of_its_caller() {
    let it = schedule(
        r#"
        [scheduling]
        priorities = "declared"
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
    let analysis = it.assign().expect("it is analysed").analysis;
    assert!(!analysis.feasible);
    assert_eq!(analysis.operations[0].response, millis(15));
}

/// Three clients of an operation that waits 20 ms for another node, and a fast one of the lane.
fn few_threads(lane: &str) -> Schedule {
    let mut text = String::from("[scheduling]\npriorities = \"declared\"\n");
    for node in ["server", "disk", "c1", "c2", "c3", "c4"] {
        text += &format!("[[node]]\nname = \"{node}\"\n");
    }
    text += lane;
    let place = if lane.is_empty() {
        "node = \"server\""
    } else {
        "lane = \"all\""
    };
    for (name, place, cost, more) in [
        (
            "Store::save",
            place,
            "1 ms",
            "calls = [{ operation = \"Disk::write\", before = \"500 us\" }]",
        ),
        ("Store::ping", place, "1 ms", ""),
        ("Disk::write", "node = \"disk\"", "20 ms", ""),
    ] {
        text += &format!(
            "[[operation]]\nname = \"{name}\"\n{place}\nwcet = \"{cost}\"\npriority = 5\n{more}\n"
        );
    }
    for (client, period, called) in [
        ("c1", "200 ms", "Store::save"),
        ("c2", "200 ms", "Store::save"),
        ("c3", "200 ms", "Store::save"),
        ("c4", "20 ms", "Store::ping"),
    ] {
        text += &format!(
            "[[operation]]\nname = \"{client}::run\"\nnode = \"{client}\"\n\
             wcet = \"1 ms\"\npriority = 5\n\
             period = \"{period}\"\ncalls = [{{ operation = \"{called}\", before = \"500 us\" }}]\n"
        );
    }
    schedule(&text)
}

/// With two threads the fast client took 41.6 ms on the ORB and 43 ms in the simulator, with one
/// 63.7 and 65, with four 4.9 and 3.5.
#[test]
fn a_lane_gets_a_thread_for_each_request_that_can_wait_and_one_that_executes() {
    let it = few_threads("");
    let assignment = it.assign().expect("it is analysed");
    assert!(assignment.analysis.feasible);
    let lane = assignment
        .lanes
        .iter()
        .find(|lane| lane.operations.contains(&0));
    assert_eq!(lane.expect("it has one").threads, 4);
    for (threads, least) in [(1, 65_000_000), (2, 43_000_000), (3, 23_000_000)] {
        let lane = format!("[[lane]]\nname = \"all\"\nnode = \"server\"\nthreads = {threads}\n");
        let it = few_threads(&lane);
        let assignment = it.assign().expect("it is analysed");
        assert!(!assignment.analysis.feasible, "{threads}");
        assert!(
            takes_at_least(&assignment, &it, "c4::run", least),
            "{threads}"
        );
        let shortage = assignment.analysis.shortages[0];
        assert_eq!(
            (shortage.owner, shortage.needed),
            (ThreadOwner::Lane, Some(4))
        );
        let lane = assignment.lanes.iter().find(|lane| lane.name == "all");
        assert_eq!(
            lane.expect("it is declared").threads,
            threads,
            "it is what the file declares"
        );
    }
    let it = few_threads("[[lane]]\nname = \"all\"\nnode = \"server\"\nthreads = 7\n");
    let assignment = it.assign().expect("it is analysed");
    assert!(assignment.analysis.feasible);
    let lane = assignment.lanes.iter().find(|lane| lane.name == "all");
    assert_eq!(lane.expect("it is declared").threads, 7);
}

#[test]
fn requests_wait_for_the_only_thread_of_their_lane() {
    let text = |threads: u32| {
        format!(
            r#"
        [scheduling]
        priorities = "declared"
        [[node]]
        name = "server"
        [[node]]
        name = "far"
        [[lane]]
        name = "all"
        node = "server"
        threads = {threads}
        [[operation]]
        name = "A::waits"
        lane = "all"
        wcet = "1 ms"
        period = "200 ms"
        priority = 5
        calls = [{{ operation = "B::far", before = "500 us" }}]
        [[operation]]
        name = "A::quick"
        lane = "all"
        wcet = "1 ms"
        period = "200 ms"
        deadline = "10 ms"
        priority = 5
        [[operation]]
        name = "B::far"
        node = "far"
        wcet = "50 ms"
        priority = 5
    "#
        )
    };
    let it = schedule(&text(1));
    let assignment = it.assign().expect("it is analysed");
    assert!(!assignment.analysis.feasible);
    assert!(takes_at_least(&assignment, &it, "A::quick", 52_000_000));
    let enough = schedule(&text(2)).assign().expect("it is analysed");
    assert!(enough.analysis.feasible);
    assert_eq!(enough.analysis.operations[1].response, millis(2));
}

#[test]
fn an_activity_that_takes_longer_than_its_period_needs_threads() {
    let text = |threads: &str| {
        format!(
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
        {threads}
        calls = ["S1::x", "S2::y"]
        [[operation]]
        name = "S1::x"
        node = "s1"
        wcet = "8 ms"
        [[operation]]
        name = "S2::y"
        node = "s2"
        wcet = "8 ms"
    "#
        )
    };
    let one = schedule(&text(""))
        .assign()
        .expect("it is analysed")
        .analysis;
    assert!(!one.feasible);
    assert_eq!(one.operations[0].response.time(), None);
    let shortage = one.shortages[0];
    assert_eq!(
        (shortage.owner, shortage.operation),
        (ThreadOwner::Activity, 0)
    );
    assert_eq!((shortage.threads, shortage.needed), (1, Some(3)));
    let three = schedule(&text("threads = 3"))
        .assign()
        .expect("it is analysed");
    assert!(three.analysis.feasible);
    assert_eq!(three.analysis.shortages, []);
}

#[test]
fn a_lock_that_is_held_over_a_call_is_refused() {
    let text = |section: &str| {
        format!(
            r#"
        [[processor]]
        name = "cpu"
        cpu = 0
        [[operation]]
        name = "A::low"
        wcet = "2 ms"
        period = "1 s"
        locks = {{ m = "{section}" }}
        calls = [{{ operation = "R::far", before = "1 ms" }}]
        [[operation]]
        name = "R::far"
        wcet = "30 ms"
    "#
        )
    };
    schedule(&text("1 ms"));
    let found = mistakes(&text("1.5 ms"));
    assert!(
        found.contains("line 5, column 9: A::low holds the lock m for 1.5 ms"),
        "{found}"
    );
}

#[test]
fn keys_without_effect_are_refused() {
    let called = "[[operation]]\nname = \"A::called\"\nwcet = \"1 ms\"\nKEY\n[[operation]]\n\
                  name = \"A::client\"\nwcet = \"1 ms\"\nperiod = \"100 ms\"\n\
                  calls = \"A::called\"\n";
    for key in ["jitter = \"50 ms\"", "threads = 2"] {
        let found = mistakes(&called.replace("KEY", key));
        assert!(
            found.contains("is for an operation with a period"),
            "{found}"
        );
    }
}

#[test]
fn locks_need_a_processor_that_is_one_cpu() {
    let text = "[[operation]]\nname = \"A::a\"\nwcet = \"1 ms\"\nperiod = \"1 s\"\n\
                locks = { m = \"1 us\" }\n";
    let found = mistakes(text);
    assert!(found.contains("the processor local has no cpu"), "{found}");
}

/// Work outside of the file begins when a less urgent operation has just taken the lock.
#[test]
fn work_outside_of_the_file_and_a_lock_by_inheritance_delay_one_job() {
    for (locks, expected) in [("inheritance", 11), ("ceiling", 6)] {
        let text = format!(
            r#"
        [scheduling]
        priorities = "declared"
        locks = "{locks}"
        [[processor]]
        name = "cpu"
        cpu = 0
        blocking = "5 ms"
        [[operation]]
        name = "H::h"
        wcet = "1 ms"
        period = "100 ms"
        deadline = "8 ms"
        priority = 2
        locks = {{ m = "100 us" }}
        [[operation]]
        name = "L::l"
        wcet = "6 ms"
        period = "100 ms"
        priority = 1
        locks = {{ m = "5 ms" }}
    "#
        );
        let analysis = schedule(&text).assign().expect("it is analysed").analysis;
        assert_eq!(analysis.operations[0].response, millis(expected), "{locks}");
    }
}

/// A late operation is reported, whatever the number of levels.
#[test]
fn a_late_operation_is_reported_before_levels_are_counted() {
    let mut text = String::new();
    for number in 0..120 {
        text += &format!(
            "[[operation]]\nname = \"A::o{number}\"\nwcet = \"10 us\"\nperiod = \"{} ms\"\n",
            50 + number
        );
    }
    let late = "[[operation]]\nname = \"Late::op\"\nwcet = \"5 ms\"\nperiod = \"1 s\"\n\
                deadline = \"4 ms\"\n";
    let it = schedule(&(text.clone() + late));
    let analysis = it.assign().expect("it is analysed").analysis;
    assert!(!analysis.feasible);
    assert!(!analysis.operations[120].is_on_time());
    assert!(
        schedule(&text)
            .assign()
            .expect("it is analysed")
            .analysis
            .feasible
    );
}

/// The factor is found also for times that have no room for a finer unit in 64 bits.
#[test]
fn long_periods_have_room_too() {
    for period in ["20000 min", "100000 min", "10000000 min"] {
        let text =
            format!("[[operation]]\nname = \"A::a\"\nwcet = \"1 ms\"\nperiod = \"{period}\"\n");
        let it = schedule(&text);
        let ranks = it.assign().expect("it is analysed").band_ranks();
        let factor = it.greatest_factor(&ranks).expect("it is analysed");
        assert_eq!(factor, 100 * FACTOR_UNIT, "{period}");
    }
}

/// No other work delays the only operation, however long its jitter is.
#[test]
fn long_jitter_is_late_at_once_or_has_a_bound() {
    let text = |jitter: &str, deadline: &str| {
        format!(
            "[[operation]]\nname = \"A::a\"\nwcet = \"1 ms\"\nperiod = \"10 ms\"\n\
             jitter = \"{jitter}\"\ndeadline = \"{deadline}\"\n"
        )
    };
    for (jitter, deadline, fits) in [
        ("60 min", "10 ms", false),
        ("60 s", "10 ms", false),
        ("60 s", "61 s", true),
        ("60 min", "80 min", true),
    ] {
        let analysis = schedule(&text(jitter, deadline))
            .assign()
            .expect("it is analysed");
        assert_eq!(analysis.analysis.feasible, fits, "{jitter}, {deadline}");
        assert!(analysis.analysis.operations[0].response.time().is_some());
    }
}

#[test]
fn calls_that_are_nested_too_deep_are_said_to_be() {
    let mut text = "[[operation]]\nname = \"A::o0\"\nwcet = \"1 us\"\nperiod = \"1 s\"\n\
                    calls = \"A::o1\"\n"
        .to_owned();
    for number in 1..=201 {
        text += &format!("[[operation]]\nname = \"A::o{number}\"\nwcet = \"1 us\"\n");
        if number < 201 {
            text += &format!("calls = \"A::o{}\"\n", number + 1);
        }
    }
    let error = schedule(&text).assign().expect_err("it is too deep");
    assert_eq!(
        error.to_string(),
        "the calls of A::o0 are nested more than 200 deep: use fewer levels"
    );
}

/// By hand, and by simulation, 13.3 ms: one job of `C` delays the nested call once.
#[test]
fn a_nested_call_on_one_processor_is_delayed_as_one_job() {
    let it = schedule(
        r#"
        [[operation]]
        name = "C::c"
        wcet = "12 ms"
        period = "50 ms"
        deadline = "15 ms"
        [[operation]]
        name = "B::b"
        wcet = "300 us"
        period = "20 ms"
        calls = "A::a"
        [[operation]]
        name = "A::a"
        wcet = "1 ms"
    "#,
    );
    let assignment = it.assign().expect("it is analysed");
    assert!(assignment.analysis.feasible);
    let response = assignment.analysis.operations[1].response;
    assert_eq!(response, Response::Bounded(13_300_000));
}

/// An operation ends when its last call has returned, also if it executes nothing after it.
#[test]
fn an_operation_that_ends_with_a_call_ends_after_it() {
    let it = schedule(
        r#"
        [[operation]]
        name = "A::a"
        wcet = "1 ms"
        period = "20 ms"
        calls = [{ operation = "B::b", before = "1 ms" }]
        [[operation]]
        name = "B::b"
        wcet = "3 ms"
    "#,
    );
    let analysis = it.assign().expect("it is analysed").analysis;
    assert_eq!(
        analysis.operations[0].response,
        Response::Bounded(4_000_001)
    );
}

/// A thread that calls before it executes anything waits for its processor, too.
#[test]
fn a_call_without_execution_before_it_waits_for_the_processor() {
    let it = schedule(
        r#"
        [scheduling]
        priorities = "declared"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[operation]]
        name = "A::urgent"
        node = "a"
        wcet = "5 ms"
        period = "100 ms"
        priority = 2
        [[operation]]
        name = "A::caller"
        node = "a"
        wcet = "1 ms"
        period = "100 ms"
        priority = 1
        calls = [
            { operation = "B::first", before = "0 ms" },
            { operation = "B::second", before = "0 ms" },
        ]
        [[operation]]
        name = "B::first"
        node = "b"
        wcet = "1 ms"
        priority = 2
        [[operation]]
        name = "B::second"
        node = "b"
        wcet = "1 ms"
        priority = 1
    "#,
    );
    let assignment = it.assign().expect("it is analysed");
    assert!(takes_at_least(&assignment, &it, "B::first", 6_000_000));
    assert!(takes_at_least(&assignment, &it, "B::second", 7_000_000));
}
