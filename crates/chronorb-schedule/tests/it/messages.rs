//! Messages on links: packets by priority, with their headers, and each direction apart.

use chronorb_schedule::{Assignment, Schedule, StepWork, Time};

use crate::schedule;

/// A long message that is seldom, and a short one that is frequent.
fn long_and_short(duplex: &str) -> Schedule {
    schedule(&format!(
        r#"
        [scheduling]
        priorities = "declared"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "lan"
        rate = "100 Mbit"
        duplex = "{duplex}"
        [[operation]]
        name = "A::send_big"
        node = "a"
        wcet = "1 us"
        period = "100 ms"
        deadline = "10 ms"
        priority = 1
        calls = [{{ operation = "B::big", oneway = true, request = 100_000 }}]
        [[operation]]
        name = "A::send_small"
        node = "a"
        wcet = "1 us"
        period = "500 us"
        priority = 9
        calls = [{{ operation = "B::small", oneway = true, request = 1_400 }}]
        [[operation]]
        name = "B::big"
        node = "b"
        wcet = "100 us"
        priority = 1
        [[operation]]
        name = "B::small"
        node = "b"
        wcet = "20 us"
        priority = 9
    "#
    ))
}

/// Returns the response of the request to an operation.
fn request(it: &Schedule, assignment: &Assignment, operation: &str) -> Time {
    let operation = it.operation(operation).expect("it is declared");
    let transactions = assignment.task_sets.transactions.iter();
    let mut responses = transactions
        .zip(&assignment.analysis.transactions)
        .flat_map(|(named, result)| named.works.iter().zip(&result.steps));
    let of_request = responses.find(|(work, _)| **work == StepWork::Request { operation });
    let response = of_request.and_then(|(_, response)| response.time());
    response.expect("it has a bound")
}

/// A packet of Ethernet has at most 1,428 octets of a message: 72 of 1,500 are headers of IPv6 and
/// TCP. Around the packet are 42 more octets. An octet takes 80 ns.
const LONGEST_PACKET: Time = (1_500 + 42) * 80;

#[test]
fn an_urgent_message_waits_for_one_packet() {
    let it = long_and_short("full");
    let assignment = it.assign().expect("it is analysed");
    let own = (1_400 + 72 + 42) * 80;
    // The caller calls in the middle of its 1 us.
    assert_eq!(
        request(&it, &assignment, "B::small"),
        500 + LONGEST_PACKET + own
    );
}

/// As a plain block, the long message took 8.3 ms, and the short one 8.1 ms.
#[test]
fn urgent_packets_come_between_those_of_a_long_message() {
    let it = long_and_short("full");
    let assignment = it.assign().expect("it is analysed");
    let big = request(&it, &assignment, "B::big");
    // Simulated without headers, it takes 10.352 ms: 8 ms, and 21 short messages of 112 us.
    assert!(big > 10_352_000, "{big}");
    // 70 full packets and one of 40 octets. Short messages come until the last packet begins.
    let rest = (40 + 72 + 42) * 80;
    let own = 70 * LONGEST_PACKET;
    let small = (1_400 + 72 + 42) * 80;
    let mut start = own;
    while start < own + ((start + 500) / 500_000 + 1) * small {
        start += 1;
    }
    // The caller waits for the other one, and calls in the middle of its 1 us.
    assert_eq!(big, 1_500 + start + rest);
    assert!(!assignment.analysis.feasible);
}

/// A frame of CAN and a line whose ends send in turn are half-duplex.
#[test]
fn the_ends_of_a_link_delay_each_other_only_where_they_send_in_turn() {
    let response = |duplex| {
        let it = schedule(&format!(
            r#"
            [[node]]
            name = "a"
            [[node]]
            name = "b"
            [[link]]
            name = "line"
            duplex = "{duplex}"
            [[operation]]
            name = "A::call"
            node = "a"
            wcet = "1 ms"
            priority = 3
            period = "50 ms"
            calls = [{{ operation = "B::get", request = "1 ms", reply = "2 ms" }}]
            [[operation]]
            name = "B::get"
            node = "b"
            wcet = "1 ms"
            priority = 3
            [[operation]]
            name = "B::report"
            node = "b"
            wcet = "1 ms"
            priority = 1
            period = "100 ms"
            calls = [{{ operation = "A::note", oneway = true, request = "8 ms" }}]
            [[operation]]
            name = "A::note"
            node = "a"
            wcet = "1 ms"
            priority = 1
        "#
        ));
        let assignment = it.assign().expect("it is analysed");
        request(&it, &assignment, "B::get")
    };
    assert_eq!(response("full"), 1_500_000);
    assert_eq!(response("half"), 9_500_000);
}

/// The time of a message counts all headers, so it is divided and not longer.
#[test]
fn a_message_of_a_time_takes_that_time() {
    let it = schedule(
        r#"
        [[node]]
        name = "a"
        [[link]]
        name = "lan"
        rate = "10 Mbit"
        [[operation]]
        name = "A::get"
        node = "a"
        wcet = "1 ms"
        [[transaction]]
        name = "input"
        period = "50 ms"
        steps = [{ link = "lan", message = "5 ms" }, "A::get"]
    "#,
    );
    let assignment = it.assign().expect("it is analysed");
    let steps = &assignment.analysis.transactions[0].steps;
    assert_eq!(steps[0].time(), Some(5_000_000));
    assert_eq!(steps[1].time(), Some(6_000_000));
}
