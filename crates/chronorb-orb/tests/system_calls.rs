//! What a two-way call on lanes asks of the kernel in steady state: one `sendto` and one `recvfrom` on either side,
//! and one wait of the server. Nothing connects, changes a priority, waits for a lock or takes memory.
//!
//! The tests start themselves under `strace`.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use chronorb_orb::ThreadpoolStrategy;
use chronorb_orb::poa::PriorityModel;
use support::nothing;
use support::pools::{Bench, Buffering, Case, Threads, corba, look};

/// Says in the environment of the traced process what it shall do.
const CASE: &str = "CHRONORB_TEST_TRACED_CASE";
/// What the client asks of the kernel before and after the calls that count. There are no such files.
const BEGIN: &str = "/calls-begin";
const END: &str = "/calls-end";
const CALLS: usize = 200;

fn plain() -> Case {
    Case {
        strategy: ThreadpoolStrategy::LeaderFollowers,
        lanes: 3,
        buffering: Buffering::Off,
        borrowing: false,
        threads: Threads::Static,
        model: PriorityModel::ClientPropagated,
    }
}

fn case_named(name: &str) -> Case {
    match name {
        "plain" => plain(),
        "declared" => Case {
            model: PriorityModel::ServerDeclared,
            ..plain()
        },
        "buffering" => Case {
            buffering: Buffering::Requests,
            ..plain()
        },
        "borrowing" => Case {
            borrowing: true,
            ..plain()
        },
        "all" => Case {
            buffering: Buffering::Requests,
            borrowing: true,
            threads: Threads::Mixed,
            ..plain()
        },
        other => panic!("there is no {other}"),
    }
}

/// What is traced; on its own it does nothing.
#[test]
fn the_traced_process() {
    let Ok(name) = std::env::var(CASE) else {
        return;
    };
    let mut bench = Bench::new(case_named(&name));
    // All threads that the lane may have are there.
    let busy = [bench.hold_now(1, 1), bench.hold_now(1, 2)];
    bench.floor.open();
    for asked in busy {
        assert_eq!(bench.answer(asked), Ok(()));
    }
    bench.await_all_rest();
    let (class, object) = (1, bench.objects[1].clone());
    let priority = bench.case.priorities()[class];
    let current = bench.client.rt_current();
    current
        .set_priority(corba(priority))
        .expect("it has a native priority");
    assert_eq!(look(&object), Ok(bench.own_sight(class)));
    for _ in 0..50 {
        assert_eq!(nothing(&object, "pass"), Ok(()));
    }
    bench.await_all_rest();
    assert!(std::fs::metadata(BEGIN).is_err());
    for _ in 0..CALLS {
        assert_eq!(nothing(&object, "pass"), Ok(()));
    }
    assert!(std::fs::metadata(END).is_err());
    drop(bench);
}

/// How often each system call was begun.
type Counts = BTreeMap<String, usize>;

/// What the client's thread and all others asked for between the marks.
fn traced(name: &str) -> Option<(Counts, Counts)> {
    if !is_there() {
        let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
        assert!(
            !required,
            "CHRONORB_PEERS=required, and strace is missing or cannot trace: apt-get install strace"
        );
        println!("NOT RUN: strace is missing or cannot trace (apt-get install strace)");
        return None;
    }
    let directory = tempfile::tempdir().expect("there is room");
    let log = directory.path().join("trace");
    let this = std::env::current_exe().expect("it runs");
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .arg(this)
        .args(["--exact", "the_traced_process", "--test-threads=1"])
        .env(CASE, name)
        .output()
        .expect("strace starts");
    assert!(traced.status.success(), "{traced:?}");
    let log = std::fs::read_to_string(&log).expect("strace wrote it");
    Some(between_marks(&log))
}

fn is_there() -> bool {
    let traced = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    traced.is_ok_and(|output| output.status.success())
}

/// Reads lines such as `1234 sendto(5, …) = 12`; those that go on with a call that was interrupted in the log begin
/// with `<...`.
fn between_marks(log: &str) -> (Counts, Counts) {
    let mut lines = log.lines();
    let mark = lines.by_ref().find(|line| line.contains(BEGIN));
    let client = mark.expect("it began").split(' ').next().expect("a thread");
    let (mut of_client, mut of_server) = (Counts::new(), Counts::new());
    for line in lines.take_while(|line| !line.contains(END)) {
        let (thread, what) = line.split_once(' ').expect("a thread and what it does");
        let Some((name, _)) = what.trim_start().split_once('(') else {
            continue;
        };
        if name.starts_with('<') {
            continue;
        }
        let counts = match thread == client {
            true => &mut of_client,
            false => &mut of_server,
        };
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    (of_client, of_server)
}

fn asks_for_nothing_more(name: &str) {
    let Some((mut of_client, mut of_server)) = traced(name) else {
        return;
    };
    println!("{name}: client {of_client:?}, server {of_server:?}");
    for counts in [&mut of_client, &mut of_server] {
        for io in ["sendto", "recvfrom"] {
            assert_eq!(counts.remove(io), Some(CALLS), "{io} in {name}");
        }
    }
    let waits: usize = ["epoll_wait", "epoll_pwait", "epoll_pwait2"]
        .iter()
        .filter_map(|wait| of_server.remove(*wait))
        .sum();
    assert!(waits <= CALLS, "{waits} waits for {CALLS} calls");
    assert_eq!(of_client, Counts::new(), "the client in {name}");
    assert_eq!(of_server, Counts::new(), "the server in {name}");
}

#[test]
fn a_call_on_a_lane_sends_and_receives() {
    asks_for_nothing_more("plain");
}

#[test]
fn a_call_at_the_servers_priority_sends_and_receives() {
    asks_for_nothing_more("declared");
}

#[test]
fn a_call_on_a_lane_that_may_buffer_sends_and_receives() {
    asks_for_nothing_more("buffering");
}

#[test]
fn a_call_on_a_lane_that_may_borrow_sends_and_receives() {
    asks_for_nothing_more("borrowing");
}

#[test]
fn a_call_on_a_lane_that_may_do_all_of_it_sends_and_receives() {
    asks_for_nothing_more("all");
}
