//! The analysis of schedules, and their assignment.

use chronorb_sched::{
    AdmissionControl, AdmissionError, Response, StepOwner, SystemSimulation, simulate_transactions,
};
use chronorb_schedule::{
    Analysis, FACTOR_UNIT, LaneOrder, LockFile, Schedule, ScheduleError, SimulationRun,
};

use crate::comparison::PLAIN;
use crate::generated::{FileSpec, Parts};
use crate::{millis, mistakes, schedule};

/// The four rates of avionics, without lanes.
const RATES: &str = r#"
    [[operation]]
    name = "A::r1"
    wcet = "100 ms"
    period = "1 Hz"
    [[operation]]
    name = "A::r20"
    wcet = "10 ms"
    period = "20 Hz"
    [[operation]]
    name = "A::r10"
    wcet = "15 ms"
    period = "10 Hz"
    [[operation]]
    name = "A::r5"
    wcet = "20 ms"
    period = "5 Hz"
"#;

#[test]
fn rates_have_the_responses_of_the_analysis() {
    let it = schedule(RATES);
    let ranks = it.ranks().unwrap();
    assert_eq!(ranks, [1, 4, 3, 2]);
    let analysis = it.to_task_sets(&ranks).unwrap().analyse(&it).unwrap();
    let responses: Vec<_> = analysis.operations.iter().map(|it| it.response).collect();
    assert_eq!(responses, [190, 10, 25, 45].map(millis));
    assert_eq!(it.greatest_factor(&ranks).unwrap(), 18_181);
    assert_eq!(it.greatest_cost(&ranks, 1).unwrap(), 32_500_000);
    assert_eq!(it.greatest_cost(&ranks, 0).unwrap(), 550_000_000);
}

#[test]
fn the_least_cuts_are_those_of_a_search_of_each_operation() {
    let parts = Parts {
        oneways: true,
        late_deadlines: true,
        ..PLAIN
    };
    let mut counts = [0; 4];
    for seed in 0..100 {
        let mut it = schedule(&FileSpec::random(seed, parts).text());
        for operation in &mut it.operations {
            operation.cost += operation.cost / 2;
        }
        let ranks = it.ranks().unwrap();
        if it.to_task_sets(&ranks).unwrap().fits().unwrap_or(false) {
            continue;
        }
        let own = |operation: usize| it.operations[operation].cost;
        let operations = 0..it.operations.len();
        let each = operations.clone().map(|operation| {
            let cost = it.greatest_cost(&ranks, operation).unwrap();
            (operation, cost)
        });
        let mut expected: Vec<_> = each
            .filter(|(operation, cost)| (1..own(*operation)).contains(cost))
            .collect();
        expected.sort_by_key(|(operation, cost)| own(*operation) - cost);
        for count in 1..3 {
            expected.truncate(3 - count);
            let cuts = it.least_cuts(&ranks, operations.clone(), 3 - count);
            assert_eq!(cuts.unwrap(), expected, "seed {seed}");
        }
        counts[expected.len()] += 1;
    }
    assert!(counts[0] > 10 && counts[1] > 10, "{counts:?}");
}

#[test]
fn bands_are_few_and_a_lock_file_is_read_again() {
    let it = schedule(RATES);
    let assignment = it.assign().unwrap();
    assert!(assignment.analysis.feasible);
    // At 20 Hz nothing of the others may come before, and 10 Hz can wait for 5 Hz.
    assert_eq!(assignment.lanes.len(), 2);
    let lock = assignment.lock_file(&it);
    assert_eq!(lock.bands[0].low, 0);
    assert_eq!(lock.bands.last().unwrap().high, i16::MAX);
    assert!(
        lock.bands
            .windows(2)
            .all(|two| two[0].high + 1 == two[1].low)
    );
    let text = lock.to_string();
    let again = LockFile::parse("rates.rt.lock", &text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(again, lock);
    assert_eq!(it.assign().unwrap().lock_file(&it).to_string(), text);
    assert_eq!(again.input, it.digest);
    let activity = again
        .activities
        .iter()
        .find(|it| it.name == "A::r20")
        .unwrap();
    assert_eq!(activity.priority, again.operations[1].priority);
}

#[test]
fn a_lock_file_with_mistakes_is_refused() {
    for (text, expected) in [
        ("version = 1", "input is missing"),
        (
            "version = 1\ninput = \"x\"\n[[lane]]\nname = \"a\"",
            "threads is missing",
        ),
        (
            "version = 1\ninput = \"x\"\nlines = 5",
            "there is no key \"lines\"",
        ),
        ("version = ", "line 1"),
    ] {
        let errors = LockFile::parse("x.rt.lock", text)
            .expect_err(text)
            .to_string();
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn the_order_of_a_lane_is_in_the_lock_file() {
    let it = schedule(
        r#"
        [[processor]]
        name = "cpu"
        [[lane]]
        name = "ordered"
        processor = "cpu"
        order = "muf"
        [[lane]]
        name = "plain"
        processor = "cpu"
        [[operation]]
        name = "A::b"
        wcet = "1 ms"
        period = "10 ms"
        lane = "ordered"
        criticality = 3
        calls = ["A::c"]
        [[operation]]
        name = "A::c"
        wcet = "1 ms"
        period = "20 ms"
        lane = "plain"
        "#,
    );
    let lock = it.assign().unwrap().lock_file(&it);
    let orders = lock
        .lanes
        .iter()
        .map(|lane| (lane.name == "ordered", lane.order));
    let orders: Vec<_> = orders.collect();
    assert!(
        orders.contains(&(true, Some(LaneOrder::Urgency))),
        "{orders:?}"
    );
    assert!(orders.contains(&(false, None)), "{orders:?}");
    // Of both operations, for the activity that begins in the lane with an order.
    let urgency = |name| {
        let activity = lock.activities.iter().find(|it| it.name == name);
        let urgency = activity.unwrap().urgency;
        urgency.map(|it| (it.execution, it.criticality, it.importance))
    };
    assert_eq!(urgency("A::b"), Some((2_000_000, 3, 0)));
    assert_eq!(urgency("A::c"), None);
    assert_eq!(LockFile::parse("x.rt.lock", &lock.to_string()), Ok(lock));
    for order in LaneOrder::ALL {
        let text = format!(
            "[[processor]]\nname = \"cpu\"\ncpu = 0\n[[lane]]\nname = \"a\"\norder = \"{}\"",
            order.name()
        );
        assert_eq!(schedule(&text).lanes[0].order, Some(order));
    }
}

/// Case T15 of two processors and a link, with calls instead of steps.
#[test]
fn calls_over_a_link_are_transactions() {
    let it = schedule(
        r#"
        [[node]]
        name = "A"
        [[node]]
        name = "B"
        [[link]]
        name = "N"
        duplex = "half"
        blocking = "1 ms"
        [[operation]]
        name = "C::g1"
        node = "A"
        wcet = "7 ms"
        period = "50 ms"
        priority = 40
        calls = { operation = "S::g1", before = "4 ms", request = "2 ms", reply = "2 ms" }
        [[operation]]
        name = "S::g1"
        node = "B"
        wcet = "8 ms"
        priority = 40
        [[operation]]
        name = "C::g2"
        node = "A"
        wcet = "15 ms"
        period = "100 ms"
        priority = 30
        calls = { operation = "S::g2", before = "10 ms", request = "3 ms", reply = "3 ms" }
        [[operation]]
        name = "S::g2"
        node = "B"
        wcet = "15 ms"
        priority = 30
        [[operation]]
        name = "S::g3"
        node = "B"
        wcet = "6 ms"
        period = "30 ms"
        priority = 50
        [[operation]]
        name = "C::g4"
        node = "A"
        wcet = "20 ms"
        period = "200 ms"
        priority = 10
    "#,
    );
    let assignment = it.assign().unwrap();
    assert!(assignment.analysis.feasible);
    let names: Vec<_> = assignment
        .task_sets
        .transactions
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["C::g1", "C::g2", "S::g3", "C::g4"]);
    let responses: Vec<_> = assignment
        .analysis
        .transactions
        .iter()
        .map(|it| it.response)
        .collect();
    assert_eq!(responses, [31, 74, 6, 50].map(millis));
    let lock = assignment.lock_file(&it);
    assert_eq!(lock.classes.len(), 2);
    assert_eq!(
        (lock.classes[0].priority, lock.classes[0].messages),
        (40, 2)
    );
}

#[test]
fn locks_block_by_their_protocol() {
    let text = r#"
        [scheduling]
        priorities = "declared"
        locks = "LOCKS"
        [[processor]]
        name = "cpu"
        cpu = 0
        [[operation]]
        name = "A::t1"
        wcet = "5 ms"
        period = "30 ms"
        priority = 4
        locks = { R = "1 ms" }
        [[operation]]
        name = "A::t2"
        wcet = "8 ms"
        period = "50 ms"
        priority = 3
        locks = { S = "3 ms" }
        [[operation]]
        name = "A::t3"
        wcet = "12 ms"
        period = "80 ms"
        priority = 2
        locks = { R = "2 ms", S = "4 ms" }
        [[operation]]
        name = "A::t4"
        wcet = "15 ms"
        period = "150 ms"
        priority = 1
        locks = { R = "6 ms", S = "5 ms" }
    "#;
    for (locks, expected) in [
        ("ceiling", [11, 19, 36, 45]),
        ("inheritance", [11, 23, 36, 45]),
    ] {
        let it = schedule(&text.replace("LOCKS", locks));
        let analysis = it.assign().unwrap().analysis;
        let responses: Vec<_> = analysis.operations.iter().map(|it| it.response).collect();
        assert_eq!(responses, expected.map(millis), "{locks}");
    }
}

#[test]
fn declared_lanes_have_priorities_of_their_own() {
    let lanes = ["r1", "r20", "r10", "r5"];
    let mut text = String::new();
    for lane in lanes {
        text += &format!("[[lane]]\nname = \"{lane}\"\nthreads = 2\n");
    }
    text += RATES;
    for lane in lanes {
        let name = format!("name = \"A::{lane}\"\n");
        text = text.replace(&name, &format!("{name}lane = \"{lane}\"\n"));
    }
    let it = schedule(&text);
    let assignment = it.assign().unwrap();
    let names: Vec<_> = assignment.lanes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["r20", "r10", "r5", "r1"]);
    assert!(assignment.lanes.iter().all(|it| it.threads == 2));
    let mut priorities = assignment.priorities.clone();
    priorities.dedup();
    assert_eq!(priorities.len(), 4);
}

#[test]
fn what_cannot_be_analysed_is_an_error() {
    let cycle = schedule(
        r#"
        [[operation]]
        name = "A::a"
        wcet = "1 ms"
        period = "1 s"
        calls = "A::b"
        [[operation]]
        name = "A::b"
        wcet = "1 ms"
        calls = "A::c"
        [[operation]]
        name = "A::c"
        wcet = "1 ms"
        calls = "A::b"
    "#,
    );
    let error = cycle.assign().expect_err("it calls itself");
    assert_eq!(
        error.to_string(),
        "these operations call each other without end: A::b -> A::c -> A::b"
    );
    let many = schedule(
        r#"
        [[operation]]
        name = "A::a"
        wcet = "1 s"
        period = "1 s"
        calls = { operation = "A::b", count = 10000 }
        [[operation]]
        name = "A::b"
        wcet = "1 ns"
        calls = { operation = "A::c", count = 10000, oneway = true }
        [[operation]]
        name = "A::c"
        wcet = "1 ns"
    "#,
    );
    let error = many.assign().expect_err("it has too many steps");
    assert!(
        matches!(error, ScheduleError::TooManySteps { .. }),
        "{error}"
    );
}

#[test]
fn what_does_not_fit_is_a_result() {
    let it = schedule(&RATES.replace("\"10 ms\"", "\"40 ms\""));
    let assignment = it.assign().unwrap();
    assert!(!assignment.analysis.feasible);
    let late: Vec<_> = assignment
        .analysis
        .operations
        .iter()
        .map(|it| it.is_on_time())
        .collect();
    assert_eq!(late, [false, true, true, false]);
    assert!(it.greatest_factor(&assignment.ranks).unwrap() < FACTOR_UNIT);
    assert_eq!(it.greatest_cost(&assignment.ranks, 1).unwrap(), 32_500_000);
}

#[test]
fn a_oneway_call_has_a_deadline_of_its_own() {
    let it = schedule(
        r#"
        [[operation]]
        name = "A::a"
        wcet = "1 ms"
        period = "10 ms"
        deadline = "2 ms"
        calls = { operation = "A::log", oneway = true }
        [[operation]]
        name = "A::log"
        wcet = "5 ms"
        deadline = "9 ms"
    "#,
    );
    let analysis = it.assign().unwrap().analysis;
    assert!(analysis.feasible, "{analysis:?}");
    assert_eq!(analysis.operations[0].response, millis(1));
    assert_eq!(analysis.operations[1].response, millis(6));
}

#[test]
fn an_operation_is_late_if_a_message_before_its_end_is() {
    let it = schedule(
        r#"
        [[node]]
        name = "computer"
        [[node]]
        name = "cockpit"
        [[link]]
        name = "lan"
        [[operation]]
        name = "Flight::control"
        node = "computer"
        wcet = "2 ms"
        [[operation]]
        name = "Map::draw"
        node = "computer"
        wcet = "3 ms"
        [[operation]]
        name = "Cockpit::fly"
        node = "cockpit"
        wcet = "200 us"
        period = "20 Hz"
        deadline = "4 ms"
        calls = { operation = "Flight::control", request = "1 us", reply = "1 us" }
        [[operation]]
        name = "Cockpit::show"
        node = "cockpit"
        wcet = "1 ms"
        period = "5 Hz"
        calls = { operation = "Map::draw", request = "1 us", reply = "2 ms" }
    "#,
    );
    let assignment = it.assign().unwrap();
    let analysis = &assignment.analysis;
    assert!(!analysis.feasible);
    // The reply waits for the long one. The last piece of the caller begins after it.
    let transaction = &analysis.transactions[0];
    let reply = transaction.steps[3];
    assert!(reply > millis(4), "{reply:?}");
    assert!(transaction.steps[4] >= reply, "{transaction:?}");
    assert!(!analysis.operations[2].is_on_time());
}

/// A call that leaves its processor needs a more urgent priority than its deadline says, because
/// most of its time passes elsewhere.
#[test]
fn local_deadlines_fit_where_those_of_transactions_do_not() {
    let with = |rule: &str| {
        let text = r#"
            [scheduling]
            priorities = "RULE"
            [[node]]
            name = "client"
            [[node]]
            name = "server"
            [[operation]]
            name = "Client::call"
            node = "client"
            wcet = "4 ms"
            period = "30 ms"
            deadline = "20 ms"
            calls = { operation = "Server::work", before = "2 ms" }
            [[operation]]
            name = "Client::tick"
            node = "client"
            wcet = "5 ms"
            period = "12 ms"
            [[operation]]
            name = "Server::work"
            node = "server"
            wcet = "10 ms"
        "#;
        schedule(&text.replace("RULE", rule)).assign().unwrap()
    };
    let by_deadline = with("deadline-monotonic").analysis;
    assert!(!by_deadline.feasible);
    let late: Vec<_> = by_deadline
        .operations
        .iter()
        .map(|it| it.is_on_time())
        .collect();
    assert_eq!(late, [false, true, true]);
    assert_eq!(by_deadline.operations[0].response, millis(24));
    let holistic = with("holistic");
    assert!(holistic.analysis.feasible);
    assert!(holistic.priority(0) > holistic.priority(1));
    let responses = holistic.analysis.operations.iter().map(|it| it.response);
    assert_eq!(responses.collect::<Vec<_>>(), [14, 9, 12].map(millis));
    // Where deadlines are enough, they decide.
    let rates = RATES.to_owned() + "[scheduling]\npriorities = \"holistic\"\n";
    assert_eq!(
        schedule(&rates).ranks().unwrap(),
        schedule(RATES).ranks().unwrap()
    );
}

#[test]
fn a_late_schedule_has_bounds_of_all_responses() {
    let text = RATES.replace("wcet = \"20 ms\"", "wcet = \"125 ms\"");
    let it = schedule(&text);
    let assignment = it.assign().unwrap();
    assert!(!assignment.analysis.feasible);
    assert!(!assignment.task_sets.fits().unwrap());
    let responses = assignment.analysis.operations.iter().map(|it| it.response);
    // The others leave less than the slowest one needs.
    let expected = [Response::Unbounded, millis(10), millis(25), millis(195)];
    assert_eq!(responses.collect::<Vec<_>>(), expected);
}

/// The lane of experiment X13: times in microseconds, utilisation 0.95.
fn one_lane(order: &str, extra: &str) -> Schedule {
    let operations = [
        (400, 4_000, 2_900),
        (800, 8_000, 4_500),
        (1_500, 12_000, 9_000),
        (2_000, 16_000, 16_000),
        (2_500, 25_000, 25_000),
        (2_400, 12_000, 36_000),
        (1_600, 8_000, 48_000),
    ];
    let mut text = format!(
        "[[processor]]\nname = \"cpu\"\ncpu = 0\n[[lane]]\nname = \"all\"\nprocessor = \"cpu\"\n\
         order = \"{order}\"\n"
    );
    for (number, (cost, period, deadline)) in operations.into_iter().enumerate() {
        text += &format!(
            "[[operation]]\nname = \"A::o{number}\"\nlane = \"all\"\nwcet = \"{cost} us\"\n\
             period = \"{period} us\"\ndeadline = \"{deadline} us\"\n"
        );
    }
    schedule(&(text + extra))
}

#[test]
fn a_lane_by_deadline_is_analysed_in_that_order() {
    let analysis = |it: &Schedule| it.assign().unwrap().analysis;
    let by_deadline = one_lane("deadline", "");
    let analysed = analysis(&by_deadline);
    assert!(analysed.feasible);
    // The longest other request that has begun, and its own execution.
    assert_eq!(
        analysed.operations[0].response,
        Response::Bounded(2_900_000)
    );
    // All times have a unit in the search for room, also the deadlines of the order.
    let ranks = by_deadline.assign().unwrap().band_ranks();
    assert_eq!(by_deadline.greatest_factor(&ranks).unwrap(), FACTOR_UNIT);
    for order in ["fifo", "laxity", "muf"] {
        assert!(!analysis(&one_lane(order, "")).feasible, "{order}");
    }
    // A thread that waits for a lock or a call lets another one of the lane begin.
    let lock = "locks = { map = \"1 us\" }\n";
    let call = "calls = \"B::b\"\n[[operation]]\nname = \"B::b\"\nwcet = \"1 us\"\n";
    for suspended in [lock, call] {
        assert!(
            !analysis(&one_lane("deadline", suspended)).feasible,
            "{suspended}"
        );
    }
}

#[test]
fn dependencies_come_before_importance() {
    let it = schedule(
        r#"
        [scheduling]
        priorities = "rate-monotonic"
        [[operation]]
        name = "A::supply"
        wcet = "2 ms"
        period = "20 Hz"
        importance = 0
        calls = { operation = "A::consume", oneway = true, before = "2 ms" }
        [[operation]]
        name = "A::consume"
        wcet = "3 ms"
        importance = 4
        [[operation]]
        name = "A::other"
        wcet = "1 ms"
        period = "20 Hz"
        importance = 2
    "#,
    );
    let assignment = it.assign().unwrap();
    let lock = assignment.lock_file(&it);
    let [supply, consume, other] = [0, 1, 2].map(|it: usize| lock.operations[it].subpriority);
    assert!(
        supply < other && other < consume,
        "importance orders equal rates"
    );
    let sets = &assignment.task_sets;
    let rules = SystemSimulation {
        record: true,
        ..SystemSimulation::new(1_000_000_000)
    };
    let simulated = simulate_transactions(
        &sets.analysed_resources(),
        &sets.analysed_transactions(),
        &rules,
    );
    let slices = simulated.unwrap().slices;
    let mut consumed = 0;
    for slice in &slices {
        let works = &sets.transactions[slice.transaction].works;
        if works[slice.step].executed() != Some(1) {
            continue;
        }
        consumed += 1;
        // Its supplier, of the same job, has ended.
        let mut suppliers = slices.iter().filter(|it| {
            let is_same = (it.transaction, it.job) == (slice.transaction, slice.job);
            is_same && works[it.step].executed() == Some(0)
        });
        assert!(suppliers.all(|it| it.end <= slice.start), "{slice:?}");
    }
    assert!(consumed >= 20, "{consumed}");
}

#[test]
fn further_clients_are_admitted_while_there_is_room() {
    let it = schedule(
        r#"
        [scheduling]
        priorities = "declared"
        [[operation]]
        name = "Map::draw"
        priority = 200
        wcet = "3 ms"
        period = "20 ms"
        [[operation]]
        name = "Log::write"
        priority = 100
        wcet = "30 ms"
        period = "100 ms"
    "#,
    );
    let assignment = it.assign().unwrap();
    let sets = &assignment.task_sets;
    let control = AdmissionControl::new(sets.analysed_resources(), sets.analysed_transactions());
    let mut control = control.unwrap();
    let draw = it.operation("Map::draw").unwrap();
    let session = it
        .further_calls(&assignment, draw, (20_000_000, 20_000_000))
        .unwrap();
    assert_eq!(
        session.steps.iter().map(|it| it.cost).sum::<u64>(),
        3_000_000
    );
    // 3 of each 20 ms for each client; the log has 30 ms, and its deadline after 100 ms.
    let mut admitted = 1;
    let told = loop {
        match control.admit(std::slice::from_ref(&session)) {
            Ok(_) => admitted += 1,
            Err(AdmissionError::Late(told)) => break told,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(admitted, 4, "30 ms, and four times 12 ms in 78 ms");
    let late = &told.late[0];
    assert_eq!(late.owner, StepOwner::Running);
    assert_eq!(sets.transactions[late.transaction].name, "Log::write");
    assert!(told.costs > 0 && told.periods.is_some(), "{told:?}");
}

/// Returns the longest response of `B::low`, which each job of a client delays that executes on
/// another node before.
fn response_after(least: &str) -> Option<u64> {
    let it = schedule(&format!(
        r#"
        [scheduling]
        priorities = "declared"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[operation]]
        name = "A::first"
        node = "a"
        wcet = "6 ms"
        period = "100 ms"
        priority = 3
        [[operation]]
        name = "A::client"
        node = "a"
        wcet = "10 ms"
        {least}
        period = "20 ms"
        priority = 2
        [[operation]]
        name = "B::high"
        node = "b"
        wcet = "2 ms"
        priority = 2
        [[operation]]
        name = "B::low"
        node = "b"
        wcet = "3 ms"
        period = "100 ms"
        priority = 1
    "#
    ));
    let assignment = it.assign().expect("it is analysed");
    let response = assignment.analysis.operations[3].response.time();
    let numbers = assignment.numbers(&it);
    for seed in 0..200 {
        let outcome = it.simulate(&numbers, &SimulationRun::random(seed, 2_000_000_000));
        let outcome = outcome.expect("it is simulated");
        let low = &outcome.activities[2];
        assert_eq!(low.name, "B::low");
        assert!(Some(low.works[0].longest) <= response);
    }
    response.map(|time| time / 1_000_000)
}

/// The jobs of the client arrive at the other node 16 ms late, or not early either.
#[test]
fn best_cases_shorten_the_delay_of_others() {
    let calls = |call: &str| format!("calls = [{{ operation = \"B::high\"{call} }}]");
    let before = calls(", before = \"10 ms\", oneway = true");
    assert_eq!(response_after(&before), Some(7));
    assert_eq!(
        response_after(&format!("least = \"10 ms\"\n{before}")),
        Some(5)
    );
    // That of the part before the call, or that of the whole without what is after the call.
    let part = calls(", before = \"10 ms\", least = \"9 ms\", oneway = true");
    assert_eq!(response_after(&part), Some(5));
    let early = calls(", before = \"9 ms\", oneway = true");
    assert_eq!(response_after(&early), Some(5));
    let late = early.replace('9', "9.5");
    assert_eq!(response_after(&late), Some(7));
    assert_eq!(
        response_after(&format!("least = \"9 ms\"\n{late}")),
        Some(5)
    );
}

/// Work outside of the file and locks delay a job one after the other by inheritance, and one of
/// them by ceilings.
#[test]
fn the_blocking_of_an_operation_adds_to_that_of_locks() {
    let high = |protocol: &str, processor: &str, lock: &str| {
        let it = schedule(&format!(
            r#"
            [scheduling]
            locks = "{protocol}"
            [[processor]]
            name = "p"
            cpu = 0
            {processor}
            [[operation]]
            name = "A::high"
            wcet = "1 ms"
            blocking = "2 ms"
            period = "50 ms"
            {lock}
            [[operation]]
            name = "A::low"
            wcet = "5 ms"
            period = "100 ms"
            {lock}
        "#
        ));
        let task_sets = it.to_task_sets(&[2, 1]).expect("it is expanded");
        task_sets.analyse(&it).expect("it is analysed").operations[0].response
    };
    let lock = "locks = { m = \"1 ms\" }";
    let outside = "blocking = \"4 ms\"";
    assert_eq!(high("inheritance", "", ""), millis(3));
    assert_eq!(high("inheritance", "", lock), millis(4));
    assert_eq!(high("inheritance", outside, ""), millis(7));
    assert_eq!(high("inheritance", outside, lock), millis(8));
    assert_eq!(high("ceiling", "", lock), millis(3));
    assert_eq!(high("ceiling", outside, lock), millis(5));
}

#[test]
fn levels_share_the_fewest_lanes_or_have_their_own() {
    let file = |lanes: &str| {
        let mut text = format!("[scheduling]\n{lanes}\n");
        for (name, wcet, period) in [("a", 3, 7), ("b", 3, 12), ("c", 5, 20)] {
            text += &format!(
                "[[operation]]\nname = \"A::{name}\"\nwcet = \"{wcet} ms\"\n\
                 period = \"{period} ms\"\n"
            );
        }
        schedule(&text)
    };
    let responses = |analysis: &Analysis| {
        let responses = analysis.operations.iter().map(|it| it.response);
        responses.collect::<Vec<_>>()
    };
    for lanes in ["", "lanes = \"fewest\""] {
        let it = file(lanes);
        let assignment = it.assign().expect("it is analysed");
        assert_eq!((assignment.levels(&it), assignment.lanes.len()), (3, 2));
        assert_eq!(responses(&assignment.analysis), [6, 6, 20].map(millis));
        let own = assignment.with_own_lanes(&it).expect("it is analysed");
        let own = own.expect("two levels share a lane");
        assert_eq!(responses(&own), [3, 6, 20].map(millis));
    }
    let it = file("lanes = \"own\"");
    let assignment = it.assign().expect("it is analysed");
    assert_eq!((assignment.levels(&it), assignment.lanes.len()), (3, 3));
    assert_eq!(responses(&assignment.analysis), [3, 6, 20].map(millis));
    assert_eq!(assignment.with_own_lanes(&it), Ok(None));
    assert!(mistakes("[scheduling]\nlanes = \"some\"").contains("lanes has to be"));
}

/// Of two transactions of messages the one with the shorter deadline is the more urgent one. With
/// one priority for both, each could wait for several of the other.
#[test]
fn transactions_of_messages_have_priorities() {
    let file = |rules: &str, slow: &str| {
        schedule(&format!(
            r#"
            [scheduling]
            {rules}
            [[link]]
            name = "can"
            [[transaction]]
            name = "slow"
            period = "100 ms"
            {slow}
            steps = {{ link = "can", message = "3 ms" }}
            [[transaction]]
            name = "fast"
            period = "10 ms"
            steps = {{ link = "can", message = "2 ms" }}
        "#
        ))
    };
    let it = file("lanes = \"own\"", "");
    let assignment = it.assign().expect("it is analysed");
    assert_eq!(assignment.ranks, [1, 2]);
    assert!(assignment.priorities[0] < assignment.priorities[1]);
    let responses = assignment.analysis.transactions.iter();
    let responses: Vec<_> = responses.map(|it| it.response).collect();
    assert_eq!(responses, [5, 5].map(millis));
    // Classes of the lock file have the priorities, too.
    let lock = assignment.lock_file(&it);
    let classes: Vec<_> = lock.classes.iter().map(|it| it.priority).collect();
    assert_eq!(
        classes,
        [assignment.priorities[1], assignment.priorities[0]]
    );
    let numbers = assignment.numbers(&it);
    let run = SimulationRun::synchronous(&it, 1_000_000_000);
    let outcome = it.simulate(&numbers, &run).expect("it is simulated");
    let priorities = outcome.activities.iter().map(|it| it.works[0].priority);
    assert_eq!(priorities.collect::<Vec<_>>(), [1, 2]);
    assert_eq!(outcome.activities[0].works[0].longest, 5_000_000);

    let declared = "priorities = \"declared\"";
    let text = |it: &str| format!("[scheduling]\n{declared}\n[[link]]\nname = \"can\"\n{it}");
    let messages = "[[transaction]]\nname = \"t\"\nperiod = \"1 s\"\n\
                    steps = { link = \"can\", message = \"1 ms\" }\n";
    let told = mistakes(&text(messages));
    assert!(told.contains("the messages of t have none"), "{told}");
    let operation = "priority = 1\n[[operation]]\nname = \"A::a\"\nwcet = \"1 ms\"\npriority = 2\n";
    let told = mistakes(&text(
        &(messages
            .replace("steps = ", "steps = [\"A::a\", ")
            .replace(" }\n", " }]\n")
            + operation),
    ));
    assert!(
        told.contains("t: priority is for a transaction of messages only"),
        "{told}"
    );
}
