//! The senders: small messages that come back, and bulk data.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Monotonic, lock_all, sleep_until};
use chronorb_transport::tcp::Tcp;
use chronorb_transport::{
    Address, Connection, Deadline, SendError, Setup, SocketOptions, Transport,
};
use rustix::net::sockopt;

use super::order::{BLOCK, ECHO, RioSender, SendStart, Traffic};
use super::server::{PATIENCE, schedule};
use crate::error::LabError;
use crate::process::{self, Parent, Ready};
use crate::stats::Record;

/// Connects, waits for the start, and sends.
pub(super) fn send(order: &RioSender) -> Result<(), LabError> {
    if order.lock_memory {
        lock_all().map_err(LabError::work("locking memory"))?;
    }
    schedule(order.fifo)?;
    match &order.traffic {
        Traffic::Echoes { count, pause } => echoes(order.to, *count, *pause),
        Traffic::Bulk { congestion } => bulk(order.to, congestion),
    }
}

/// Sends messages that come back, and reports their latencies.
fn echoes(to: SocketAddr, count: u32, pause: Duration) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    let connection = connect(to, true)?;
    (0..WARM_UP).try_for_each(|_| there_and_back(connection.as_ref()))?;
    let start = await_start(&parent)?;
    let mut record = Record::new();
    let mut step: f64 = 0.0;
    for _ in 0..count {
        let sent = Monotonic::now();
        there_and_back(connection.as_ref())?;
        let answered = Monotonic::now();
        record.add(sent.since(start), answered.since(sent));
        if !pause.is_zero() {
            // Pauses of 0.5 to 1.5 times the length, in an order without a period.
            step = (step + GOLDEN_RATIO).fract();
            sleep_until(answered + pause.mul_f64(0.5 + step));
        }
    }
    Ok(parent.conclude(&record)?)
}

fn there_and_back(connection: &dyn Connection) -> Result<(), LabError> {
    let sent = connection.send_all(&MESSAGE, Deadline::after(PATIENCE));
    sent.map_err(LabError::work("sending an echo"))?;
    let mut room = [0; ECHO];
    let mut received = 0;
    while received < ECHO {
        received += connection
            .recv(&mut room[received..], Deadline::after(PATIENCE))
            .map_err(LabError::work("waiting for an echo"))?;
    }
    if room == MESSAGE {
        Ok(())
    } else {
        Err(LabError::work("waiting for an echo")(
            "it came back changed",
        ))
    }
}

/// Sends blocks as fast as the receiver takes them, until standard input ends. Reports to the
/// parent when the first [`FIRST`] of them are sent.
fn bulk(to: SocketAddr, congestion: &str) -> Result<(), LabError> {
    let is_over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_over);
    let parent = Parent::listen(move || told.store(true, Ordering::Relaxed));
    // With segments of full size only, as by default: a block in two segments would be two packets
    // of a budget.
    let connection = connect(to, false)?;
    sockopt::set_tcp_congestion(&connection, congestion)
        .map_err(LabError::work("choosing the congestion control"))?;
    await_start(&parent)?;
    let block = vec![0x5a; BLOCK];
    let mut blocks = 0;
    while !is_over.load(Ordering::Relaxed) {
        let sent = connection.send_all(&block, Deadline::after(PATIENCE));
        sent.map_err(|error: SendError| LabError::work("sending bulk data")(error))?;
        blocks += 1;
        if blocks == FIRST {
            process::tell(&Ready {})?;
        }
    }
    connection.shutdown();
    Ok(())
}

/// Reports that this sender is connected, and waits for the start.
fn await_start(parent: &Parent) -> Result<Monotonic, LabError> {
    process::tell(&Ready {})?;
    let SendStart { at_ns } = parent.hear()?;
    let start = Monotonic::from_nanos(at_ns);
    sleep_until(start);
    Ok(start)
}

fn connect(to: SocketAddr, no_delay: bool) -> Result<Box<dyn Connection>, LabError> {
    let address = Address::host(to.ip().to_string(), to.port());
    let setup = Setup::from(SocketOptions {
        no_delay,
        ..SocketOptions::default()
    });
    Tcp.connect(&address, setup, Deadline::after(CONNECTING))
        .map_err(LabError::work("connecting to the server"))
}

const MESSAGE: [u8; ECHO] = [0x5a; ECHO];
/// The echoes that are not measured.
const WARM_UP: u32 = 50;
/// Blocks after which bulk data flows: a MB, more than the buffers of a path hold.
const FIRST: u64 = 128;
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
const CONNECTING: Duration = Duration::from_secs(10);
