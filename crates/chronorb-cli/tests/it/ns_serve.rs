//! `chronorb ns serve`, as an operator runs it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext};
use chronorb_orb::{Orb, OrbConfig};

use crate::support::{chronorb, stderr, stdout};

/// A name server on a free port, and the reference that it prints.
struct NameServerProcess {
    process: Child,
    root: String,
}

impl NameServerProcess {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_chronorb"))
            .args(["ns", "serve", "--listen", "iiop://127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let output = process.stdout.take().expect("a pipe");
        let mut root = String::new();
        let read = BufReader::new(output).read_line(&mut root);
        read.expect("it prints a reference");
        let root = root.trim().to_owned();
        Self { process, root }
    }

    fn address(&self) -> &str {
        let address = self.root.strip_prefix("corbaloc:iiop:1.2@");
        let address = address.and_then(|rest| rest.strip_suffix("/NameService"));
        address.unwrap_or_else(|| panic!("{:?}", self.root))
    }
}

impl Drop for NameServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn it_prints_the_reference_that_clients_use() {
    let server = NameServerProcess::start();
    assert!(
        server.address().starts_with("127.0.0.1:"),
        "{}",
        server.root
    );
    let orb = Orb::with_config(OrbConfig::default()).unwrap();
    let root = orb.string_to_object(&server.root).unwrap();
    let root = NamingContext::unchecked_narrow(&root);
    let [a, b] = ["a", "b"].map(|id| NameComponent { id, kind: "" });
    root.bind_new_context(&[a]).unwrap();
    root.bind(&[a, b], Some(root.as_object())).unwrap();
    let found = root.resolve(&[a, b]).unwrap().expect("an object");
    assert!(found.is_a(NamingContext::REPOSITORY_ID).unwrap());
    orb.shutdown(true).unwrap();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = NameServerProcess::start();
    let endpoint = format!("iiop://{}", server.address());
    let output = chronorb(Path::new("."), &["ns", "serve", "--listen", &endpoint]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let said = stderr(&output);
    let expected = format!("cannot listen on {endpoint}: Address already in use");
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_malformed_endpoint_is_an_error_of_the_command_line() {
    let output = chronorb(Path::new("."), &["ns", "serve", "--listen", "localhost"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("there is no `://`"),
        "{}",
        stderr(&output)
    );
}

/// Returns whether `nameclt` of omniORB is installed. Without it the test is skipped with a note.
///
/// # Panics
/// With `CHRONORB_PEERS=required`, if it is missing.
fn has_nameclt() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|dir| dir.join("nameclt").is_file());
    if !is_there {
        let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
        assert!(
            !required,
            "CHRONORB_PEERS=required, and nameclt is missing: {INSTALL}"
        );
        println!("left out: nameclt is missing ({INSTALL})");
    }
    is_there
}

const INSTALL: &str = "apt-get install omniorb";

#[test]
fn the_client_of_omniorb_uses_it() {
    if !has_nameclt() {
        return;
    }
    let server = NameServerProcess::start();
    let reference = format!("NameService=corbaloc::{}/NameService", server.address());
    let nameclt = |arguments: &[&str]| {
        let output = Command::new("nameclt")
            .args(["-ORBInitRef", &reference])
            .args(arguments)
            .output()
            .expect("nameclt starts");
        let said = [stdout(&output), stderr(&output)].concat();
        (output.status.success(), said.trim().to_owned())
    };
    let succeeds = |arguments: &[&str]| {
        let (success, said) = nameclt(arguments);
        assert!(success, "{arguments:?}: {said}");
        said
    };
    assert_eq!(succeeds(&["list"]), "");
    succeeds(&["bind_new_context", "a"]);
    let a = succeeds(&["resolve", "a"]);
    assert!(a.starts_with("IOR:"), "{a}");
    succeeds(&["bind", "a/b", &a]);
    succeeds(&["bind", r"a/x\.y.k", &a]);
    let listed = succeeds(&["list", "a"]);
    let mut listed: Vec<_> = listed.split_whitespace().collect();
    listed.sort_unstable();
    assert_eq!(listed, ["b", r"x\.y.k"]);
    assert_eq!(succeeds(&["resolve", r"a/x\.y.k"]), a);
    succeeds(&["unbind", "a/b"]);
    for (arguments, error) in [
        (["resolve", "nope"], "NotFound exception: missing node"),
        (["remove_context", "a"], "NotEmpty exception"),
    ] {
        let (success, said) = nameclt(&arguments);
        assert!(!success && said.contains(error), "{arguments:?}: {said}");
    }
    succeeds(&["unbind", r"a/x\.y.k"]);
    succeeds(&["remove_context", "a"]);
    assert_eq!(succeeds(&["list"]), "");
}
