//! The server and the client of the tutorial's page on priorities.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The server, killed when a test ends early.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn each_priority_is_called_by_its_lane_and_others_are_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanes-server"));
    command
        .args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"])
        .stdout(Stdio::piped());
    let mut server = Server(command.spawn().expect("the server starts"));
    let stdout = server.0.stdout.take().expect("it is piped");
    let mut reference = String::new();
    BufReader::new(stdout)
        .read_line(&mut reference)
        .expect("it prints its reference");

    let client = |priority: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanes-client"));
        command
            .args([reference.trim(), priority])
            .output()
            .expect("the client runs")
    };
    for priority in ["8000", "24000"] {
        let output = client(priority);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.starts_with(&format!("priority {priority}: median ")),
            "{output:?}"
        );
    }
    let refused = client("16000");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("NoResources"), "{refused:?}");
}
