//! An operator's day: what goes wrong at a server, and for each case the message of the client, the
//! line in the log of the server, and the counter in `chronorb top`.
//!
//! The table of `docs/src/logging.md` tells the same. `cargo test -p chronorb-cli operators_day --
//! --nocapture` prints all of it.

use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chronorb_orb::codegen::v1::{Decoder, bad_operation};
use chronorb_orb::{
    Call, Operation, Orb, OrbConfig, ReplyWriter, Scope, Skeleton, SystemException,
};
use chronorb_rt::{Deadline, Gate};
use chronorb_transport::tls::TlsSettings;
use serde_json::Value;
use tempfile::TempDir;

use self::certificates::Authority;
use crate::support::{chronorb, stdout};

#[path = "../../../chronorb-transport/tests/it/certificates/mod.rs"]
pub(crate) mod certificates;

/// A case of the day.
struct Case {
    name: &'static str,
    /// Causes it, and returns the message of the client.
    run: fn() -> Outcome,
    /// Part of the client's message.
    client: &'static str,
    /// Parts of a line of the log.
    log: &'static [&'static str],
    /// A counter, and what it is at least.
    counter: Option<(&'static str, u64)>,
}

/// The observable results of a case.
struct Outcome {
    client: String,
    log: Vec<String>,
    top: Option<Value>,
}

const CASES: &[Case] = &[
    Case {
        name: "wrong certificate of a client",
        run: a_client_with_a_wrong_certificate,
        client: "was lost: received fatal alert: UnknownCA",
        log: &["failed handshake", "UnknownIssuer", "peer=127.0.0.1:"],
        counter: Some(("failed handshake", 1)),
    },
    Case {
        name: "wrong certificate of a server",
        run: a_server_with_a_wrong_certificate,
        client: "invalid peer certificate: UnknownIssuer",
        log: &["failed handshake", "UnknownCA", "peer=127.0.0.1:"],
        counter: Some(("failed handshake", 1)),
    },
    Case {
        name: "expired certificate",
        run: a_certificate_that_expires,
        client: "invalid peer certificate: certificate expired",
        log: &["failed handshake", "CertificateExpired", "peer=127.0.0.1:"],
        counter: Some(("failed handshake", 1)),
    },
    Case {
        name: "full server",
        run: a_full_server,
        client: "closed each connection without beginning the request",
        log: &["server full", "-ORBMaxConnections", "peer=127.0.0.1:"],
        counter: Some(("server full", 1)),
    },
    Case {
        name: "flood",
        run: a_flood,
        client: "answered",
        log: &["malformed message", "15 more like this were not told"],
        counter: Some(("malformed message", 20)),
    },
    Case {
        name: "bad key",
        run: a_bad_key,
        client: "raised by the server at 127.0.0.1:",
        log: &["unknown object", "nothing of key Missing"],
        counter: Some(("unknown object", 1)),
    },
    Case {
        name: "dead client",
        run: a_client_that_dies_in_a_message,
        client: "",
        log: &["late peer", "-ORBInputTimeout", "peer=127.0.0.1:"],
        counter: Some(("late peer", 1)),
    },
    Case {
        name: "dead server",
        run: a_server_that_dies_in_a_call,
        client: "was lost",
        log: &[],
        counter: None,
    },
];

#[test]
fn operators_day() {
    // Some cases wait for the clock, so that all run at a time.
    let outcomes = thread::scope(|scope| {
        let cases = CASES.iter().map(|case| (case, scope.spawn(case.run)));
        let cases: Vec<_> = cases.collect();
        let end = |(case, running): (_, thread::ScopedJoinHandle<'_, Outcome>)| {
            (case, running.join().expect("the case comes to its end"))
        };
        cases
            .into_iter()
            .map(end)
            .collect::<Vec<(&Case, Outcome)>>()
    });
    for (case, outcome) in outcomes {
        let Outcome { client, log, top } = outcome;
        let is_of_case = |line: &&String| case.log.iter().all(|part| line.contains(part));
        let line = log.iter().find(is_of_case);
        println!("{}\n  client: {client}", case.name);
        assert!(client.contains(case.client), "{}: {client}", case.name);
        if !case.log.is_empty() {
            println!("  log:    {}", line.map_or("", String::as_str));
            assert!(line.is_some(), "{}: {log:#?}", case.name);
        }
        if let Some((name, least)) = case.counter {
            let incidents = &top.expect("the server runs")["incidents"];
            println!("  top:    {name} {}", incidents[name]["total"]);
            assert!(
                incidents[name]["total"].as_u64() >= Some(least),
                "{}: {incidents}",
                case.name
            );
        }
    }
}

fn a_client_with_a_wrong_certificate() -> Outcome {
    let folder = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(folder.path(), "authority");
    let other = Authority::new(folder.path(), "other");
    let server = Server::with_tls(&authority.settings("server", &["127.0.0.1"]), "mutual");
    let client = TlsSettings {
        authority: Some(authority.file()),
        ..other.settings("stranger", &["127.0.0.1"])
    };
    let client = message_of(client_with(client), "nothing", &server.reference);
    server.outcome(client)
}

fn a_server_with_a_wrong_certificate() -> Outcome {
    let folder = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(folder.path(), "authority");
    let other = Authority::new(folder.path(), "other");
    let server = Server::with_tls(&authority.settings("server", &["127.0.0.1"]), "peer");
    let client = client_with(other.settings("client", &["127.0.0.1"]));
    let client = message_of(client, "nothing", &server.reference);
    server.outcome(client)
}

/// A server that starts with a certificate that has expired says so; this one expires later.
fn a_certificate_that_expires() -> Outcome {
    let folder = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(folder.path(), "authority");
    let mut life = Duration::from_secs(6);
    let (server, end) = loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let end = Duration::from_secs((now.expect("it is later") + life).as_secs());
        let settings = authority.settings_of("server", &["127.0.0.1"], |params| {
            params.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
        });
        let server = Server::with_tls(&settings, "peer");
        let client = client_with(authority.settings("client", &["127.0.0.1"]));
        let answer = message_of(client, "nothing", &server.reference);
        if answer == "answered" {
            break (server, UNIX_EPOCH + end);
        }
        // A busy machine may start it too late.
        assert!(SystemTime::now() > UNIX_EPOCH + end, "{answer}");
        life *= 2;
    };
    let past = end + Duration::from_secs(1);
    thread::sleep(past.duration_since(SystemTime::now()).unwrap_or_default());
    let client = client_with(authority.settings("later", &["127.0.0.1"]));
    let client = message_of(client, "nothing", &server.reference);
    server.outcome(client)
}

fn a_full_server() -> Outcome {
    let mut server = Server::start(&["-ORBMaxConnections", "1"]);
    let message = thread::scope(|scope| {
        let reference = server.reference.clone();
        let waits = scope.spawn(move || message_of(OrbConfig::default(), "wait", &reference));
        server.says("waits");
        let message = message_of(OrbConfig::default(), "nothing", &server.reference);
        server.go_on();
        assert_eq!(waits.join().expect("it does not panic"), "answered");
        message
    });
    server.outcome(message)
}

fn a_flood() -> Outcome {
    let mut server = Server::start(&[]);
    for _ in 0..20 {
        let mut stream = TcpStream::connect(&server.address).expect("it listens");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let client = message_of(OrbConfig::default(), "nothing", &server.reference);
    server.says("were not told");
    server.outcome(client)
}

fn a_bad_key() -> Outcome {
    let server = Server::start(&[]);
    let reference = format!("corbaloc::{}/Missing", server.address);
    let client = message_of(OrbConfig::default(), "nothing", &reference);
    server.outcome(client)
}

fn a_client_that_dies_in_a_message() -> Outcome {
    let mut server = Server::start(&["-ORBInputTimeout", "200"]);
    let mut stream = TcpStream::connect(&server.address).expect("it listens");
    stream.write_all(b"GIOP\x01\x02\x01\x00").expect("sent");
    // Nothing tells the server of the end of a machine without power: the connection stays.
    server.says("late peer");
    server.outcome(String::new())
}

fn a_server_that_dies_in_a_call() -> Outcome {
    let mut server = Server::start(&[]);
    let reference = server.reference.clone();
    let calls = thread::spawn(move || message_of(OrbConfig::default(), "wait", &reference));
    server.says("waits");
    server.process.kill().expect("it runs");
    let client = calls.join().expect("it does not panic");
    Outcome {
        client,
        log: Vec::new(),
        top: None,
    }
}

/// The settings of a client by TLS.
fn client_with(ssl: TlsSettings) -> OrbConfig {
    let mut config = OrbConfig::default();
    config.ssl = ssl;
    config
}

/// A server in a process of its own: this program, with [`the_server`] as its one test.
struct Server {
    process: Child,
    log: Receiver<String>,
    /// The lines that were read from `log`.
    read: Vec<String>,
    reference: String,
    address: String,
    folder: TempDir,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        Self::start_with(&[&["-ORBListenEndpoints", "iiop://127.0.0.1:0"], options].concat())
    }

    fn with_tls(settings: &TlsSettings, verify: &str) -> Self {
        let file = |path: &Option<std::path::PathBuf>| {
            let path = path.as_ref().expect("it has one");
            path.to_str().expect("text").to_owned()
        };
        Self::start_with(&[
            "-ORBListenEndpoints",
            "ssliop://127.0.0.1:0",
            "-ORBSSLCertificate",
            &file(&settings.certificate),
            "-ORBSSLPrivateKey",
            &file(&settings.private_key),
            "-ORBSSLCertificateAuthority",
            &file(&settings.authority),
            "-ORBSSLVerify",
            verify,
        ])
    }

    fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let monitor = folder.path().join(MONITOR);
        let monitor = monitor.to_str().expect("text");
        let options = [&["-ORBLog", "info", "-ORBMonitor", monitor], options].concat();
        let mut process = Command::new(std::env::current_exe().expect("it has a path"))
            .args(["--exact", "operators_day::the_server", "--nocapture"])
            .env(OPTIONS, options.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let log = lines_of(process.stderr.take().expect("it is piped"));
        let mut server = Self {
            process,
            log,
            read: Vec::new(),
            reference: String::new(),
            address: String::new(),
            folder,
        };
        server.reference = server.says("IOR:");
        let started = server.says("started lane");
        let address = started.split("iop://").nth(1).unwrap_or_default();
        address
            .split(' ')
            .next()
            .unwrap_or_default()
            .clone_into(&mut server.address);
        server
    }

    /// Waits for a line with this part.
    fn says(&mut self, part: &str) -> String {
        let deadline = Deadline::after(PATIENCE);
        loop {
            if let Some(line) = self.read.iter().find(|line| line.contains(part)) {
                return line.clone();
            }
            match self
                .log
                .recv_timeout(deadline.remaining().unwrap_or(PATIENCE))
            {
                Ok(line) => self.read.push(line),
                Err(error) => panic!("{part}: {error}, {:#?}", self.read),
            }
        }
    }

    /// Lets `wait` return.
    fn go_on(&mut self) {
        let input = self.process.stdin.as_mut().expect("it is piped");
        input.write_all(b"go on\n").expect("it is open");
    }

    /// Runs `chronorb top`, ends the server in order, and returns both outputs.
    fn outcome(mut self, client: String) -> Outcome {
        let arguments = ["top", MONITOR, "--once", "--json", "--interval", "100"];
        let top = chronorb(self.folder.path(), &arguments);
        let top = serde_json::from_str(stdout(&top)).expect("one JSON value");
        drop(self.process.stdin.take());
        let mut log = std::mem::take(&mut self.read);
        log.extend(self.log.iter());
        assert!(self.process.wait().expect("it ends").success(), "{log:#?}");
        Outcome {
            client,
            log,
            top: Some(top),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lines_of(log: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // A test that has enough of it drops the receiver.
        let lines = BufReader::new(log).lines().map_while(Result::ok);
        let _ = lines.map(|line| sender.send(line)).find(Result::is_err);
    });
    receiver
}

/// The server of [`Server`]: it ends with its standard input.
#[test]
fn the_server() {
    let Some(options) = std::env::var_os(OPTIONS) else {
        return;
    };
    let options = options.into_string().expect("text");
    let mut options: Vec<_> = options.lines().map(str::to_owned).collect();
    let config = OrbConfig::read(&mut options).expect("the options are correct");
    let orb = Orb::with_config(config).expect("an ORB");
    let root = orb.root_poa().expect("it runs");
    let object = root.serve(Waiter).expect("active");
    root.manager().activate().expect("it runs");
    eprintln!("{}", orb.object_to_string(&object));
    for _ in stdin().lines() {
        GO_ON.set(1);
    }
    orb.shutdown(true).expect("not from a servant");
}

struct Waiter;

static GO_ON: Gate = Gate::new(0);

impl Skeleton for Waiter {
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Waiter:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        _: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"nothing" => {}
            b"wait" => {
                eprintln!("waits");
                GO_ON.wait_while(0, Deadline::after(PATIENCE));
            }
            _ => return Err(bad_operation()),
        }
        reply.normal().map(drop)
    }
}

/// The text of what a client is told about its call of `operation`: `answered`, or the cause.
fn message_of(config: OrbConfig, operation: &'static str, reference: &str) -> String {
    let orb = Orb::with_config(config).expect("an ORB");
    let object = orb.string_to_object(reference).expect("a reference");
    let operation = Operation::twoway(operation);
    let done = Scope::with(|scope| object.invoke(scope, &operation, &|_| Ok(())).map(drop));
    let message = match done {
        Ok(()) => "answered".to_owned(),
        Err(exception) => {
            let failure = orb.last_failure().expect("the cause is known");
            assert_eq!(failure.exception(), exception);
            failure.to_string()
        }
    };
    orb.shutdown(true).expect("not from a servant");
    message
}

/// The options of the server, one in a line.
const OPTIONS: &str = "OPERATORS_DAY_SERVER";
const MONITOR: &str = "monitor.sock";
const PATIENCE: Duration = Duration::from_secs(60);
