//! A client of the demonstration.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use chronorb::prelude::*;
use chronorb_rt::{Monotonic, Policy as SchedulingPolicy};

use super::order::{Class, ClientOrder, Connected, HIGH_PRIORITY, LOW_PRIORITY, Measured, Start};
use super::server::orb;
use crate::error::LabError;
use crate::idl::demo::Work;
use crate::process::{self, Parent};
use crate::schedule::{SystemClock, Window, closed_loop, periodic};
use crate::stats::Record;

/// Connects, waits for the start, calls the server for the time of a phase and tells the parent
/// what it measured. The process ends at once when standard input ends before that.
///
/// `order` is the argument of [`CLIENT_COMMAND`](super::CLIENT_COMMAND), made by [`run`](super::run).
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub fn client_main(order: &str) -> Result<(), LabError> {
    let order: ClientOrder = process::order(order)?;
    let parent = Parent::listen(|| std::process::exit(ABANDONED));
    let orb = orb(&[
        "-ORBRealTime",
        if order.priorities { "preferred" } else { "off" },
    ])?;
    let threads = match order.class {
        Class::High => 1,
        Class::Low => order.setup.threads_per_low_client,
    };
    let measured = thread::scope(|scope| {
        let (connected, connections) = mpsc::channel();
        let callers: Vec<_> = (0..threads)
            .map(|_| {
                let (start, starts) = mpsc::channel();
                let (orb, order, connected) = (&orb, &order, connected.clone());
                let caller = scope.spawn(move || caller(orb, order, connected, &starts));
                (start, caller)
            })
            .collect();
        drop(connected);
        // A caller that fails to connect does not report: then nobody is started, and it says what
        // is wrong.
        if connections.iter().count() == callers.len() {
            process::tell(&Connected {})?;
            let Start { at_ns } = parent.hear()?;
            for (start, _) in &callers {
                let _ = start.send(Monotonic::from_nanos(at_ns));
            }
        }
        let mut all = Measured {
            calls: Record::new(),
            real_time: true,
        };
        for (start, caller) in callers {
            drop(start);
            let measured = caller
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all.calls.merge(&measured.calls);
            all.real_time &= measured.real_time;
        }
        Ok::<_, LabError>(all)
    })?;
    Ok(process::tell(&measured)?)
}

/// One calling thread: connects, reports, waits for the start, measures.
fn caller(
    orb: &Orb,
    order: &ClientOrder,
    connected: Sender<()>,
    start: &Receiver<Monotonic>,
) -> Result<Measured, LabError> {
    let setup = &order.setup;
    let (priority, steps) = match order.class {
        Class::High => (HIGH_PRIORITY, order.steps.high),
        Class::Low => (LOW_PRIORITY, order.steps.low),
    };
    if order.priorities {
        orb.rt_current()
            .set_priority(priority)
            .map_err(LabError::work("setting the priority"))?;
    }
    let work = orb
        .string_to_object(&order.reference)
        .and_then(|object| Work::narrow(&object))
        .map_err(LabError::work("finding the object"))?
        .ok_or_else(|| LabError::work("finding the object")("it does no work of this kind"))?;
    let call = |steps| {
        let cube = work
            .cube(VALUE, steps)
            .map_err(LabError::work("calling the server"))?;
        if cube != CUBE {
            return Err(LabError::work("calling the server")(format!(
                "{VALUE}³ is not {cube}"
            )));
        }
        Ok(())
    };
    for _ in 0..WARM_UP_CALLS {
        call(1)?;
    }
    let real_time =
        chronorb_rt::current().is_ok_and(|scheduling| scheduling.policy != SchedulingPolicy::Other);

    // Nobody waits for this caller any more when the parent is gone.
    let _ = connected.send(());
    drop(connected);
    let Ok(start) = start.recv() else {
        // Another caller could not connect.
        return Ok(Measured {
            calls: Record::new(),
            real_time,
        });
    };
    let window = Window {
        start,
        length: setup.phase,
    };
    let calls = match order.class {
        Class::High => periodic(&SystemClock, window, setup.period, || call(steps)),
        Class::Low => closed_loop(&SystemClock, window, || call(steps)),
    }?;
    Ok(Measured { calls, real_time })
}

const VALUE: u8 = 11;
const CUBE: i32 = 1331;
/// Enough to have the connection open and the code and stack in memory.
const WARM_UP_CALLS: u32 = 20;
/// The exit status of a client whose parent is gone.
const ABANDONED: i32 = 3;
