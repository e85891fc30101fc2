//! Plans of real-time I/O for the interfaces of links.

use chronorb_schedule::{LockFile, Schedule};

use crate::schedule;

/// A camera that calls a recorder twenty times a second, and sends it a long message each second.
const SCHEDULE: &str = r#"
    [scheduling]
    priorities = "declared"

    [[node]]
    name = "camera"
    [[node]]
    name = "recorder"

    [[link]]
    name = "lan"
    rate = "100 Mbit"
    interface = { camera = "eth0", recorder = "eth1" }
    packet_cost = "20 us"

    [[operation]]
    name = "Camera::expose"
    node = "camera"
    priority = 300
    wcet = "1 ms"
    period = "20 Hz"
    calls = { operation = "Recorder::store", request = 2000, reply = 28 }

    [[operation]]
    name = "Camera::report"
    node = "camera"
    priority = 300
    wcet = "1 ms"
    period = "1 Hz"
    calls = { operation = "Recorder::log", request = 10_000, oneway = true }

    [[operation]]
    name = "Recorder::store"
    node = "recorder"
    priority = 200
    wcet = "1 ms"

    [[operation]]
    name = "Recorder::log"
    node = "recorder"
    priority = 100
    wcet = "1 ms"

    [[operation]]
    name = "Recorder::compact"
    node = "recorder"
    priority = 10
    wcet = "1 ms"
    period = "1 Hz"
"#;

fn lock(it: &Schedule) -> LockFile {
    it.assign().expect("it can be assigned").lock_file(it)
}

#[test]
fn each_end_of_a_link_reserves_the_packets_of_the_priorities_that_are_called() {
    let it = schedule(SCHEDULE);
    let lock = lock(&it);
    let reservations = lock.reservations.iter().map(|it| {
        let at = (it.node.as_str(), it.messages, it.window / 1_000_000);
        (at, it.packets, it.longest)
    });
    let expected = [
        // A request of two packets and a reply of one, and a message of eight.
        (("camera", 2, 50), 3, 1_500),
        (("camera", 1, 1_000), 8, 1_500),
        (("recorder", 2, 50), 3, 1_500),
        (("recorder", 1, 1_000), 8, 1_500),
    ];
    assert_eq!(reservations.collect::<Vec<_>>(), expected);
    let priorities: Vec<_> = lock.reservations.iter().map(|it| it.priority).collect();
    assert_eq!(priorities[..2], priorities[2..], "the same at both ends");
    assert!(priorities[0] > priorities[1], "{priorities:?}");
}

#[test]
fn a_plan_has_a_class_for_each_priority_of_its_node() {
    let it = schedule(SCHEDULE);
    let lock = lock(&it);
    let of = |name: &str| {
        let mut operations = lock.operations.iter();
        let operation = operations.find(|it| it.name == name);
        operation.expect("it is there").priority
    };
    let [store, log, compact] = ["Recorder::store", "Recorder::log", "Recorder::compact"].map(of);
    let class = |priority: i16, period: &str, budget: u32| {
        format!(
            "\n[[class]]\nname = \"lan-{priority}\"\npriority = {priority}\n\
             processing = \"arrival\"\nperiod = \"{period} ns\"\nbudget = {budget}\n\
             packet = 1500\nconnections = 8\ncost = \"20000 ns\"\n"
        )
    };
    let expected = [
        "# Written by `chronorb sched plan`. Do not edit: change the schedule.\n[interface]\n\
         name = \"eth1\"\nrate = \"100000000 bit\"\nmtu = 1500\n"
            .to_owned(),
        class(store, "50000000", 3),
        class(log, "1000000000", 8),
        // It is never called over the link.
        class(compact, "10000000000", 1),
    ];
    assert_eq!(lock.rio_plan("recorder"), Some(expected.concat()));
    assert_eq!(lock.rio_plan("elsewhere"), None);
    let again = LockFile::parse("x.rt.lock", &lock.to_string());
    assert_eq!(again.expect("it is read again"), lock);
}

#[test]
fn windows_are_those_of_real_time_io() {
    let of = |period: &str| {
        let text = SCHEDULE.replace("\"20 Hz\"", period);
        let text = text.replace("wcet = \"1 ms\"", "wcet = \"1 us\"");
        let lock = lock(&schedule(
            &text.replace("2000", "20").replace("1 Hz", "0.01 Hz"),
        ));
        let mut recorder = lock.reservations.into_iter().skip(2);
        let [store, log] = [(); 2].map(|()| recorder.next().expect("one for each operation"));
        [(store.window, store.packets), (log.window, log.packets)]
    };
    // Two packets every 30 µs are 8 in 100 µs, and a message every 100 s is one in 10 s.
    assert_eq!(of("\"30 us\""), [(100_000, 8), (10_000_000_000, 8)]);
}

#[test]
fn messages_of_declared_steps_are_reserved_at_both_ends() {
    let text = r#"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "lan"
        rate = "8 Mbit"
        interface = "eth0"
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
        period = "100 ms"
        steps = ["A::read", { link = "lan", message = 128 }, "B::write"]
    "#;
    let lock = lock(&schedule(text));
    let reserved = lock
        .reservations
        .iter()
        .map(|it| (&*it.node, it.packets, it.longest));
    assert_eq!(reserved.collect::<Vec<_>>(), [("a", 1, 200), ("b", 1, 200)]);
    let names: Vec<_> = lock
        .interfaces
        .iter()
        .map(|it| (&*it.node, &*it.name))
        .collect();
    assert_eq!(names, [("a", "eth0"), ("b", "eth0")]);
}
