//! Counting the system calls of another process, which is this very program.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use chronorb_probe::{Mark, StepCounter, SystemCalls, TraceError, Tracer, step_mark, trace_mark};

/// The environment variable that marks the process to trace.
const TRACED: &str = "CHRONORB_TEST_TRACED";
const READS: u64 = 20;
const OCTETS: usize = 100;

/// The traced process; on its own it does nothing.
#[test]
fn the_traced_process() {
    if std::env::var_os(TRACED).is_none() {
        return;
    }
    io::stderr().write_all(b"ready\n").unwrap();
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let read = || {
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let mut octets = [0; OCTETS];
        for _ in 0..READS {
            rustix::io::read(&zeros, &mut octets).unwrap();
        }
    };
    trace_mark(Mark::Next);
    trace_mark(Mark::Next);
    read();
    trace_mark(Mark::Next);
    // A thread that is started meanwhile is followed too.
    thread::spawn(read).join().unwrap();
    trace_mark(Mark::Last);
    read();
}

/// The process whose instructions are counted; on its own it does nothing.
#[test]
fn the_counted_process() {
    if std::env::var_os(TRACED).is_none() {
        return;
    }
    eprintln!("{}", rustix::thread::gettid().as_raw_nonzero());
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    step_mark();
    step_mark();
    // The first span has what happens only once.
    for rounds in [100, 100, 200, 300] {
        for round in 0..rounds {
            std::hint::black_box(round);
        }
        step_mark();
    }
}

#[test]
fn instructions_are_counted_between_marks() {
    let mut child = start(name_of(the_counted_process));
    let mut thread = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut thread).unwrap();
    let thread = thread.trim().parse().unwrap();
    let counter = permitted(StepCounter::attach(thread, 6));
    writeln!(child.stdin.take().unwrap(), "go").unwrap();
    let spans = counter.map(|counter| counter.spans().unwrap());
    assert!(child.wait().unwrap().success());
    let Some(spans) = spans else {
        return;
    };
    let [empty, _, first, second, third] = spans[..] else {
        panic!("{spans:?}");
    };
    assert!(0 < empty && empty < first, "{spans:?}");
    assert_eq!(second - first, third - second);
    assert!(second - first >= 100, "{spans:?}");
}

#[test]
fn calls_are_counted_by_thread_and_name_between_marks() {
    let mut child = start(name_of(the_traced_process));
    let mut ready = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let tracer = attached(&child);
    writeln!(child.stdin.take().unwrap(), "go").unwrap();
    let spans = tracer.map(|tracer| tracer.spans().unwrap());
    // After its last mark it runs on by itself.
    assert!(child.wait().unwrap().success());
    let Some(spans) = spans else {
        return;
    };
    let [nothing, own, of_other] = &spans[..] else {
        panic!("{spans:?}");
    };
    for span in [own, of_other] {
        let mut reads = span.iter().filter(|of| of.name == "read");
        let read = reads.next().expect("it reads");
        assert_eq!((read.calls, read.octets), (READS, READS * OCTETS as u64));
        assert_eq!(reads.next(), None, "by one thread only");
        assert!(span.iter().any(|of| of.name == "openat"), "{span:?}");
    }
    let reader = |span: &[SystemCalls]| {
        let read = span.iter().find(|of| of.name == "read");
        read.map(|of| of.thread)
    };
    assert_ne!(reader(own), reader(of_other));
    // Other threads of a test program may do something meanwhile.
    assert!(nothing.iter().all(|of| Some(of.thread) != reader(own)));
}

#[test]
fn a_process_that_ends_before_its_last_mark_is_told() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let tracer = attached(&child);
    child.kill().unwrap();
    if let Some(tracer) = tracer {
        assert_eq!(tracer.spans(), Err(TraceError::Ended));
    }
    // The tracer may have taken the status already.
    let _ = child.wait();
}

#[test]
fn nobody_is_followed_who_is_not_there() {
    let error = Tracer::attach(u32::MAX).unwrap_err();
    assert_eq!(error, TraceError::Ended);
}

/// Starts this program with one test of its own.
fn start(test: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(TRACED, "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Follows a child, where the kernel lets us.
fn attached(child: &Child) -> Option<Tracer> {
    permitted(Tracer::attach(child.id()))
}

/// Returns a tracer, unless the kernel refuses it.
fn permitted<T>(attached: Result<T, TraceError>) -> Option<T> {
    match attached {
        Err(error @ TraceError::Refused(_)) => {
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {error}");
            println!("NOT RUN: {error}");
            None
        }
        attached => Some(attached.unwrap()),
    }
}

/// The name of a test, by which this program runs it alone (`--exact`).
fn name_of<T>(_test: T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").expect("it is in a module").1
}
