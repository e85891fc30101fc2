//! `chronorb lab peer`: a server and a client that take part in comparisons which others make.
//!
//! Such a comparison runs servers and clients of several systems, from outside. [`serve`] writes
//! its references to a file and runs until it is told to end; [`call`] reads the file, makes calls
//! and prints one line of JSON. The interface is `Peers::Power` of `idl/peers.idl`: an octet, and its
//! cube as the answer. `Peers::Data` is there too, which gives back data.

mod payload;
mod transport;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronorb::prelude::*;
use chronorb_orb::OrbConfig;
use serde::Serialize;

use crate::bench::drive::{elapsed, timed};
use crate::bench::orb::{Calls, offer_lines, waiting};
use crate::error::LabError;
use crate::stats::quantile;

pub use crate::bench::{Operation, Waits};
pub use payload::payload;
pub use transport::{Transport, UnknownTransport};

/// What `chronorb lab peer server` was asked to do.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where the references go: a line for `Peers::Power`, and one for `Peers::Data`.
    pub file: PathBuf,
    /// How clients reach it, where `config` names no endpoint.
    pub transport: Transport,
    /// How its threads wait for requests; as `config` says where this is nothing.
    pub waits: Option<Waits>,
    /// All other settings.
    pub config: OrbConfig,
}

/// What `chronorb lab peer client` was asked to do.
#[derive(Clone, Debug)]
pub struct Client {
    /// Where the references are.
    pub file: PathBuf,
    /// How many calls are timed.
    pub calls: u32,
    /// How many go before them.
    pub warm_up: u32,
    /// How many call at once, each on a connection of its own, to see how many calls there are in a
    /// second; without it one makes calls to see what each of them takes.
    pub threads: Option<u32>,
    /// What is called.
    pub operation: Operation,
    /// How its threads wait for replies; as `config` says where this is nothing.
    pub waits: Option<Waits>,
    /// All other settings.
    pub config: OrbConfig,
}

/// Serves until `SIGTERM` or `SIGINT`.
///
/// # Errors
///
/// See [`LabError`].
pub fn serve(server: Server) -> Result<(), LabError> {
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
    write_in_one_step(&server.file, &references).map_err(LabError::work(format!(
        "the references cannot be written to {file}"
    )))?;
    orb.run_until_signal().map_err(LabError::work(SERVING))
}

/// Makes the calls, and prints what they took: one JSON object.
///
/// # Errors
///
/// See [`LabError`].
pub fn call(client: Client) -> Result<(), LabError> {
    let reference = reference(&client.file, client.operation)?;
    let mut config = client.config;
    if let Some(waits) = client.waits {
        config.client_wait = waiting(waits);
    }
    let orb = Orb::with_config(config)?;
    let connect = || Calls::of(&orb, &reference, client.operation);
    let line = match client.threads {
        None => {
            let latencies = timed(&mut connect()?, client.warm_up, client.calls)?;
            serde_json::to_string(&Latency::of(&latencies))
        }
        Some(threads) => {
            let (each, warm_up) = ((client.calls / threads).max(1), client.warm_up / threads);
            let elapsed_ns = elapsed(threads, connect, warm_up, each)?;
            serde_json::to_string(&Throughput::of(threads, each * threads, elapsed_ns))
        }
    };
    let line = line.expect("figures are plain data");
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(LabError::Output)
}

/// The reference of the object with this operation.
fn reference(file: &Path, operation: Operation) -> Result<String, LabError> {
    let read = LabError::work(format!(
        "no reference can be read from {}, which the server writes",
        file.display()
    ));
    let text = fs::read_to_string(file).map_err(&read)?;
    let line = match operation {
        Operation::Cube => 0,
        _ => 1,
    };
    match text.lines().nth(line) {
        Some(reference) if !reference.is_empty() => Ok(reference.to_owned()),
        _ => Err(read(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("there is no reference in line {}", line + 1),
        ))),
    }
}

/// Who waits for the file finds all of it.
fn write_in_one_step(file: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".part");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, file)
}

/// What single calls took, in µs.
#[derive(Debug, PartialEq, Serialize)]
struct Latency {
    peer: &'static str,
    n: usize,
    min: f64,
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
    mean: f64,
}

impl Latency {
    fn of(latencies_ns: &[u64]) -> Self {
        let n = latencies_ns.len();
        let us = |ns: f64| (ns.round()) / 1e3;
        let mut sorted: Vec<f64> = latencies_ns.iter().map(|ns| *ns as f64).collect();
        let mut quantile = |share| us(quantile(&mut sorted, share));
        let sum: u64 = latencies_ns.iter().sum();
        Self {
            peer: NAME,
            n,
            min: quantile(0.0),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: quantile(1.0),
            mean: us(sum as f64 / n.max(1) as f64),
        }
    }
}

/// How many calls several threads made in a second.
#[derive(Debug, PartialEq, Serialize)]
struct Throughput {
    peer: &'static str,
    threads: u32,
    n: u32,
    calls_per_s: f64,
}

impl Throughput {
    fn of(threads: u32, calls: u32, elapsed_ns: u64) -> Self {
        Self {
            peer: NAME,
            threads,
            n: calls,
            calls_per_s: (f64::from(calls) / (elapsed_ns.max(1) as f64 / 1e9)).round(),
        }
    }
}

const NAME: &str = "chronorb";
const SERVING: &str = "the server cannot serve";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_call_that_was_made() {
        let latency = Latency::of(&(1..=1000).rev().map(|us| us * 1000).collect::<Vec<_>>());
        assert_eq!(latency.n, 1000);
        let quantiles = [
            latency.min,
            latency.p50,
            latency.p99,
            latency.p999,
            latency.max,
        ];
        assert_eq!(quantiles, [1.0, 500.0, 990.0, 999.0, 1000.0]);
        assert_eq!(latency.mean, 500.5);
    }

    #[test]
    fn calls_in_a_second_are_those_of_all_threads() {
        let throughput = Throughput::of(4, 20_000, 500_000_000);
        assert_eq!(throughput.calls_per_s, 40_000.0);
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
