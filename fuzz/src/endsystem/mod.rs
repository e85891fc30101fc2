//! Whole servers and clients, whose peers send anything, over sockets of the Unix domain in one
//! process. After each input a legitimate call succeeds.

mod client;
mod context_requests;
mod events;
mod keys;
mod messages;
mod monitor;
mod server;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use chronorb::Orb;
use chronorb::config::OrbConfig;

pub use client::client_replies;
pub use context_requests::context_requests;
pub use events::event_channel;
pub use keys::object_keys;
pub use monitor::monitor_lines;
pub use server::server_requests;

/// An ORB that knows no transport but sockets of the Unix domain: no input leads it elsewhere.
pub(crate) fn orb(options: &[&str], configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    let own = [
        "-ORBProtocols",
        "uiop",
        "-ORBListenEndpoints",
        "uiop://",
        "-ORBThreads",
        "2",
    ];
    let mut args = own
        .iter()
        .chain(options)
        .map(|arg| (*arg).to_owned())
        .collect();
    let mut config = OrbConfig::read(&mut args).expect("the options are correct");
    config.request_timeout = PATIENCE;
    configure(&mut config);
    Orb::with_config(config).expect("an ORB can be made")
}

/// Sends octets over a connection of their own, and returns what comes back until its end.
fn exchange(path: &Path, octets: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("it is no zero");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("it is no zero");
    let sent = stream.write_all(octets);
    if let Err(error) = sent {
        assert_ne!(
            error.kind(),
            ErrorKind::WouldBlock,
            "nothing reads what is sent"
        );
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_ne!(
            error.kind(),
            ErrorKind::WouldBlock,
            "the connection does not end"
        );
    }
    answer
}

/// Longer than anything may take.
const PATIENCE: Duration = Duration::from_secs(15);
