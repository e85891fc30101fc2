//! The arguments of a peer in comparisons that other programs make.

use std::path::PathBuf;

use chronorb_lab::peer;
use chronorb_orb::OrbConfig;
use clap::{Args, Subcommand, value_parser};

#[derive(Debug, Subcommand)]
pub(crate) enum PeerCommand {
    /// Serve, and leave a reference in a file.
    ///
    /// The file appears complete or not at all: a line with the reference of an object that cubes
    /// an octet (Peers::Power), and one with that of an object that gives back data (Peers::Data).
    /// Runs until SIGTERM. Takes -ORB options too.
    #[command(after_help = PEER_SERVER_EXAMPLES)]
    Server(PeerServerArguments),

    /// Call the server whose reference is in a file, and print the times as one JSON object.
    ///
    /// Without --threads these are the times of single calls, in microseconds; with it the calls
    /// per second of so many threads, each on a connection of its own. Every answer is checked.
    /// Takes -ORB options too.
    #[command(after_help = PEER_CLIENT_EXAMPLES)]
    Client(PeerClientArguments),
}

#[derive(Args, Debug)]
pub(crate) struct PeerServerArguments {
    /// The file for the references.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The transport of the server, unless -ORBListenEndpoints names endpoints.
    #[arg(long, value_name = "SCHEME", default_value = "iiop")]
    transport: peer::PeerTransport,

    /// The way in which threads wait for requests: block, or spin; without it that of
    /// -ORBServerWait.
    #[arg(long, value_name = "block|spin")]
    wait: Option<peer::Waits>,
}

impl PeerServerArguments {
    pub(crate) fn with(self, config: OrbConfig) -> peer::PeerServer {
        peer::PeerServer {
            file: self.file,
            transport: self.transport,
            waits: self.wait,
            config,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct PeerClientArguments {
    /// The file with the references of the server.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The number of timed calls of all threads together.
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = value_parser!(u32).range(1..=100_000_000))]
    n: u32,

    /// The number of calls before the timed ones.
    #[arg(long, value_name = "W", default_value_t = 2_000)]
    warmup: u32,

    /// The number of threads that call at once.
    #[arg(long, value_name = "T", value_parser = value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,

    /// Send data that the server returns, instead of cubing: octets, doubles, structs, strings,
    /// unions, anys or values, as octets:64KiB.
    #[arg(long, value_name = "KIND:SIZE", value_parser = peer::payload)]
    payload: Option<peer::Operation>,

    /// The way in which threads wait for replies: block, or spin; without it that of
    /// -ORBClientWait.
    #[arg(long, value_name = "block|spin")]
    wait: Option<peer::Waits>,
}

impl PeerClientArguments {
    pub(crate) fn with(self, config: OrbConfig) -> peer::PeerClient {
        peer::PeerClient {
            file: self.file,
            calls: self.n,
            warm_up: self.warmup,
            threads: self.threads,
            operation: self.payload.unwrap_or(peer::Operation::Cube),
            waits: self.wait,
            config,
        }
    }
}

const PEER_SERVER_EXAMPLES: &str = "\
Examples:
  chronorb lab peer server /tmp/endpoint
  chronorb lab peer server /tmp/endpoint --wait spin
  chronorb lab peer server /tmp/endpoint -ORBThreads 1 -ORBThreadpoolStrategy half-sync";

const PEER_CLIENT_EXAMPLES: &str = "\
Examples:
  chronorb lab peer client /tmp/endpoint --n 20000 --warmup 2000
  chronorb lab peer client /tmp/endpoint --threads 16
  chronorb lab peer client /tmp/endpoint --payload octets:1MiB --n 1000 --warmup 100";
