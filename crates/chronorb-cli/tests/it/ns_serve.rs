//! `chronorb ns serve`, as an operator runs it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext};
use chronorb_orb::{Orb, OrbConfig};

use crate::support::{chronorb, has_peer, stderr, stdout};

/// A name server on a free port, and the reference that it prints.
struct NameServerProcess {
    _process: Process,
    root: String,
}

/// A process that is killed when this is dropped.
struct Process(Child);

impl Process {
    fn kill(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl NameServerProcess {
    fn start() -> Self {
        Self::start_with("iiop://127.0.0.1:0", &[])
    }

    fn start_with(endpoint: &str, options: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_chronorb"))
            .args(["ns", "serve", "--listen", endpoint])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let output = process.stdout.take().expect("a pipe");
        let mut root = String::new();
        let read = BufReader::new(output).read_line(&mut root);
        read.expect("it prints a reference");
        let root = root.trim().to_owned();
        let _process = Process(process);
        Self { _process, root }
    }

    fn address(&self) -> &str {
        let address = self.root.strip_prefix("corbaloc:iiop:1.2@");
        let address = address.and_then(|rest| rest.strip_suffix("/NameService"));
        address.unwrap_or_else(|| panic!("{:?}", self.root))
    }

    /// Runs `chronorb ns` with this server, and returns its status and what it writes.
    fn ns(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let arguments = [&["ns"], arguments, &["--ns", &self.root]].concat();
        said(&chronorb(Path::new("."), &arguments))
    }
}

/// Returns the status of a command and all that it has written.
fn said(output: &Output) -> (Option<i32>, String) {
    let text = [stdout(output), stderr(output)].concat();
    (output.status.code(), text)
}

#[test]
fn limits_of_all_clients_and_of_one_are_options() {
    let limits = ["--max-octets", "600", "--max-contexts-per-origin", "1"];
    let server = NameServerProcess::start_with("iiop://127.0.0.1:0", &limits);
    // Each command is a client of its own.
    let (status, text) = server.ns(&["mkdir", "--parents", "a/b"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("NO_RESOURCES"), "{text}");
    let (status, text) = server.ns(&["mkdir", "b"]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = server.ns(&["unbind", "a"]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = server.ns(&["mkdir", "c"]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = server.ns(&["mkdir", "d"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("NO_RESOURCES"), "{text}");
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

#[test]
fn names_in_a_store_survive_the_death_of_the_server() {
    let folder = tempfile::tempdir().expect("a directory");
    let store = folder.path().join("names");
    let store = ["--store", store.to_str().expect("UTF-8")];
    let server = NameServerProcess::start_with("iiop://127.0.0.1:0", &store);
    assert_eq!(server.ns(&["mkdir", "plant"]), (Some(0), String::new()));
    let bind = ["bind", "plant/radar", "corbaloc::192.0.2.1:2809/Radar"];
    assert_eq!(server.ns(&bind), (Some(0), String::new()));
    let before = server.ns(&["resolve", "plant"]);
    let endpoint = format!("iiop://{}", server.address());

    let second = [
        &["ns", "serve", "--listen", "iiop://127.0.0.1:0"],
        &store[..],
    ]
    .concat();
    let (status, text) = said(&chronorb(Path::new("."), &second));
    assert_eq!(status, Some(1));
    assert!(text.contains("another process uses the names in"), "{text}");

    // It is killed, not stopped.
    drop(server);
    let again = NameServerProcess::start_with(&endpoint, &store);
    let listed = again.ns(&["list"]);
    assert_eq!(listed, (Some(0), "plant/\n  radar\n".to_owned()));
    let after = again.ns(&["resolve", "plant"]);
    assert_eq!(after, before, "references of contexts stay the same");
}

#[test]
fn an_empty_store_begins_with_the_names_of_a_file() {
    let folder = tempfile::tempdir().expect("a directory");
    let (store, file) = (folder.path().join("names"), folder.path().join("names.txt"));
    std::fs::write(&file, "context plant\nobject plant/self =/\n").expect("a file");
    let of = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (store, file) = (of(&store), of(&file));
    let import = ["--store", &store, "--import", &file];
    let server = NameServerProcess::start_with("iiop://127.0.0.1:0", &import);
    assert_eq!(
        server.ns(&["list"]),
        (Some(0), "plant/\n  self\n".to_owned())
    );
    drop(server);

    let again = [
        &["ns", "serve", "--listen", "iiop://127.0.0.1:0"],
        &import[..],
    ]
    .concat();
    let (status, text) = said(&chronorb(Path::new("."), &again));
    assert_eq!(status, Some(1));
    assert!(text.contains("has names already"), "{text}");
}

/// The first hour of a user: IDL, a name server, a server that is bound, a client that finds it by
/// name, a look at all names, and what each command says once the server is dead.
#[test]
fn the_first_hour() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let idl = here.join("../../examples/quoter/idl/quoter.idl");
    let checked = chronorb(here, &["idl", "check", idl.to_str().expect("UTF-8")]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));

    let names = NameServerProcess::start();
    assert_eq!(names.ns(&["mkdir", "plant"]), (Some(0), String::new()));
    let (folder, mut server) = power_server();
    let references = std::fs::read_to_string(folder.path().join("endpoint")).expect("a file");
    let power = references.lines().next().expect("a reference");
    let bind = ["bind", "plant/power", power];
    assert_eq!(names.ns(&bind), (Some(0), String::new()));

    let url = format!("corbaname::{}#plant/power", names.address());
    let ping = || said(&chronorb(Path::new("."), &["ior", "ping", &url]));
    let (status, text) = ping();
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = names.ns(&["list", "--check"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("  power  ok\n"), "{text}");

    server.kill();
    let (status, text) = names.ns(&["list", "--check"]);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("  power  unreachable: "), "{text}");
    assert!(text.contains("Connection refused"), "{text}");
    let (status, text) = ping();
    assert_ne!(status, Some(0), "{text}");
    assert!(text.contains("Connection refused"), "{text}");
    let wrong = format!("corbaname::{}#plant/pwer", names.address());
    let (status, text) = said(&chronorb(Path::new("."), &["ior", "ping", &wrong]));
    assert_ne!(status, Some(0), "{text}");
    assert!(text.contains("component 2 of 2"), "{text}");
    assert!(text.contains("is not bound"), "{text}");
}

/// Starts a server, which leaves its references in a file.
fn power_server() -> (tempfile::TempDir, Process) {
    let folder = tempfile::tempdir().expect("a directory");
    let server = Command::new(env!("CARGO_BIN_EXE_chronorb"))
        .args(["lab", "peer", "server", "endpoint"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .spawn();
    let mut server = Process(server.expect("the command starts"));
    while !folder.path().join("endpoint").exists() {
        assert_eq!(server.0.try_wait().expect("it can be asked"), None);
        std::thread::yield_now();
    }
    (folder, server)
}

const INSTALL: &str = "apt-get install omniorb";

#[test]
fn the_client_of_omniorb_uses_it() {
    if !has_peer("nameclt", INSTALL) {
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
