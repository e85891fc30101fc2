//! The log from the point of view of an application's subscriber. This is a separate program, since
//! a process has only one global subscriber.

#![cfg(feature = "tracing")]

#[cfg(feature = "ssliop")]
#[path = "../../../chronorb-transport/tests/it/certificates/mod.rs"]
mod certificates;
#[cfg(feature = "ssliop")]
mod handshakes;

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::Duration;

use chronorb_cdr::Decoder;
use chronorb_orb::codegen::v1::{bad_operation, reply_error};
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::rtcorba::{Lane, Priority, ThreadpoolLanes};
use chronorb_orb::{
    Call, Incident, Object, Operation, Orb, OrbConfig, Reply, ReplyWriter, Scope, Skeleton,
    SystemException,
};
use chronorb_rt::{Deadline, Gate, PiMutex, log};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The content of an event.
#[derive(Clone, Debug, Default)]
struct LoggedEvent {
    cause: String,
    peer: String,
    number: i64,
    message: String,
    thread: String,
}

/// A subscriber that blocks when the test wants it to.
struct BlockingSubscriber {
    /// 1 while events block.
    blocks: Gate,
    /// Advances when an event blocks.
    waiting: Gate,
    told: PiMutex<Vec<LoggedEvent>>,
}

static SUBSCRIBER: BlockingSubscriber = BlockingSubscriber {
    blocks: Gate::new(0),
    waiting: Gate::new(0),
    told: PiMutex::new(Vec::new()),
};

struct Handle;

impl Visit for LoggedEvent {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "cause" => self.cause = value.to_owned(),
            "peer" => self.peer = value.to_owned(),
            "thread" => self.thread = value.to_owned(),
            _ => {}
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "number" {
            self.number = value;
        }
    }
}

impl Subscriber for Handle {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "chronorb"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        assert_eq!(
            std::thread::current().name(),
            Some("chronorb.log"),
            "no other thread calls the subscriber"
        );
        SUBSCRIBER.waiting.advance();
        SUBSCRIBER.blocks.wait_while(1, Deadline::after(PATIENCE));
        let mut told = LoggedEvent::default();
        event.record(&mut told);
        SUBSCRIBER.told.lock().push(told);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Installs the subscriber once, and serializes the tests.
fn subscribed() -> chronorb_rt::PiMutexGuard<'static, ()> {
    static TURN: PiMutex<()> = PiMutex::new(());
    static INSTALLED: OnceLock<()> = OnceLock::new();
    let turn = TURN.lock();
    INSTALLED.get_or_init(|| {
        tracing::subscriber::set_global_default(Handle).expect("there is none yet");
    });
    turn
}

fn told_of(cause: &str) -> Vec<LoggedEvent> {
    assert!(log::flush(PATIENCE), "the log comes to its end");
    let told = SUBSCRIBER.told.lock();
    told.iter().filter(|t| t.cause == cause).cloned().collect()
}

struct Adder;

impl Skeleton for Adder {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Adder:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"add" => {
                let sum = d.read_i32()?.wrapping_add(d.read_i32()?);
                reply.normal()?.write_i32(sum).map_err(reply_error)
            }
            b"panic" => panic!("the servant was asked to"),
            _ => Err(bad_operation()),
        }
    }
}

fn add(object: &Object, a: i32, b: i32) -> Result<i32, SystemException> {
    Scope::with(|scope| {
        let operation = Operation::twoway("add");
        let reply = object.invoke(scope, &operation, &|e| {
            e.write_i32(a)?;
            e.write_i32(b)
        })?;
        match reply {
            Reply::Normal(mut d) => Ok(d.read_i32()?),
            Reply::UserException(..) => Err(bad_operation()),
        }
    })
}

fn fail(object: &Object, operation: &'static str) -> SystemException {
    let failed = Scope::with(|scope| {
        object
            .invoke(scope, &Operation::twoway(operation), &|_| Ok(()))
            .map(drop)
    });
    failed.expect_err(operation)
}

fn count(orb: &Orb, incident: Incident) -> u64 {
    let incidents = orb.snapshot().incidents;
    let mut incidents = incidents.into_iter();
    let (_, count) = incidents.find(|(of, _)| *of == incident).expect("all");
    count
}

fn orb() -> Orb {
    let mut config = OrbConfig::default();
    config.listen_endpoints = chronorb_orb::parse_endpoints("iiop://127.0.0.1:0").expect("correct");
    Orb::with_config(config).expect("an ORB")
}

/// Returns the port in an object's only profile.
fn port_of(object: &Object) -> u16 {
    let profile = &object.ior().profiles[0];
    let profile = chronorb_giop::IiopProfile::decode(&profile.data).expect("it is IIOP");
    profile.port
}

/// Sends octets that are not GIOP, and waits until the server has closed the connection.
fn send_garbage(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("positive");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_high_lane_serves_on_while_the_subscriber_is_blocked() {
    let _turn = subscribed();
    let (server, client) = (orb(), orb());
    let [low, high] = [1_000, 20_000].map(|value| Priority::new(value).expect("positive"));
    let pool = server
        .rt()
        .create_threadpool_with_lanes(&ThreadpoolLanes {
            lanes: vec![Lane::new(low, 1), Lane::new(high, 1)],
            ..Default::default()
        })
        .expect("a pool");
    let root = server.root_poa().expect("it runs");
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ServerDeclared, high),
    ];
    let poa = root.create_poa("high", Some(root.manager()), &policies);
    let object = poa.expect("a POA").serve(Adder).expect("active");
    root.manager().activate().expect("it runs");
    let object = client
        .string_to_object(&server.object_to_string(&object))
        .expect("a reference");
    let lane_port = port_of(&object);

    SUBSCRIBER.blocks.set(1);
    let lost_before = log::lost();
    let before = SUBSCRIBER.waiting.get();
    send_garbage(lane_port);
    SUBSCRIBER
        .waiting
        .wait_while(before, Deadline::after(PATIENCE));
    // The only thread of the lane logs far more than the ring holds, and serves in between.
    for i in 0..400 {
        send_garbage(lane_port);
        assert_eq!(add(&object, i, 1), Ok(i + 1));
    }
    assert_eq!(count(&server, Incident::MalformedMessage), 401);
    let lost = log::lost() - lost_before;
    assert!(lost >= 400 - 128, "{lost} were lost");

    SUBSCRIBER.blocks.set(0);
    let malformed = told_of("malformed message");
    let direct = malformed.iter().filter(|told| told.number == 0);
    assert_eq!(direct.count(), 5, "of one peer no more are told");
    assert!(
        malformed
            .iter()
            .all(|told| told.peer.starts_with("127.0.0.1"))
    );
    let told_lost: i64 = told_of("lost events").iter().map(|told| told.number).sum();
    assert_eq!(told_lost as u64, log::lost());
    client.shutdown(true).expect("not from a servant");
    server.shutdown(true).expect("not from a servant");
    let started = told_of("started lane");
    assert!(
        started
            .iter()
            .any(|told| told.peer == "lane 1:1" && told.number == 20_000)
    );
}

#[test]
fn incidents_are_told_with_peer_and_cause() {
    let _turn = subscribed();
    let mut config = OrbConfig::default();
    config.max_connections = 2;
    config.listen_endpoints = chronorb_orb::parse_endpoints("iiop://127.0.0.1:0").expect("correct");
    let server = Orb::with_config(config).expect("an ORB");
    let client = orb();
    let root = server.root_poa().expect("it runs");
    let object = root.serve(Adder).expect("active");
    root.manager().activate().expect("it runs");
    let port = port_of(&object);
    let remote = client
        .string_to_object(&server.object_to_string(&object))
        .expect("a reference");

    root.manager().hold_requests(false).expect("it is active");
    root.manager().activate().expect("it runs");
    let address = format!("iiop://127.0.0.1:{port} ");
    let listening = told_of("listening");
    let lines = listening.iter().map(|told| &told.message);
    let lines: Vec<_> = lines.filter(|line| line.contains(&address)).collect();
    assert_eq!(lines.len(), 1, "it is told once: {listening:?}");
    assert!(lines[0].contains(&format!("{address}(not authenticated)")));

    for _ in 0..3 {
        let _ = fail(&remote, "panic");
    }
    let panics = told_of("panicked servant");
    assert_eq!(panics.len(), 1, "an operation is told once: {panics:?}");
    assert_eq!(panics[0].peer, "operation panic");
    assert!(panics[0].message.contains("the servant was asked to"));
    assert!(panics[0].thread.starts_with("0:0."), "{panics:?}");
    assert_eq!(count(&server, Incident::PanickedServant), 3);

    let unknown = format!("corbaloc::127.0.0.1:{port}/Absent");
    let unknown = client.string_to_object(&unknown).expect("a URL");
    let exception = fail(&unknown, "add");
    let told = told_of("unknown object");
    assert!(told[0].message.contains("add of key Absent"), "{told:?}");
    let failure = client.last_failure().expect("it is known");
    assert_eq!(failure.exception(), exception);
    assert!(
        failure.cause().contains(&format!("127.0.0.1:{port}")),
        "{failure}"
    );

    // The two permitted connections are those of the client: by the URL it negotiates another
    // protocol. The connection that was idle longest is evicted.
    let _late = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let deadline = Deadline::after(PATIENCE);
    while count(&server, Incident::Evicted) == 0 {
        assert!(!deadline.has_passed(), "nothing makes room");
        std::thread::yield_now();
    }
    let evicted = told_of("made room");
    assert_eq!(evicted.len(), 1, "{evicted:?}");
    assert!(evicted[0].peer.starts_with("127.0.0.1:"), "{evicted:?}");
    assert!(
        evicted[0].message.contains("needs its place"),
        "{evicted:?}"
    );
    client.shutdown(true).expect("not from a servant");
    server.shutdown(true).expect("not from a servant");
    assert!(
        told_of("ended lane")
            .iter()
            .any(|told| told.peer == "lane 0:0")
    );
}

#[test]
fn a_lane_whose_endpoint_is_taken_is_told_with_the_error() {
    let _turn = subscribed();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("iiop://{}", taken.local_addr().expect("bound"));
    let mut config = OrbConfig::default();
    config.listen_endpoints = chronorb_orb::parse_endpoints(&endpoint).expect("correct");
    let server = Orb::with_config(config).expect("an ORB");
    let root = server.root_poa().expect("it runs");
    root.serve(Adder).map(drop).expect_err("the port is taken");
    assert_eq!(count(&server, Incident::FailedLane), 1);
    let failed = told_of("failed lane");
    let told = failed.iter().find(|told| told.message.contains(&endpoint));
    let told = told.expect("it is told");
    assert_eq!(told.peer, "lane 0:0");
    assert!(told.message.contains("os error 98"), "{told:?}");
    server.shutdown(true).expect("not from a servant");
}

/// The program that the next test runs.
#[test]
fn a_program_without_a_subscriber() {
    if std::env::var_os("CHRONORB_ORB_LOG").is_none() {
        return;
    }
    let config = OrbConfig::read(&mut Vec::new()).expect("the environment is correct");
    let mut config = config;
    config.listen_endpoints = chronorb_orb::parse_endpoints("iiop://127.0.0.1:0").expect("correct");
    let server = Orb::with_config(config).expect("an ORB");
    let root = server.root_poa().expect("it runs");
    let object = root.serve(Adder).expect("active");
    root.manager().activate().expect("it runs");
    send_garbage(port_of(&object));
    server.shutdown(true).expect("not from a servant");
}

#[test]
fn the_setting_alone_gives_a_program_lines_on_standard_error() {
    let run = |filter: &str| {
        let program = std::env::current_exe().expect("it has a path");
        let name = "a_program_without_a_subscriber";
        let output = std::process::Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env("CHRONORB_ORB_LOG", filter)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stderr).expect("text");
        let lines = text.lines().filter(|line| line.contains(" chronorb: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = run("info");
    let has = |parts: &[&str]| {
        lines
            .iter()
            .any(|l| parts.iter().all(|part| l.contains(part)))
    };
    assert!(
        has(&["INFO", "started lane: 2 threads", "iiop://127.0.0.1:"]),
        "{lines:?}"
    );
    assert!(
        has(&["WARN", "malformed message: ", "peer=127.0.0.1:"]),
        "{lines:?}"
    );
    assert!(has(&["ended lane", "peer=\"lane 0:0\""]), "{lines:?}");
    assert!(run("off").is_empty());
    let lines = run("warn");
    assert!(lines.iter().all(|line| line.contains("WARN")), "{lines:?}");
}

const PATIENCE: Duration = Duration::from_secs(60);
