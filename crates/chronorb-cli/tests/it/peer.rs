//! `chronorb lab peer`, as a program that compares systems runs it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{chronorb, stderr, stdout};

/// A server, and the folder with its file. Dropping it kills it.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let mut process = Command::new(env!("CARGO_BIN_EXE_chronorb"))
            .args(["lab", "peer", "server", FILE])
            .args(options)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("the command starts");
        let patience = Instant::now() + Duration::from_secs(60);
        while !folder.path().join(FILE).exists() {
            let ended = process.try_wait().expect("it can be asked");
            assert!(ended.is_none() && Instant::now() < patience, "{ended:?}");
            thread::sleep(Duration::from_millis(5));
        }
        Self { process, folder }
    }

    fn call(&self, options: &[&str]) -> Value {
        let arguments = [&["lab", "peer", "client", FILE], options].concat();
        let output = chronorb(self.folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output).lines().count(), 1);
        serde_json::from_str(stdout(&output)).expect("one JSON value")
    }

    /// Sends `SIGTERM`, and returns how it ended.
    fn end(mut self) -> Option<i32> {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const FILE: &str = "endpoint";

fn names(figures: &Value) -> Vec<&str> {
    let mut names: Vec<_> = figures
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_client_prints_what_its_calls_took_in_one_line() {
    let server = Server::start(&[]);
    let figures = server.call(&["--n", "200", "--warmup", "20"]);
    let expected = ["max", "mean", "min", "n", "p50", "p99", "p999", "peer"];
    assert_eq!(names(&figures), expected);
    assert_eq!(figures["peer"], "chronorb");
    assert_eq!(figures["n"], 200);
    assert!(figures["min"].as_f64() <= figures["p50"].as_f64());
    assert!(figures["p999"].as_f64() <= figures["max"].as_f64());

    let figures = server.call(&["--n", "400", "--warmup", "40", "--threads", "4"]);
    assert_eq!(names(&figures), ["calls_per_s", "n", "peer", "threads"]);
    assert_eq!(
        (&figures["n"], &figures["threads"]),
        (&400.into(), &4.into())
    );
    assert!(figures["calls_per_s"].as_f64() > Some(0.0));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn both_sides_wait_as_they_are_told() {
    let server = Server::start(&["--wait", "spin", "--transport", "iiop"]);
    for wait in ["block", "spin"] {
        let figures = server.call(&["--n", "50", "--warmup", "5", "--wait", wait]);
        assert_eq!(figures["n"], 50);
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn settings_of_the_orb_may_stand_anywhere_on_the_command_line() {
    let server = Server::start(&["-ORBThreadpoolStrategy", "half-sync", "-ORBThreads", "2"]);
    let figures = server.call(&["-ORBRequestTimeout", "5000", "--n", "50", "--warmup", "5"]);
    assert_eq!(figures["n"], 50);

    let wrong = ["lab", "peer", "client", FILE, "-ORBRequestTimeout", "soon"];
    let output = chronorb(server.folder.path(), &wrong);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("soon"), "{}", stderr(&output));
}

#[test]
fn data_comes_back_too() {
    let server = Server::start(&[]);
    for payload in [
        "octets:1MiB",
        "doubles:64KiB",
        "structs:64KiB",
        "strings:64KiB",
        "unions:64KiB",
        "anys:64KiB",
        "values:64KiB",
    ] {
        let figures = server.call(&["--n", "5", "--warmup", "1", "--payload", payload]);
        assert_eq!(figures["n"], 5, "{payload}");
    }
}

#[test]
fn a_file_has_the_references_as_soon_as_it_is_there() {
    let server = Server::start(&[]);
    let text = fs::read_to_string(server.folder.path().join(FILE)).expect("it is there");
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().all(|line| line.starts_with("IOR:")), "{text}");
    let left = fs::read_dir(server.folder.path())
        .expect("readable")
        .count();
    assert_eq!(left, 1);
}

#[test]
fn a_server_that_is_gone_is_an_error_and_no_figure() {
    let server = Server::start(&[]);
    let file = server.folder.path().join(FILE);
    let text = fs::read_to_string(&file).expect("it is there");
    let folder = tempfile::tempdir().expect("a directory");
    fs::write(folder.path().join(FILE), text).expect("writable");
    assert_eq!(server.end(), Some(0));

    let output = chronorb(folder.path(), &["lab", "peer", "client", FILE, "--n", "10"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).contains("calling the server"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_cannot_be_is_said_with_what_can() {
    for (arguments, status, part) in [
        (
            &["server", FILE, "--transport", "pigeon"][..],
            2,
            "the transports are: iiop",
        ),
        (
            &["server", FILE, "--wait", "sleep"],
            2,
            "neither block nor spin",
        ),
        (&["client", FILE, "--payload", "words:1KiB"], 2, "KIND:SIZE"),
        (
            &["client", FILE, "--threads", "0"],
            2,
            "0 is not in 1..=1024",
        ),
        (
            &["client", "no-such-file"],
            1,
            "no reference can be read from no-such-file",
        ),
        (&["server", "no-such-folder/file"], 1, "no-such-folder/file"),
    ] {
        let output = chronorb(Path::new("."), &[&["lab", "peer"], arguments].concat());
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}
