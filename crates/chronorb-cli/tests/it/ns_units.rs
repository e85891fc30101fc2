//! The units of systemd that packages install.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{chronorb, stdout};

/// Returns the values of a setting in a unit.
fn values(unit: &str, setting: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("systemd")
        .join(unit);
    let text = fs::read_to_string(file).expect("the unit");
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let values = lines.filter(|(name, _)| *name == setting);
    values.map(|(_, value)| value.to_owned()).collect()
}

/// A process that is killed when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_service_starts_as_its_unit_says_and_is_ready() {
    let folder = tempfile::tempdir().expect("a directory");
    let notifications = folder.path().join("notify");
    let socket = UnixDatagram::bind(&notifications).expect("a socket");
    let [line] = &values("chronorb-ns.service", "ExecStart")[..] else {
        panic!("the unit has one command");
    };
    let state = folder.path().join("state").display().to_string();
    let mut words = line
        .split(' ')
        .map(|word| word.replace("${STATE_DIRECTORY}", &state));
    assert_eq!(words.next().as_deref(), Some("/usr/bin/chronorb"));
    let process = Command::new(env!("CARGO_BIN_EXE_chronorb"))
        .args(words)
        // The port of the unit may be taken on this machine.
        .env("CHRONORB_ORB_LISTEN_ENDPOINTS", "iiop://127.0.0.1:0")
        .env("NOTIFY_SOCKET", &notifications)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let _process = Process(process);
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut message = [0; 64];
    let length = socket.recv(&mut message).expect("the server is ready");
    assert!(message[..length].starts_with(b"READY=1"), "{message:?}");
    assert!(Path::new(&state).join("names.log").exists());
    assert_eq!(values("chronorb-ns.service", "Type"), ["notify"]);
}

#[test]
fn the_socket_is_at_the_default_endpoint_of_the_server() {
    let help = chronorb(Path::new("."), &["ns", "serve", "--help"]);
    for address in values("chronorb-ns.socket", "ListenStream") {
        let endpoint = format!("default: iiop://{address}");
        let text = stdout(&help)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains(&endpoint), "{endpoint} in {text}");
    }
}

/// The time until a server is ready on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);
