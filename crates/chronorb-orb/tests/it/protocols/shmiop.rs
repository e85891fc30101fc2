//! GIOP over shared memory: every kind of call, lanes, polling threads, and processes that are
//! killed in the middle of a call.
//!
//! The other processes of the tests are this program again.

use chronorb_cdr::Encoder;
use chronorb_giop::{PathProfile, TAG_PLACE, TAG_SHMIOP, TAG_TAO_ENDPOINTS, TaoPathEndpoint};
use chronorb_orb::codegen::v1::{reply_error, unknown_user_exception};
use chronorb_orb::poa::Policy;
use chronorb_orb::{
    CompletionStatus, Operation, Orb, OrbConfig, PendingReply, Reply, Stage, StageProbe,
    SystemExceptionKind, ThreadpoolStrategy, WaitPolicy,
};
use chronorb_probe::{Mark, TraceError, Tracer, trace_mark};
use chronorb_rt::{Deadline, thread_id};
use chronorb_transport::parse_endpoints;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::descriptors::spawn;
use crate::support::laned::{LANES, PROPAGATED, Pool, corba, laned_by};
use crate::support::strategies::STRATEGIES;
use crate::support::{
    PATIENCE, add, call, echo, kind_and_completion, name_of, nothing, orb_with, priority, served_by,
};

fn by_shared_memory(endpoint: &str, configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    orb_with(|config| {
        config.listen_endpoints = parse_endpoints(endpoint).expect("an endpoint");
        configure(config);
    })
}

/// Returns a server with two threads that read and serve, with this wait strategy.
fn server(waiting: WaitPolicy) -> Orb {
    by_shared_memory("shmiop://", |config| {
        config.threads = 2.into();
        config.threadpool_strategy = ThreadpoolStrategy::LeaderFollowers;
        config.server_wait = waiting;
    })
}

const WAITINGS: [WaitPolicy; 2] = [WaitPolicy::Block, WaitPolicy::Poll];

#[test]
fn a_reference_tells_the_path_and_on_which_machine_it_is() {
    let s = served_by(server(WaitPolicy::Block));
    let profile = &s.object.ior().profiles[0];
    assert_eq!(profile.tag, TAG_SHMIOP);
    let profile = PathProfile::decode(&profile.data).expect("it is our own");
    assert!(std::path::Path::new(&profile.path).exists());
    assert!(profile.components.iter().any(|c| c.tag == TAG_PLACE));
    let url = format!("corbaloc:shmiop:1.2@{}|/", profile.path);
    assert!(s.client.string_to_object(&url).is_ok(), "{url}");
    drop(s);
    assert!(!std::path::Path::new(&profile.path).exists());
}

#[test]
fn every_kind_of_call_goes_by_it() {
    for waiting in WAITINGS {
        let s = served_by(server(waiting));
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        assert_eq!(echo(&s.object, "Grüße"), Ok("Grüße".to_owned()));
        assert_eq!(s.object.non_existent(), Ok(false));
        assert_eq!(s.object.is_a(crate::support::BASE_ID), Ok(true));
        assert!(s.object.validate_connection().is_ok(), "it is located");
        let failed = kind_and_completion(nothing(&s.object, "fail"));
        let expected = (SystemExceptionKind::NoPermission, CompletionStatus::Maybe);
        assert_eq!(failed, expected);
        s.object
            .invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))
            .expect("it is sent");
        s.probe.gate.reach(1);
        for n in 0..1000 {
            assert_eq!(add(&s.object, n, 1), Ok(n + 1));
        }
        let snapshot = s.server.snapshot();
        let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
        let staying: usize = lanes.map(|lane| lane.staying).sum();
        assert_eq!(staying, 1, "a thread has the connection to itself");
    }
}

#[test]
fn large_messages_flow_through_rings_of_any_size_whole_and_in_fragments() {
    let octets = vec![7_u8; 5 << 20];
    for endpoint in ["shmiop://", "shmiop://|ring=4096", "shmiop://|ring=1048576"] {
        for fragment_size in [0, 10_000] {
            let configure = |config: &mut OrbConfig| {
                config.fragment_size = fragment_size;
                config.max_message_size = 64 << 20;
            };
            let s = served_by(by_shared_memory(endpoint, configure));
            let client = orb_with(configure);
            let object = client.ior_to_object(s.object.ior().clone());
            let object = object.expect("not nil");
            let write = |e: &mut Encoder<'_>| e.write_octet_seq(&octets);
            let back = call(&object, "octets", &write, |d| {
                Ok(d.read_octet_seq()? == octets)
            });
            assert_eq!(back, Ok(true), "{endpoint} {fragment_size}");
            client.shutdown(false).expect("it runs");
        }
    }
}

#[test]
fn a_server_sleeps_while_a_client_does_not_take_its_reply() {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = looks.clone();
    let s = served_by(by_shared_memory("shmiop://|ring=4096", |config| {
        config.stage_probe = Some(StageProbe::new(move |stage| {
            if stage == Stage::Read {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }));
    let octets = vec![7_u8; 100_000];
    let write = |e: &mut Encoder<'_>| e.write_octet_seq(&octets);
    let read = |reply: Reply<'_>| match reply {
        Reply::Normal(mut d) => d.read_octet_seq().map(<[u8]>::to_vec).map_err(reply_error),
        Reply::UserException(..) => Err(unknown_user_exception()),
    };
    let pending = PendingReply::begin(&s.object, &Operation::twoway("octets"), &write, read);
    let pending = pending.expect("it begins");
    // The ring has no room for the reply, and the peer makes none.
    let deadline = Deadline::after(PATIENCE);
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_millis(20));
        match looks.load(Ordering::Relaxed) {
            now if now > 0 && now == before => break,
            now => before = now,
        }
        assert!(!deadline.has_passed(), "it looks again and again: {before}");
    }
    assert_eq!(pending.wait(), Ok(octets));
}

#[test]
fn every_lane_has_a_path_and_serves_its_priority() {
    let model = Policy::PriorityModel(PROPAGATED, corba(LANES[0]));
    let server = by_shared_memory("shmiop://", |_| {});
    let s = laned_by(server, Pool::Lanes, &[model]);
    let profile = PathProfile::decode(&s.object.ior().profiles[0].data).expect("it is our own");
    let mut components = profile.components.iter();
    let lanes = components.find(|c| c.tag == TAG_TAO_ENDPOINTS);
    let lanes = TaoPathEndpoint::decode(&lanes.expect("there are lanes").data);
    let lanes = lanes.expect("it is our own");
    let priorities: Vec<_> = lanes.iter().map(|lane| lane.priority).collect();
    assert_eq!(priorities, LANES);
    for value in LANES {
        let (at, _) = s.at(Some(value), || priority(&s.object)).expect("a lane");
        assert_eq!(at, value);
    }
}

#[test]
fn clients_of_every_architecture_are_served() {
    let s = served_by(server(WaitPolicy::Block));
    for strategy in STRATEGIES {
        let client = orb_with(|config| config.client_connection = strategy);
        let object = client.ior_to_object(s.object.ior().clone());
        let object = object.expect("not nil");
        std::thread::scope(|threads| {
            for thread in 0..3 {
                let object = object.clone();
                threads.spawn(move || {
                    for n in 0..300 {
                        assert_eq!(add(&object, n, thread), Ok(n + thread), "{strategy:?}");
                    }
                });
            }
        });
        client.shutdown(false).expect("it runs");
    }
}

/// The environment variable that tells another process its part.
const ROLE: &str = "CHRONORB_TEST_SHARED_MEMORY";
const CALLS: i32 = 500;

/// The body of the other process; it does nothing in the test's own process.
#[test]
fn the_other_process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let mut words = role.split_whitespace();
    let waiting = match (words.next(), words.next()) {
        (Some(role), Some("poll")) => (role, WaitPolicy::Poll),
        (Some(role), _) => (role, WaitPolicy::Block),
        (None, _) => panic!("there is no role"),
    };
    match waiting {
        ("server", waiting) => {
            let s = served_by(server(waiting));
            say(&s.server.object_to_string(&s.object));
            hear();
            trace_mark(Mark::Next);
            say("counted");
            hear();
            trace_mark(Mark::Last);
            std::process::exit(0);
        }
        ("caller", waiting) => {
            let client = orb_with(|config| config.client_wait = waiting);
            let object = client.string_to_object(hear().trim());
            let object = object.expect("the reference reads");
            make_it_stay(&object);
            say("ready");
            hear();
            trace_mark(Mark::Next);
            for n in 0..CALLS {
                assert_eq!(add(&object, n, 1), Ok(n + 1));
            }
            trace_mark(Mark::Last);
            std::process::exit(0);
        }
        ("victim", _) => {
            let client = orb_with(|_| {});
            let object = client.string_to_object(hear().trim());
            let object = object.expect("the reference reads");
            make_it_stay(&object);
            let _ = nothing(&object, "wait");
        }
        (role, _) => panic!("there is no role {role}"),
    }
}

fn make_it_stay(object: &chronorb_orb::Object) {
    // More than a thread skips a connection for, even if it was called from it twice.
    for n in 0..1000 {
        assert_eq!(add(object, n, 1), Ok(n + 1));
    }
}

fn say(word: &str) {
    println!("\n{MARK} {} {word}", thread_id());
}

fn hear() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("it is piped");
    assert_ne!(line, "", "the first process has ended");
    line
}

const MARK: &str = "the other process:";

struct Other {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn start(role: &str) -> Self {
        let this = std::env::current_exe().expect("it runs");
        let mut command = Command::new(this);
        command
            .args(["--exact", name_of(the_other_process), "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = spawn(&mut command).expect("it starts");
        Self {
            input: process.stdin.take().expect("it is piped"),
            output: BufReader::new(process.stdout.take().expect("it is piped")),
            process,
        }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.input, "{word}").expect("it listens");
    }

    /// Returns the next output, and the thread that wrote it.
    fn word(&mut self) -> (u32, String) {
        loop {
            let mut line = String::new();
            let n = self.output.read_line(&mut line).expect("it is open");
            assert_ne!(n, 0, "the other process ended without a word");
            let said = line.trim_end().strip_prefix(MARK).map(str::trim_start);
            if let Some((thread, word)) = said.and_then(|said| said.split_once(' ')) {
                return (thread.parse().expect("a thread id"), word.to_owned());
            }
        }
    }

    fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it has ended");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_server_that_is_killed_during_a_call_ends_the_call() {
    for role in ["server block", "server poll"] {
        for waiting in WAITINGS {
            let mut server = Other::start(role);
            let (_, reference) = server.word();
            let client = orb_with(|config| config.client_wait = waiting);
            let object = client.string_to_object(&reference);
            let object = object.expect("the reference reads");
            make_it_stay(&object);
            std::thread::scope(|scope| {
                let call = scope.spawn(|| nothing(&object, "wait"));
                // The call has reached the server, and another one overtakes it.
                while add(&object, 1, 1) != Ok(2) {}
                server.kill();
                let (kind, _) = kind_and_completion(call.join().expect("no panic"));
                assert!(
                    matches!(
                        kind,
                        SystemExceptionKind::CommFailure | SystemExceptionKind::Transient
                    ),
                    "{kind:?} of {role} {waiting:?}"
                );
            });
            let (kind, _) = kind_and_completion(add(&object, 1, 1));
            assert!(kind != SystemExceptionKind::Timeout, "{kind:?}");
            client.shutdown(false).expect("it runs");
        }
    }
}

#[test]
fn a_client_that_is_killed_during_a_call_leaves_nothing_behind() {
    for waiting in WAITINGS {
        let s = served_by(server(waiting));
        let mut victim = Other::start("victim");
        victim.tell(&s.server.object_to_string(&s.object));
        s.probe.gate.reach(1);
        victim.kill();
        s.probe.gate.set(2);
        let deadline = Deadline::after(PATIENCE);
        let connections = || -> usize {
            let snapshot = s.server.snapshot();
            let lanes = snapshot.pools.iter().flat_map(|pool| &pool.lanes);
            lanes.map(|lane| lane.connections).sum()
        };
        while connections() > 0 {
            assert!(!deadline.has_passed(), "its connection is still there");
            std::thread::yield_now();
        }
        assert_eq!(add(&s.object, 2, 2), Ok(4), "others are served");
        assert_eq!(s.probe.notes.load(Ordering::Relaxed), 0);
    }
}

/// Returns the system calls of a process's threads between its marks, except for those of the
/// thread that made the marks; `None` if the process cannot be traced.
fn asked(tracer: Result<Tracer, TraceError>, maker: Option<u32>) -> Option<Vec<(String, u64)>> {
    let spans = match tracer.and_then(Tracer::spans) {
        Err(refused @ TraceError::Refused(_)) => {
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {refused}");
            println!("NOT RUN: {refused}");
            return None;
        }
        spans => spans.expect("it makes both marks"),
    };
    let all = spans.into_iter().flatten();
    let of_others = all.filter(|asked| Some(asked.thread) != maker);
    Some(of_others.map(|asked| (asked.name, asked.calls)).collect())
}

/// Asserts that in some attempt no thread is woken. The remaining system calls are occasional
/// checks of the clock or the socket. On an overloaded machine, polling threads sleep in the end,
/// and are woken.
fn assert_nobody_is_woken(mut attempt: impl FnMut() -> Option<Vec<(String, u64)>>) {
    let waking = ["futex", "sendto", "sendmsg", "epoll_wait", "epoll_pwait"];
    let deadline = Deadline::after(PATIENCE);
    while !deadline.has_passed() {
        let Some(asked) = attempt() else {
            return;
        };
        let of_waking = asked.iter().filter(|(name, _)| waking.contains(&&**name));
        let calls: u64 = of_waking.map(|(_, calls)| calls).sum();
        println!("{calls} for {CALLS} calls: {asked:?}");
        if calls <= CALLS as u64 / 50 {
            return;
        }
    }
    panic!("a thread is woken each time");
}

/// Returns a server and a caller that poll, and the thread of the server's marks.
fn both_look() -> (Other, u32, Other) {
    let mut server = Other::start("server poll");
    let (marks, reference) = server.word();
    let mut caller = Other::start("caller poll");
    caller.tell(&reference);
    let _ready = caller.word();
    (server, marks, caller)
}

#[test]
fn where_both_sides_look_a_call_asks_a_client_for_nothing() {
    assert_nobody_is_woken(|| {
        let (_server, _, mut caller) = both_look();
        let tracer = Tracer::attach(caller.process.id());
        caller.tell("go");
        asked(tracer, None)
    });
}

#[test]
fn where_both_sides_look_a_call_asks_a_server_for_nothing() {
    assert_nobody_is_woken(|| {
        let (mut server, marks, mut caller) = both_look();
        let tracer = Tracer::attach(server.process.id());
        server.tell("count");
        server.word();
        // A thread that was stopped to be traced may have had to be woken.
        caller.tell("go");
        let ended = caller.process.wait().expect("it is a child");
        assert!(ended.success(), "{ended}");
        server.tell("end");
        asked(tracer, Some(marks))
    });
}
