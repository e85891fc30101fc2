//! The tutorial's page on C++: its commands build the programs, which call those in Rust and are
//! called by them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Server, client, has, run_block};

const PAGE: &str = include_str!("../../../../docs/src/tutorial-cpp.md");

#[test]
fn programs_in_cpp_and_in_rust_call_each_other() {
    if !has("omniidl", "omniidl libomniorb4-dev") || !has("g++", "g++") {
        return;
    }
    let folder = Folder::make("cpp");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["idl/quoter.idl", "cpp/client.cc", "cpp/server.cc"] {
        let copy = folder.path().join(file);
        fs::create_dir_all(copy.parent().expect("a folder")).expect("it can be made");
        fs::copy(sources.join(file), copy).expect("it can be copied");
    }
    let cpp = folder.path().join("cpp");
    run_block(PAGE, "omniidl -b", &cpp);

    let server = Server::start(&["-ORBListenEndpoints", "iiop://127.0.0.1:0"]);
    let mut theirs = Command::new(cpp.join("client"));
    let output = theirs.args([&server.reference, "ACME"]).output();
    let output = output.expect("the client in C++ runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("ping: 4\nACME: 10 at 100\n"), "{output:?}");

    let mut theirs = Command::new(cpp.join("server"));
    let server = Server::of(theirs.args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]));
    let output = client(&[&server.reference, "ACME"]);
    assert!(output.status.success(), "{output:?}");
}
