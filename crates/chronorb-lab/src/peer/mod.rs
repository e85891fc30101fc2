//! `chronorb lab peer`: a server and a client for comparisons that other programs make.
//!
//! Such a comparison runs servers and clients of several systems, from outside. [`serve`] writes
//! its references to a file and runs until a signal ends it; [`call`] reads the file, makes calls
//! and prints one line of JSON. The interface is `Peers::Power` of `idl/peers.idl`: an octet, and
//! its cube as the reply. `Peers::Data` returns data.

mod arguments;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronorb::prelude::*;
use chronorb_orb::OrbConfig;
use serde_json::{Value, json};

use crate::bench::drive::{elapsed, timed};
use crate::bench::orb::{Calls, offer_lines, waiting};
use crate::error::LabError;
use crate::stats::quantile;

pub use crate::bench::{Operation, Waits};
pub use arguments::{PeerTransport, payload};

/// The arguments of `chronorb lab peer server`.
#[derive(Clone, Debug)]
pub struct PeerServer {
    /// The file for the references: a line for `Peers::Power`, and one for `Peers::Data`.
    pub file: PathBuf,
    /// The transport, unless `config` names an endpoint.
    pub transport: PeerTransport,
    /// The way in which its threads wait for requests, instead of that of `config`.
    pub waits: Option<Waits>,
    /// All other settings.
    pub config: OrbConfig,
}

/// The arguments of `chronorb lab peer client`.
#[derive(Clone, Debug)]
pub struct PeerClient {
    /// The file with the references.
    pub file: PathBuf,
    /// The number of timed calls.
    pub calls: u32,
    /// The number of calls before them.
    pub warm_up: u32,
    /// The number of threads that call at once, each on a connection of its own, to count the calls
    /// in a second. Without it, one thread times each call.
    pub threads: Option<u32>,
    /// The operation that is called.
    pub operation: Operation,
    /// The way in which its threads wait for replies, instead of that of `config`.
    pub waits: Option<Waits>,
    /// All other settings.
    pub config: OrbConfig,
}

/// Serves until `SIGTERM` or `SIGINT`.
///
/// # Errors
/// See [`LabError`].
pub fn serve(server: PeerServer) -> Result<(), LabError> {
    let mut config = server.config;
    if config.listen_endpoints.is_empty() {
        config.listen_endpoints = server.transport.endpoints();
    }
    if let Some(waits) = server.waits {
        config.server_wait = waiting(waits);
    }
    let orb = Orb::with_config(config)?;
    orb.catch_signals().map_err(LabError::work(SERVING))?;
    let references = offer_lines(&orb).map_err(LabError::work("the objects cannot be offered"))?;
    let file = server.file.display();
    let failed = LabError::work(format!("the references cannot be written to {file}"));
    write_in_one_step(&server.file, &references).map_err(failed)?;
    orb.run_until_signal().map_err(LabError::work(SERVING))
}

/// Makes the calls, and prints their times as one JSON object.
///
/// # Errors
/// See [`LabError`].
pub fn call(client: PeerClient) -> Result<(), LabError> {
    let reference = reference(&client.file, client.operation)?;
    let mut config = client.config;
    if let Some(waits) = client.waits {
        config.client_wait = waiting(waits);
    }
    let orb = Orb::with_config(config)?;
    let connect = || Calls::of(&orb, &reference, client.operation);
    let line = match client.threads {
        None => latency(&timed(&mut connect()?, client.warm_up, client.calls)?),
        Some(threads) => {
            let (each, warm_up) = ((client.calls / threads).max(1), client.warm_up / threads);
            let elapsed_ns = elapsed(threads, connect, warm_up, each)?;
            throughput(threads, each * threads, elapsed_ns)
        }
    };
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(LabError::Output)
}

/// Reads the reference of the object with this operation.
fn reference(file: &Path, operation: Operation) -> Result<String, LabError> {
    let failed = LabError::work(format!(
        "no reference can be read from {}, which the server writes",
        file.display()
    ));
    let text = fs::read_to_string(file).map_err(&failed)?;
    let index = usize::from(operation != Operation::Cube);
    match text.lines().nth(index) {
        Some(reference) if !reference.is_empty() => Ok(reference.to_owned()),
        _ => {
            let missing = format!("there is no reference in line {}", index + 1);
            Err(failed(io::Error::new(io::ErrorKind::InvalidData, missing)))
        }
    }
}

/// Writes a file so that it appears complete to programs that wait for it.
fn write_in_one_step(file: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".part");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, file)
}

/// Returns the times of single calls in µs.
fn latency(latencies_ns: &[u64]) -> Value {
    let us = |ns: f64| ns.round() / 1e3;
    let n = latencies_ns.len();
    let mut sorted: Vec<f64> = latencies_ns.iter().map(|ns| *ns as f64).collect();
    let sum: f64 = sorted.iter().sum();
    let mut quantile = |share| us(quantile(&mut sorted, share));
    json!({
        "peer": NAME,
        "n": n,
        "min": quantile(0.0),
        "p50": quantile(0.5),
        "p99": quantile(0.99),
        "p999": quantile(0.999),
        "max": quantile(1.0),
        "mean": us(sum / n.max(1) as f64),
    })
}

/// Returns the number of calls of several threads in a second.
fn throughput(threads: u32, calls: u32, elapsed_ns: u64) -> Value {
    let seconds = elapsed_ns.max(1) as f64 / 1e9;
    json!({
        "peer": NAME,
        "threads": threads,
        "n": calls,
        "calls_per_s": (f64::from(calls) / seconds).round(),
    })
}

const NAME: &str = "chronorb";
const SERVING: &str = "the server cannot serve";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_call_that_was_made() {
        let latency = latency(&(1..=1000).rev().map(|us| us * 1000).collect::<Vec<_>>());
        assert_eq!(latency["n"], 1000);
        let quantiles = ["min", "p50", "p99", "p999", "max"].map(|name| latency[name].as_f64());
        assert_eq!(quantiles, [1.0, 500.0, 990.0, 999.0, 1000.0].map(Some));
        assert_eq!(latency["mean"], 500.5);
    }

    #[test]
    fn calls_in_a_second_are_those_of_all_threads() {
        let throughput = throughput(4, 20_000, 500_000_000);
        assert_eq!(throughput["calls_per_s"], 40_000.0);
    }

    #[test]
    fn a_file_without_a_reference_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("endpoint");
        let of = |operation| reference(&file, operation).map_err(|error| error.to_string());
        assert!(of(Operation::Cube).unwrap_err().contains("endpoint"));
        write_in_one_step(&file, "IOR:00\n").unwrap();
        assert_eq!(of(Operation::Cube).unwrap(), "IOR:00");
        assert!(of(Operation::Octets(1)).unwrap_err().contains("line 2"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
