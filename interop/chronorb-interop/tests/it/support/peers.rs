//! Prerequisites of tests beyond Rust.

use std::path::Path;
use std::process::{Command, Stdio};

/// A prerequisite of tests.
#[derive(Debug)]
pub(crate) struct Peer {
    name: &'static str,
    packages: &'static str,
    is_there: fn() -> bool,
}

/// omniORB with its IDL compiler and its name server, and a C++ compiler.
pub(crate) const OMNIORB: Peer = Peer {
    name: "omniORB",
    packages: "g++ make omniidl libomniorb4-dev omniorb-nameserver",
    is_there: || {
        let commands = ["g++", "make", "omniidl", "omniNames"];
        let headers = ["/usr/include", "/usr/local/include"];
        commands.into_iter().all(has_command)
            && headers
                .into_iter()
                .any(|dir| Path::new(dir).join("omniORB4/CORBA.h").exists())
    },
};

/// tshark, with the right to capture.
pub(crate) const TSHARK: Peer = Peer {
    name: "tshark",
    packages: "tshark (as root, or in the group wireshark)",
    is_there: || {
        has_command("tshark")
            && Command::new("dumpcap")
                .args(["-i", "lo", "-L"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
    },
};

/// Returns whether the peers are installed. A test without one of its peers is skipped with a note.
///
/// # Panics
/// With `CHRONORB_PEERS=required`, if one is missing.
pub(crate) fn require(peers: &[&Peer]) -> bool {
    let missing = peers.iter().find(|peer| !(peer.is_there)());
    let Some(Peer { name, packages, .. }) = missing else {
        return true;
    };
    let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
    assert!(
        !required,
        "CHRONORB_PEERS=required, and {name} is missing: apt-get install {packages}"
    );
    println!("left out: {name} is missing (apt-get install {packages})");
    false
}

fn has_command(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}
