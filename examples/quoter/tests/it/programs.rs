//! The two programs of the example, run according to the README.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Server, client};

const LOOPBACK: [&str; 2] = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"];

#[test]
fn the_client_gets_its_quote() {
    let server = Server::start(&LOOPBACK);
    let output = client(&[&server.reference, "ACME"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    // As the tutorial shows it.
    let page = include_str!("../../../../docs/src/getting-started.md");
    assert!(page.contains(&format!("```text\n{text}```")), "{text}");
}

#[test]
fn an_unknown_symbol_is_the_exception_of_the_idl() {
    let server = Server::start(&LOOPBACK);
    let output = client(&[&server.reference, "NADA"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("UnknownSymbol"), "{text}");
}

#[test]
fn ctrl_c_ends_the_server_in_order() {
    let mut server = Server::start(&LOOPBACK);
    let pid = Pid::from_child(&server.child);
    kill_process(pid, Signal::INT).expect("it runs");
    let status = server.child.wait().expect("it ends");
    assert!(status.success(), "{status}");
}
