//! The client of the experiment: one thread of high priority, and many of low.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use chronorb::prelude::*;

use super::calls::{self, Times};
use super::order::{ClientOrder, HIGH, LOW, Measured, Ready, Start};
use super::server::orb;
use crate::error::LabError;
use crate::idl::peers::Power;
use crate::process::{self, Parent, ProcessError};
use crate::schedule::SystemClock;

/// Connects all threads, lets them call as the parent says, and tells it what each call took. The process ends with
/// its standard input.
///
/// `order` is the argument of [`CLIENT_COMMAND`](super::CLIENT_COMMAND).
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub fn client_main(order: &str) -> Result<(), LabError> {
    let order: ClientOrder = process::order(order)?;
    let is_done = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_done);
    let parent = Parent::listen(move || {
        if !told.load(Ordering::Relaxed) {
            std::process::exit(ABANDONED);
        }
    });
    let orb = orb(&order.architecture, "127.0.0.1", order.lock_memory, &[])?;
    let measured = measure(&orb, &order, &parent)?;
    is_done.store(true, Ordering::Relaxed);
    process::tell(&measured)?;
    match parent.hear::<()>() {
        Ok(()) | Err(ProcessError::Orphaned) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn measure(orb: &Orb, order: &ClientOrder, parent: &Parent) -> Result<Measured, LabError> {
    thread::scope(|scope| {
        let (connected, connections) = mpsc::channel();
        let callers: Vec<_> = (0..=order.low_clients)
            .map(|number| {
                let (start, starts) = mpsc::channel();
                let connected = connected.clone();
                let caller = scope.spawn(move || match number {
                    0 => caller(
                        orb,
                        HIGH,
                        &order.serving.high,
                        connected,
                        &starts,
                        |start| (Times::of_high(start), 1),
                    ),
                    _ => caller(orb, LOW, &order.serving.low, connected, &starts, |start| {
                        (Times::of_low(start), order.low_clients)
                    }),
                });
                (start, caller)
            })
            .collect();
        drop(connected);
        // A caller that fails to connect does not report: then nobody is started, and it says what is wrong.
        if connections.iter().count() == callers.len() {
            process::tell(&Ready {})?;
            let at: Start = parent.hear()?;
            for (start, _) in &callers {
                let _ = start.send(at);
            }
        }
        let mut taken = Vec::new();
        for (start, caller) in callers {
            drop(start);
            let calls = caller.join();
            taken.push(calls.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        let low = taken.split_off(1).concat();
        Ok(Measured {
            high: taken.concat(),
            low,
        })
    })
}

/// One thread: connects, reports, waits for the start, calls.
fn caller(
    orb: &Orb,
    priority: Priority,
    reference: &str,
    connected: Sender<()>,
    start: &Receiver<Start>,
    times: impl FnOnce(Start) -> (Times, u32),
) -> Result<Vec<u64>, LabError> {
    orb.rt_current()
        .set_priority(priority)
        .map_err(LabError::work("setting the priority"))?;
    let object = orb
        .string_to_object(reference)
        .map_err(LabError::work("finding the object"))?;
    object
        .validate_connection()
        .map_err(LabError::work("connecting to the server"))?;
    let power = Power::narrow(&object)
        .map_err(LabError::work("finding the object"))?
        .ok_or_else(|| LabError::work("finding the object")("it is no power"))?;
    let call = || match power.cube(VALUE) {
        Ok(CUBE) => Ok(()),
        Ok(wrong) => Err(LabError::work("calling the server")(format!(
            "{VALUE}³ is not {wrong}"
        ))),
        Err(exception) => Err(LabError::work("calling the server")(exception)),
    };
    // All threads do this at once, so that what a burst of calls needs is there.
    (0..WARM_UP_CALLS).try_for_each(|_| call())?;

    // Nobody waits for this caller any more when the parent is gone.
    let _ = connected.send(());
    drop(connected);
    let Ok(start) = start.recv() else {
        // Another caller could not connect.
        return Ok(Vec::new());
    };
    let (times, threads) = times(start);
    calls::make(&SystemClock, times, threads, call)
}

const VALUE: u8 = 11;
const CUBE: i32 = 1331;
const WARM_UP_CALLS: u32 = 20;
/// The exit status of a client whose parent is gone.
const ABANDONED: i32 = 3;
