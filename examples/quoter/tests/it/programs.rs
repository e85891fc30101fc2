//! The two programs of the example, run according to the README.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The server, and the reference that it printed. Killed when a test ends early.
struct Server {
    child: Child,
    reference: String,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quoter-server"))
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

    fn client(&self, symbol: &str) -> std::process::Output {
        Command::new(env!("CARGO_BIN_EXE_quoter-client"))
            .args([&self.reference, symbol])
            .output()
            .expect("the client runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_client_gets_its_quote() {
    let server = Server::start();
    let output = server.client("ACME");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("ping: 4"), "{text}");
    assert!(text.contains("ACME: 10 at 100"), "{text}");
    assert!(text.contains("no quote of NONE"), "{text}");
}

#[test]
fn an_unknown_symbol_is_the_exception_of_the_idl() {
    let server = Server::start();
    let output = server.client("NADA");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("UnknownSymbol"), "{text}");
}

#[test]
fn ctrl_c_ends_the_server_in_order() {
    let mut server = Server::start();
    let pid = Pid::from_child(&server.child);
    kill_process(pid, Signal::INT).expect("it runs");
    let status = server.child.wait().expect("it ends");
    assert!(status.success(), "{status}");
}
