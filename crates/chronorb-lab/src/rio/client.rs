//! Those who send: small messages that come back, and bulk data.

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

use super::order::{BLOCK, ECHO, EchoOrder, EchoRun, Echoed, SendRun, SenderOrder};
use super::server::{PATIENCE, hurry};
use crate::error::LabError;
use crate::process::{self, Parent, Ready};
use crate::stats::Record;

/// Sends messages of [`ECHO`] octets, each when the one before has come back, and tells what each took.
pub(super) fn echo(order: &EchoOrder) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    if order.lock_memory {
        lock_all().map_err(LabError::work("locking memory"))?;
    }
    hurry(order.fifo)?;
    let connection = connect(order.to, true)?;
    for _ in 0..order.warm_up {
        there_and_back(connection.as_ref())?;
    }
    process::tell(&Ready {})?;
    let run: EchoRun = parent.hear()?;
    let record = echoes(connection.as_ref(), run)?;
    Ok(parent.conclude(&Echoed { record })?)
}

/// All echoes of a run.
fn echoes(connection: &dyn Connection, run: EchoRun) -> Result<Record, LabError> {
    let start = Monotonic::from_nanos(run.at_ns);
    sleep_until(start);
    let mut record = Record::new();
    let mut step: f64 = 0.0;
    for _ in 0..run.echoes {
        let sent = Monotonic::now();
        there_and_back(connection)?;
        let answered = Monotonic::now();
        record.add(sent.since(start), answered.since(sent));
        if !run.pause.is_zero() {
            // Pauses of half to one and a half the length, in an order that keeps no step with anything.
            step = (step + GOLDEN_RATIO).fract();
            sleep_until(answered + run.pause.mul_f64(0.5 + step));
        }
    }
    Ok(record)
}

fn there_and_back(connection: &dyn Connection) -> Result<(), LabError> {
    connection
        .send_all(&MESSAGE, Deadline::after(PATIENCE))
        .map_err(LabError::work("sending an echo"))?;
    let mut room = [0; ECHO];
    let mut received = 0;
    while received < ECHO {
        received += connection
            .recv(&mut room[received..], Deadline::after(PATIENCE))
            .map_err(LabError::work("waiting for an echo"))?;
    }
    match room == MESSAGE {
        true => Ok(()),
        false => Err(LabError::work("waiting for an echo")(
            "it came back changed",
        )),
    }
}

/// Sends blocks of [`BLOCK`] octets as fast as the receiver takes them, until standard input ends. Tells the parent
/// when the first [`FIRST`] of them are sent.
pub(super) fn send(order: &SenderOrder) -> Result<(), LabError> {
    let is_over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_over);
    let parent = Parent::listen(move || told.store(true, Ordering::Relaxed));
    hurry(order.fifo)?;
    // With segments of full size only, as by default: a block in two segments would be two packets of a budget.
    let connection = connect(order.to, false)?;
    sockopt::set_tcp_congestion(&connection, &order.congestion)
        .map_err(LabError::work("choosing the congestion control"))?;
    process::tell(&Ready {})?;
    let run: SendRun = parent.hear()?;
    sleep_until(Monotonic::from_nanos(run.at_ns));
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
/// Blocks after which bulk data flows: a MB, more than a path holds that nobody reads.
const FIRST: u64 = 128;
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
const CONNECTING: Duration = Duration::from_secs(10);
