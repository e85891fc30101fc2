//! omniORB's programs for calls of two classes, compiled and run for real.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use chronorb_lab::bench::{OmniOrb, Programs};
use chronorb_rt::Monotonic;
use serde_json::{Value, json};

use crate::harness;

fn each_thread_makes_the_calls_that_it_is_asked_for() {
    let Some(programs) = programs() else { return };
    for (options, connections) in [(&[][..], BY_DEFAULT), (&TUNED, LOW_THREADS + 1)] {
        let server = Program::serve(&programs);
        let mut client = server.client(&programs, options);
        assert_eq!(client.hear(), json!({}));
        assert_eq!(client.sockets(), connections);

        let mut start = Start::soon();
        start.calls = 5;
        let answer = client.measure(&start);
        assert_eq!(calls(&answer["high"]).len(), 5);
        assert_eq!(calls(&answer["low"]).len(), 5 * LOW_THREADS);
        for [from_due, from_call] in [calls(&answer["high"]), calls(&answer["low"])].concat() {
            assert!(0 < from_call && from_call <= from_due, "{answer}");
        }
        assert_eq!(client.sockets(), connections);
        assert_eq!(client.end(), (true, String::new()));
        assert_eq!(server.program.end(), (true, String::new()));
    }
}

fn calls_are_made_as_long_as_the_window_lasts() {
    let Some(programs) = programs() else { return };
    let server = Program::serve(&programs);
    let mut client = server.client(&programs, &TUNED);
    client.hear();
    let mut start = Start::soon();
    start.length = 100 * MS;
    start.low_period = Duration::ZERO;
    let answer = client.measure(&start);
    // They are due at 0, 10, … 90 ms.
    assert_eq!(calls(&answer["high"]).len(), 10);
    // Each thread at least once; all but its first calls are due when they are made.
    let low = calls(&answer["low"]);
    assert!(low.len() >= LOW_THREADS, "{answer}");
    let timed = low
        .iter()
        .filter(|[from_due, from_call]| from_due != from_call);
    assert!(timed.count() <= LOW_THREADS, "{answer}");
}

fn what_makes_no_sense_is_said() {
    let Some(programs) = programs() else { return };
    let server = Program::serve(&programs);
    let mut client = server.client(&programs, &[]);
    client.hear();
    client.tell("{\"start\":\"now\"}");
    let (ended_well, errors) = client.end();
    assert!(
        !ended_well && errors.contains("this is no start"),
        "{errors}"
    );

    let mut client = server.client(&programs, &[]);
    client.hear();
    let mut start = Start::soon();
    start.at = Monotonic::from_nanos(1);
    client.tell(&start.line());
    let (ended_well, errors) = client.end();
    assert!(!ended_well && errors.contains("had passed"), "{errors}");
}

/// The programs, where omniORB is there; where it has to be, that it is.
fn programs() -> Option<Programs> {
    // The tests of one process shall not compile them at the same time.
    static FOUND: LazyLock<OmniOrb> = LazyLock::new(OmniOrb::find);
    let omniorb = &*FOUND;
    let programs = omniorb.inversion();
    if programs.is_none() {
        println!("NOT RUN: calls of omniORB: {}", omniorb.missing);
        let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
        assert!(!required, "omniORB is required: {}", omniorb.missing);
    }
    programs
}

/// The pairs of times, from when a call was due and from when it was made.
fn calls(list: &Value) -> Vec<[u64; 2]> {
    let numbers: Vec<u64> = serde_json::from_value(list.clone()).expect("a list of numbers");
    let (pairs, rest) = numbers.as_chunks();
    assert!(rest.is_empty());
    pairs.to_vec()
}

/// The arguments of a client.
struct Start {
    at: Monotonic,
    length: Duration,
    low_period: Duration,
    calls: u64,
}

impl Start {
    /// After long enough for all threads to get ready.
    fn soon() -> Self {
        Self {
            at: Monotonic::now() + 500 * MS,
            length: Duration::ZERO,
            low_period: 7 * MS,
            calls: 0,
        }
    }

    /// In the order in which the client expects it.
    fn line(&self) -> String {
        let (start, length) = (self.at.as_nanos(), self.length.as_nanos());
        let (high, low) = ((10 * MS).as_nanos(), self.low_period.as_nanos());
        format!(
            "{{\"start_ns\":{start},\"length_ns\":{length},\"high_period_ns\":{high},\
             \"low_period_ns\":{low},\"calls\":{}}}",
            self.calls
        )
    }
}

/// A server that runs.
struct Server {
    program: Program,
    references: [String; 2],
}

impl Server {
    fn client(&self, programs: &Programs, options: &[&str]) -> Program {
        let mut command = Command::new(&programs.client);
        command.args(&self.references).arg(LOW_THREADS.to_string());
        Program::run(command.args(options))
    }
}

/// A program that speaks line by line. Dropping it kills it.
struct Program {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn serve(programs: &Programs) -> Server {
        let mut command = Command::new(&programs.server);
        let mut program = Self::run(command.args(["--work-ns", "20000"]));
        let said = program.hear();
        let references = ["high", "low"].map(|class| {
            let reference = said[class].as_str().unwrap_or_default();
            assert!(reference.starts_with("IOR:"), "{said}");
            reference.to_owned()
        });
        Server {
            program,
            references,
        }
    }

    fn run(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be run");
        let input = process.stdin.take();
        let output = process.stdout.take().expect("it has an output");
        Self {
            process,
            input,
            output: BufReader::new(output),
        }
    }

    fn measure(&mut self, start: &Start) -> Value {
        self.tell(&start.line());
        self.hear()
    }

    fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it has not been ended");
        writeln!(input, "{line}").expect("it reads");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Returns the number of open sockets, which are the connections of a client.
    fn sockets(&self) -> usize {
        let files = format!("/proc/{}/fd", self.process.id());
        let files = fs::read_dir(files).expect("it runs");
        files
            .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
            .filter(|target| target.to_string_lossy().starts_with("socket:"))
            .count()
    }

    /// Ends its input; returns whether it ended well, and what it had to say of errors.
    fn end(mut self) -> (bool, String) {
        drop(self.input.take());
        let mut errors = String::new();
        let mut stderr = self.process.stderr.take().expect("it has not been taken");
        stderr.read_to_string(&mut errors).expect("it writes text");
        let status = self.process.wait().expect("it ends");
        (status.success(), errors)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const LOW_THREADS: usize = 7;
/// A connection for each thread, all eight.
const TUNED: [&str; 2] = ["-ORBmaxGIOPConnectionPerServer", "8"];
/// The default limit of connections of omniORB to a server.
const BY_DEFAULT: usize = 5;
const MS: Duration = Duration::from_millis(1);

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "each_thread_makes_the_calls_that_it_is_asked_for",
        each_thread_makes_the_calls_that_it_is_asked_for,
    ),
    (
        "calls_are_made_as_long_as_the_window_lasts",
        calls_are_made_as_long_as_the_window_lasts,
    ),
    ("what_makes_no_sense_is_said", what_makes_no_sense_is_said),
];
