//! The smallest server serves complete calls.
//!
//! `CHRONORB_MINIMAL_SERVER` names another build of the server, as the project's CI does with the
//! one whose size it measures: a build of the workspace has the features of all its members.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use chronorb::prelude::*;

mod idl {
    chronorb::include_idl!("powers");
}
use idl::Powers;

/// The server, and the reference that it printed. Killed when a test ends early.
struct Server {
    child: Child,
    reference: String,
}

impl Server {
    fn start() -> Self {
        let program = std::env::var_os("CHRONORB_MINIMAL_SERVER")
            .unwrap_or_else(|| env!("CARGO_BIN_EXE_minimal-server").into());
        let mut child = Command::new(program)
            .args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut reference = String::new();
        BufReader::new(stdout)
            .read_line(&mut reference)
            .expect("the server prints its reference");
        Self {
            child,
            reference: reference.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_answers_calls() {
    let server = Server::start();
    let orb = Orb::init(&mut Vec::new()).expect("an ORB");
    let object = orb.string_to_object(&server.reference);
    let powers = Powers::narrow(&object.expect("a reference"))
        .expect("the server answers")
        .expect("the object is a Powers");
    assert_eq!(powers.cube(-3), Ok(-27));
    assert_eq!(powers.cube(12), Ok(1728));
}
