//! The system calls of a two-way call on lanes in steady state: one `sendto` and one `recvfrom` on
//! either side, and one wait of the server. Nothing connects, changes a priority, waits for a lock
//! or allocates memory.
//!
//! The tests start themselves again, and trace that process.

use chronorb_orb::ThreadpoolStrategy;
use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::TimeConstraint;
use chronorb_probe::{Mark, TraceError, Tracer, trace_mark};
use chronorb_rt::thread_id;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::support::descriptors::spawn;
use crate::support::pools::{Bench, Buffering, Case, Threads, await_rest, corba, look};
use crate::support::{PATIENCE, name_of, nothing};

/// The environment variable that tells the traced process its case.
const CASE: &str = "CHRONORB_TEST_TRACED_CASE";
const CALLS: u64 = 200;
/// More calls than a thread may skip a connection for.
const MOST_BEFORE: u32 = 10_000;

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
        "plain" | "deadline" | "segment" => plain(),
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

/// The body of the traced process; it does nothing in the test's own process.
#[test]
fn the_traced_process() {
    let Ok(name) = std::env::var(CASE) else {
        return;
    };
    let mut bench = Bench::new(case_named(&name));
    // All threads that the lane may have exist.
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
    let constraint = TimeConstraint::within(PATIENCE);
    let _until = (name == "deadline").then(|| current.constrain(constraint));
    #[cfg(feature = "distributable-threads")]
    let _segment = (name == "segment").then(|| {
        let current = bench.client.scheduling_current();
        let segment = current.segment("traced", None, None);
        segment.expect("it has no parameter that is not supported")
    });
    assert_eq!(look(&object), Ok(bench.own_sight(class)));
    writeln!(io::stderr(), "{}", thread_id()).expect("the parent reads it");
    io::stdin()
        .read_line(&mut String::new())
        .expect("the parent writes it");
    // Attaching the tracer may have interrupted waits. A thread that was called away from its
    // connection while the lane was busy returns to it after some requests.
    let staying = || {
        let snapshot = bench.server.snapshot();
        let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
        lanes.map(|lane| lane.staying).sum::<usize>()
    };
    // If requests move between threads, no thread stays with a connection.
    let stays = matches!(bench.case.buffering, Buffering::Off) && !bench.case.borrowing;
    let mut calls = 0;
    loop {
        assert!(
            calls < MOST_BEFORE,
            "no thread has the connection to itself"
        );
        assert_eq!(nothing(&object, "pass"), Ok(()));
        calls += 1;
        // A thread that is called back at once stays only for a moment.
        if calls >= 50 && (!stays || staying() > 0) {
            others_rest();
            if !stays || staying() > 0 {
                break;
            }
        }
    }
    trace_mark(Mark::Next);
    for _ in 0..CALLS {
        assert_eq!(nothing(&object, "pass"), Ok(()));
    }
    trace_mark(Mark::Last);
    drop(bench);
}

/// Waits until all other threads of the process sleep.
fn others_rest() {
    let tasks = std::fs::read_dir("/proc/self/task").expect("they are listed");
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .filter(|tid| *tid != thread_id())
        .for_each(await_rest);
}

/// The number of each system call.
type Counts = BTreeMap<String, u64>;

/// Returns the system calls of the client's thread, and of all others, between the marks.
fn traced(name: &str) -> Option<(Counts, Counts)> {
    let this = std::env::current_exe().expect("it runs");
    let mut command = Command::new(this);
    command
        .args([
            "--exact",
            name_of(the_traced_process),
            "--test-threads=1",
            "--nocapture",
        ])
        .env(CASE, name)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut process = spawn(&mut command).expect("it starts");
    let mut errors = BufReader::new(process.stderr.take().expect("it is piped")).lines();
    let tid = errors
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.parse().ok());
    let client: u32 = tid.expect("it gets ready");
    let tracer = Tracer::attach(process.id());
    let mut input = process.stdin.take().expect("it is piped");
    writeln!(input, "go").expect("it listens");
    let spans = tracer.and_then(Tracer::spans);
    let errors: Vec<_> = errors.map_while(Result::ok).collect();
    assert!(process.wait().expect("it ends").success(), "{errors:#?}");
    let spans = match spans {
        Err(refused @ TraceError::Refused(_)) => {
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {refused}");
            println!("NOT RUN: {refused}");
            return None;
        }
        spans => spans.expect("it makes both marks"),
    };
    let (mut of_client, mut of_server) = (Counts::new(), Counts::new());
    for asked in spans.into_iter().flatten() {
        let counts = if asked.thread == client {
            &mut of_client
        } else {
            &mut of_server
        };
        *counts.entry(asked.name).or_default() += asked.calls;
    }
    Some((of_client, of_server))
}

fn asks_for_nothing_more(name: &str) {
    let Some((mut of_client, mut of_server)) = traced(name) else {
        return;
    };
    println!("{name}: client {of_client:?}, server {of_server:?}");
    let of_both = [of_client.remove("sendto"), of_server.remove("sendto")];
    assert_eq!(of_both, [Some(CALLS); 2], "sendto in {name}");
    // On a loaded machine, some calls find their connection idle, and poll it first.
    let received = of_client.remove("recvfrom").unwrap_or_default();
    assert!(
        (CALLS..=CALLS + CALLS / 10).contains(&received),
        "{received} recvfrom of the client in {name}"
    );
    // A thread that stays has begun the first one before, and may begin the last one after.
    let received = of_server.remove("recvfrom").unwrap_or_default();
    assert!(
        (CALLS - 1..=CALLS).contains(&received),
        "{received} recvfrom of the server in {name}"
    );
    let waits: u64 = ["epoll_wait", "epoll_pwait", "epoll_pwait2"]
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
fn a_call_with_a_deadline_sends_and_receives() {
    asks_for_nothing_more("deadline");
}

#[cfg(feature = "distributable-threads")]
#[test]
fn a_call_within_a_segment_sends_and_receives() {
    asks_for_nothing_more("segment");
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
