//! The monitor: the data on its socket, its permitted clients, and its behaviour with faulty ones.

use chronorb_orb::monitor::{Client, ClientError, ReadError, Report};
use chronorb_orb::poa::{Policy, PriorityModel};
use chronorb_orb::rtcorba::{Lane, Priority, RequestBuffering, ThreadpoolLanes};
use chronorb_orb::{Activity, InitError, LaneSnapshot, MonitorSocket, Orb, OrbConfig};
use chronorb_rt::Deadline;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

use crate::support::descriptors::spawn;
use crate::support::{PATIENCE, ServedProbe, add, name_of, nothing, orb, orb_with, served_by};

/// An ORB with a monitor at its own socket.
struct MonitoredOrb {
    orb: Orb,
    socket: PathBuf,
    _directory: TempDir,
}

fn monitored() -> MonitoredOrb {
    monitored_with(|_| {})
}

fn monitored_with(configure: impl FnOnce(&mut OrbConfig)) -> MonitoredOrb {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("orb.sock");
    let orb = orb_with(|config| {
        config.monitor = MonitorSocket::At(socket.clone());
        configure(config);
    });
    MonitoredOrb {
        orb,
        socket,
        _directory: directory,
    }
}

impl Drop for MonitoredOrb {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true);
    }
}

impl MonitoredOrb {
    fn client(&self) -> Client {
        Client::connect(&self.socket, PATIENCE).expect("it listens")
    }

    /// Returns a connection for arbitrary requests.
    fn stream(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("it is more than nothing");
        stream
    }

    /// Queries until the answer has what the test waits for.
    fn told(&self, what: &str, is_told: impl Fn(&Report) -> bool) -> Report {
        let mut client = self.client();
        let deadline = Deadline::after(PATIENCE);
        loop {
            let report = client.snapshot().expect("it answers");
            if is_told(&report) {
                return report;
            }
            assert!(!deadline.has_passed(), "{what} is not told: {report:#?}");
        }
    }
}

fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

fn lane<'r>(report: &'r Report, name: &str) -> &'r LaneSnapshot {
    let mut lanes = report.pools.iter().flat_map(|pool| &pool.lanes);
    let lane = lanes.find(|lane| lane.name == name);
    lane.unwrap_or_else(|| panic!("there is no lane {name}: {report:#?}"))
}

fn doing(lane: &LaneSnapshot, what: Activity) -> usize {
    let threads = lane.threads.iter();
    threads.filter(|thread| thread.activity == what).count()
}

/// Returns the answer to these octets, after which the connection must end.
fn last_answer(mut stream: UnixStream, sent: &[u8]) -> String {
    // The monitor may have answered and gone before it has all.
    let _ = stream.write_all(sent);
    let mut answer = String::new();
    let mut stream = BufReader::new(stream);
    stream.read_line(&mut answer).expect("it answers");
    assert!(has_ended(&mut stream), "the connection goes on");
    answer
}

/// Returns whether the connection ends in time.
fn has_ended(stream: &mut impl Read) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(octets) => octets == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Returns a pool of the ORB with a lane of one buffering thread, which serves a probe for another
/// ORB.
fn with_a_lane(orb: &Orb) -> ServedProbe {
    let mut lanes = ThreadpoolLanes {
        lanes: vec![Lane::new(corba(8_000), 1)],
        ..Default::default()
    };
    lanes.request_buffering = Some(RequestBuffering {
        max_requests: 1,
        max_octets: 0,
    });
    let pool = orb.rt().create_threadpool_with_lanes(&lanes);
    let pool = pool.expect("the lane opens");
    let mut served = served_by(orb.clone());
    let root = orb.root_poa().expect("it is there");
    let policies = [
        Policy::Threadpool(pool),
        Policy::PriorityModel(PriorityModel::ServerDeclared, corba(8_000)),
    ];
    let poa = root.create_poa("rt", Some(root.manager()), &policies);
    let probe = crate::support::ProbeSkeleton(served.probe.clone());
    let object = poa.expect("they agree").serve(probe).expect("it activates");
    let text = orb.object_to_string(&object);
    served.object = served.client.string_to_object(&text).expect("it reads");
    served
}

#[test]
fn lanes_are_told_with_their_threads_and_what_these_are_doing() {
    let m = monitored();
    let s = with_a_lane(&m.orb);
    let before = m.told("a waiting lane", |report| {
        doing(lane(report, "1:0"), Activity::Waiting) == lane(report, "1:0").threads.len()
    });
    assert_eq!(before.pid, std::process::id());
    assert_eq!(before.pools.len(), 2, "the ORB's own, and that with a lane");
    let own = &before.pools[0];
    assert!(!own.has_lanes && own.number == 0);
    assert_eq!((own.lanes[0].priority, own.lanes[0].seats), (None, 2));
    let laned = lane(&before, "1:0");
    assert_eq!(
        (laned.priority, laned.seats, laned.served),
        (Some(corba(8_000)), 1, 0)
    );
    assert_eq!(laned.endpoints.len(), 1, "{laned:?}");
    assert!(
        laned.endpoints[0].starts_with("iiop://127.0.0.1:"),
        "{laned:?}"
    );
    for thread in &laned.threads {
        assert!(thread.name.starts_with("1:0."), "{thread:?}");
        assert_eq!(thread.scheduling, laned.scheduling);
        assert!(!thread.affinity.is_empty());
    }

    std::thread::scope(|threads| {
        let busy = threads.spawn(|| nothing(&s.object, "wait"));
        s.probe.gate.reach(1);
        let waiting = threads.spawn(|| add(&s.object, 40, 2));
        let told = m.told("a busy lane with a queue", |report| {
            let lane = lane(report, "1:0");
            doing(lane, Activity::Serving) == 1 && (lane.queued, lane.buffered) == (1, 1)
        });
        let laned = lane(&told, "1:0");
        assert_eq!((laned.served, laned.buffered, laned.refused), (0, 1, 0));
        add(&s.object, 1, 1).expect_err("there is no room for a third");
        m.told("the refusal", |report| lane(report, "1:0").refused == 1);
        s.probe.gate.set(2);
        assert_eq!(busy.join().expect("it does not panic"), Ok(()));
        assert_eq!(waiting.join().expect("it does not panic"), Ok(42));
    });
    let after = m.told("both requests", |report| lane(report, "1:0").served == 2);
    let served: u64 = lane(&after, "1:0").threads.iter().map(|t| t.served).sum();
    assert_eq!(served, 2);
    assert_eq!(lane(&after, "1:0").queued, 0);
    assert!(after.monotonic_us > before.monotonic_us);
}

#[test]
fn all_threads_are_told_also_those_of_no_lane() {
    let m = monitored_with(|config| config.orb_id = "whole".to_owned());
    let _root = m.orb.root_poa().expect("the endpoint opens");
    let application = chronorb_rt::ThreadBuilder::new("of the application");
    let latch = std::sync::Arc::new(crate::support::Latch::default());
    let waits = latch.clone();
    let thread = application.spawn(move || waits.reach(1));
    let thread = thread.expect("it can be made");
    let report = m.told("a sleeping thread", |report| {
        let mut others = report.other_threads.iter();
        others.any(|other| other.tid == thread.tid() && other.activity == Activity::Sleeping)
    });
    latch.set(1);
    thread.join().expect("it does not panic");
    let mut others = report.other_threads.iter();
    let monitor = others
        .find(|thread| thread.activity == Activity::Monitoring)
        .expect("the monitor tells of itself");
    assert_eq!(monitor.name, "monitor whole");
    assert!(!monitor.affinity.is_empty());
}

#[test]
fn times_are_taken_while_there_is_a_client_also_by_new_lanes() {
    let m = monitored();
    let taken = |report: &Report, name: &str| -> u64 {
        lane(report, name)
            .times
            .iter()
            .map(|(_, count)| count)
            .sum()
    };
    let mut client = m.client();
    client.snapshot().expect("it answers");
    // The lane is created while there is a client.
    let s = served_by(m.orb.clone());
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    let report = m.told("the request", |report| lane(report, "0:0").served == 1);
    assert_eq!(taken(&report, "0:0"), 1);

    drop(client);
    // When the last client has gone, no further records are taken.
    let deadline = Deadline::after(PATIENCE);
    let sum = |snapshot: chronorb_orb::Snapshot| -> (u64, u64) {
        let lane = &snapshot.pools[0].lanes[0];
        (lane.served, lane.times.iter().map(|(_, count)| count).sum())
    };
    loop {
        let (served, taken) = sum(m.orb.snapshot());
        assert_eq!(add(&s.object, 1, 2), Ok(3));
        let (served_then, taken_then) = sum(m.orb.snapshot());
        if served_then > served && taken_then == taken {
            break;
        }
        assert!(!deadline.has_passed(), "times are taken without a watcher");
    }
}

#[test]
fn what_the_application_watches_goes_on_without_clients() {
    let m = monitored();
    let s = served_by(m.orb.clone());
    m.orb.watch(true);
    m.client().snapshot().expect("it answers");
    // The next client is taken in when the one before has been let go.
    m.client().snapshot().expect("it answers");
    assert_eq!(add(&s.object, 1, 2), Ok(3));
    let report = m.told("the request", |report| lane(report, "0:0").served == 1);
    assert_eq!(lane(&report, "0:0").times.len(), 1);
}

#[test]
fn rubbish_is_answered_once() {
    let m = monitored();
    for sent in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\n",
        b"snapshots\n",
        b"\xff\xfe\0\n",
        b"GIOP\x01\x02\x00\x00\x00\x00\x00\x00\n",
    ] {
        let answer = last_answer(m.stream(), sent);
        let error = Report::read(&answer).expect_err("no report");
        assert!(matches!(error, ReadError::Refused(_)), "{error}");
    }
    m.client().snapshot().expect("it serves others");
}

#[test]
fn a_line_without_end_is_not_waited_for() {
    let m = monitored();
    let answer = last_answer(m.stream(), &[b'x'; 64 << 10]);
    assert!(answer.contains("less than 64 octets"), "{answer}");
    m.client().snapshot().expect("it serves others");
}

#[test]
fn several_lines_at_once_are_answered_one_after_another() {
    let m = monitored();
    let mut stream = m.stream();
    stream
        .write_all(b"snapshot\nsnapshot\r\nsnap")
        .expect("it is taken");
    let mut lines = BufReader::new(stream.try_clone().expect("a descriptor")).lines();
    let mut answer = || lines.next().expect("an answer").expect("it is text");
    let (first, second) = (answer(), answer());
    stream.write_all(b"shot\n").expect("it is taken");
    let third = answer();
    let times = [first, second, third].map(|line| {
        let report = Report::read(&line).expect("a report");
        report.monotonic_us
    });
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn who_sends_half_a_line_or_nothing_or_goes_disturbs_nobody() {
    let m = monitored();
    let _silent = m.stream();
    let mut half = m.stream();
    half.write_all(b"snap").expect("it is taken");
    for _ in 0..100 {
        let mut gone = m.stream();
        let _ = gone.write_all(b"snapshot\n");
    }
    // Disconnected clients may hold their places for a moment longer.
    let deadline = Deadline::after(PATIENCE);
    while m.client().snapshot().is_err() {
        assert!(!deadline.has_passed(), "it does not go on");
    }
}

#[test]
fn who_only_asks_and_never_reads_is_let_go() {
    // Answers are long if there are many threads.
    let m = monitored_with(|config| config.threads = 32.into());
    let _root = m.orb.root_poa().expect("the endpoint opens");
    let mut stream = m.stream();
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("it is more than nothing");
    let ends = loop {
        // Once its answers fill the socket, it is not read any more, and then disconnected.
        if let Err(error) = stream.write_all(b"snapshot\n") {
            break error.kind();
        }
        m.client().snapshot().expect("it serves others meanwhile");
    };
    let is_let_go = matches!(ends, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
    assert!(is_let_go, "{ends}");
}

#[test]
fn one_client_too_many_is_told_so() {
    let m = monitored();
    let mut clients: Vec<Client> = Vec::new();
    let refused = loop {
        let mut client = m.client();
        match client.snapshot() {
            Ok(_) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert_eq!(clients.len(), 8);
    assert!(
        matches!(
            &refused,
            ClientError::Answer(ReadError::Refused(why)) if why.contains("8 clients")
        ),
        "{refused}"
    );
    clients.pop();
    let deadline = Deadline::after(PATIENCE);
    while m.client().snapshot().is_err() {
        assert!(
            !deadline.has_passed(),
            "the place of one is not given to another"
        );
    }
    for client in &mut clients {
        client.snapshot().expect("it stays");
    }
}

#[test]
fn it_ends_with_the_orb() {
    let m = monitored_with(|config| config.orb_id = "ending".to_owned());
    let mut client = m.client();
    client.snapshot().expect("it answers");
    assert_eq!(m.orb.monitor(), Some(&*m.socket));
    m.orb.shutdown(true).expect("it ends");
    assert!(!m.socket.exists());
    assert!(matches!(client.snapshot(), Err(ClientError::Closed)));
    let threads = chronorb_rt::list();
    assert!(threads.iter().all(|thread| thread.name != "monitor ending"));
}

#[test]
fn it_tells_what_an_orb_does_that_is_ending() {
    let m = monitored();
    let s = served_by(m.orb.clone());
    std::thread::scope(|threads| {
        let caller = threads.spawn(|| nothing(&s.object, "wait"));
        s.probe.gate.reach(1);
        m.orb.shutdown(false).expect("it begins to end");
        let report = m.told("a busy lane", |_| true);
        assert_eq!(doing(lane(&report, "0:0"), Activity::Serving), 1);
        s.probe.gate.set(2);
        assert_eq!(caller.join().expect("it does not panic"), Ok(()));
    });
}

#[test]
fn it_ends_with_the_last_handle_of_an_orb_that_serves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("orb.sock");
    let orb = orb_with(|config| config.monitor = MonitorSocket::At(socket.clone()));
    let mut client = Client::connect(&socket, PATIENCE).expect("it listens");
    client.snapshot().expect("it answers");
    drop(orb);
    let deadline = Deadline::after(PATIENCE);
    while socket.exists() {
        assert!(!deadline.has_passed(), "the socket stays");
        std::thread::yield_now();
    }
}

#[test]
fn without_the_setting_there_is_none() {
    let orb = orb();
    assert_eq!(orb.monitor(), None);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn a_socket_at_which_nobody_listens_is_replaced_and_another_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("orb.sock");
    drop(UnixListener::bind(&socket).expect("it opens"));
    let setting = || MonitorSocket::At(socket.clone());
    let orb = orb_with(|config| config.monitor = setting());
    Client::connect(&socket, PATIENCE)
        .and_then(|mut client| client.snapshot())
        .expect("it answers");

    let mut config = OrbConfig::default();
    config.monitor = setting();
    let error = Orb::with_config(config).expect_err("it is in use");
    assert!(matches!(error, InitError::Monitor(_)));
    let text = error.to_string();
    assert!(
        text.contains("orb.sock") && text.contains("in use"),
        "{text}"
    );
    orb.shutdown(true).expect("it ends");

    for (path, why) in [
        (directory.path().join("missing/orb.sock"), "No such file"),
        (directory.path().join("x".repeat(200)), "orb"),
    ] {
        let mut config = OrbConfig::default();
        config.monitor = MonitorSocket::At(path);
        let error = Orb::with_config(config).expect_err(why).to_string();
        assert!(error.contains("the monitor cannot be made"), "{error}");
    }
}

/// The environment variable of the process for the next test.
const WITH_ENVIRONMENT: &str = "CHRONORB_TEST_MONITOR_IN";

#[test]
fn switched_on_it_has_its_socket_in_the_users_runtime_directory() {
    if let Some(directory) = std::env::var_os(WITH_ENVIRONMENT) {
        return in_the_runtime_directory(Path::new(&directory));
    }
    let runtime = tempfile::tempdir().expect("a directory");
    let mut again = Command::new(std::env::current_exe().expect("it is known"));
    again
        .args([
            "--exact",
            name_of(switched_on_it_has_its_socket_in_the_users_runtime_directory),
        ])
        .env("XDG_RUNTIME_DIR", runtime.path())
        .env(WITH_ENVIRONMENT, runtime.path().join("chronorb"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = spawn(&mut again).and_then(Child::wait_with_output);
    let output = output.expect("the test starts itself");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
}

fn in_the_runtime_directory(directory: &Path) {
    let on = || orb_with(|config| config.monitor = MonitorSocket::On);
    let (first, second) = (on(), on());
    let sockets: Vec<_> = [&first, &second]
        .map(|orb| orb.monitor().expect("it has one").to_owned())
        .to_vec();
    assert_ne!(sockets[0], sockets[1], "two ORBs of one process");
    for socket in &sockets {
        assert_eq!(socket.parent(), Some(directory));
        let name = socket.file_name().and_then(|name| name.to_str());
        let start = format!("{}-", std::process::id());
        assert!(
            name.is_some_and(|name| name.starts_with(&start)),
            "{name:?}"
        );
    }
    assert_eq!(chronorb_orb::monitor::directories()[0], directory);
    for orb in [first, second] {
        orb.shutdown(true).expect("it ends");
    }
    let left = fs::read_dir(directory).expect("the directory stays");
    assert_eq!(left.count(), 0);

    fs::set_permissions(directory, Permissions::from_mode(0o755)).expect("it is ours");
    let mut config = OrbConfig::default();
    config.monitor = MonitorSocket::On;
    let error = Orb::with_config(config).expect_err("others can read there");
    assert!(error.to_string().contains("mode 0755"), "{error}");
}
