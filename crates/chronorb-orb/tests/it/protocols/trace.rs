//! Traces of an ORB's connections, and their interpretation by Wireshark.

use chronorb_orb::{Orb, OrbConfig};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::descriptors::spawn;
use crate::support::{add, echo, orb_with, served, served_by};

#[test]
fn a_client_and_a_server_tell_the_same_requests_and_replies() {
    let folder = tempfile::tempdir().expect("a folder");
    let [of_server, of_client] = ["server", "client"].map(|name| folder.path().join(name));
    let traced = |path: &Path| {
        let path = path.to_owned();
        orb_with(|config| config.trace.file = Some(path))
    };
    let s = served_by(traced(&of_server));
    let client = traced(&of_client);
    let text = s.server.object_to_string(&s.object);
    let object = client.string_to_object(&text).expect("the reference reads");
    let great = "for more than one packet ".repeat(8_000);
    for n in 0..5 {
        assert_eq!(add(&object, n, 1), Ok(n + 1));
    }
    assert_eq!(echo(&object, &great).as_deref(), Ok(great.as_str()));
    drop(object);
    client.shutdown(true).expect("it ends");
    drop(client);
    drop(s);

    for path in [of_server, of_client] {
        let fields = ["-T", "fields", "-e", "giop.type", "-e", "giop.request_op"];
        let Some(told) = tshark(&path, &[&["-Y", "giop"][..], &fields].concat()) else {
            return;
        };
        assert_eq!(told.matches("add").count(), 5, "{told}");
        assert_eq!(told.matches("echo").count(), 1, "{told}");
        let replies = told.lines().filter(|line| line.trim() == "1").count();
        assert_eq!(replies, 6, "{told}");
        let wrong = "_ws.malformed || (tcp.payload && !giop && !tcp.segment_data)";
        assert_eq!(tshark(&path, &["-Y", wrong]).as_deref(), Some(""));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_refused_by_name() {
    let mut config = OrbConfig::default();
    config.trace.file = Some("/nowhere/at/all".into());
    let error = Orb::with_config(config)
        .expect_err("there is no folder")
        .to_string();
    assert!(
        error.contains("-ORBTraceFile") && error.contains("/nowhere"),
        "{error}"
    );
    assert_eq!(add(&served().object, 1, 2), Ok(3));
}

/// Returns the output of tshark for a file; `None` if tshark is not installed.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let mut program = Command::new("tshark");
    program
        .arg("-r")
        .arg(path)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match spawn(&mut program).and_then(Child::wait_with_output) {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{errors}");
            Some(String::from_utf8(output.stdout).expect("text"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required, but there is no tshark");
            println!("NOT RUN: there is no tshark");
            None
        }
        Err(error) => panic!("tshark: {error}"),
    }
}
