//! Bursts of events, by the number of suppliers and consumers.

use std::sync::Arc;

use chronorb_rt::Monotonic;
use serde::Serialize;

use super::plan::EventsPlan;
use super::site::{ChannelOrder, ChannelProcess, Client, Receiver, push_now};
use crate::error::LabError;
use crate::watch::Watch;

/// One burst.
#[derive(Clone, Debug, Serialize)]
pub struct BurstRow {
    /// The suppliers, the consumers, and which consumer takes what.
    pub what: String,
    /// The events that suppliers pushed.
    pub pushed: u64,
    /// The deliveries that these ask for.
    pub asked: u64,
    /// The deliveries that consumers took.
    pub taken: u64,
    /// The deliveries that the channel tells as lost.
    pub lost: u64,
    /// The events that the channel took in a second.
    pub events_per_s: f64,
}

/// Suppliers and consumers of a burst. Types count from the first one.
struct Shape {
    what: &'static str,
    suppliers: &'static [i32],
    /// The type of each consumer; 0 is any.
    consumers: &'static [i32],
}

/// Runs all bursts.
pub(super) fn measure(plan: &EventsPlan, watch: &Watch) -> Result<Vec<BurstRow>, LabError> {
    let rows = SHAPES.iter().map(|shape| {
        watch.begin(&format!("a burst, {}", shape.what));
        burst(shape, plan.burst)
    });
    rows.collect()
}

fn burst(shape: &Shape, events: u32) -> Result<BurstRow, LabError> {
    let channel = ChannelProcess::start(&ChannelOrder {
        outbox: Some(OUTBOX),
        ..ChannelOrder::default()
    })?;
    let consuming = Client::start(channel.reference(), None)?;
    let receivers = shape.consumers.iter().map(|event_type| {
        let receiver = Arc::new(Receiver::default());
        consuming.subscribe(*event_type, 0, &receiver)?;
        Ok(receiver)
    });
    let receivers = receivers.collect::<Result<Vec<_>, LabError>>()?;
    let suppliers = shape.suppliers.iter().map(|event_type| {
        let client = Client::start(channel.reference(), None)?;
        let supplier = client.supplier(*event_type)?;
        Ok((client, supplier, *event_type))
    });
    let suppliers = suppliers.collect::<Result<Vec<_>, LabError>>()?;
    let pushed = u64::from(events) * suppliers.len() as u64;
    let begin = Monotonic::now();
    std::thread::scope(|scope| {
        let push = |(_, supplier, event_type): &(_, _, i32)| {
            (0..events).try_for_each(|_| push_now(supplier, *event_type, &[]))
        };
        let threads = suppliers.iter().map(|of| scope.spawn(move || push(of)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| {
            let outcome = thread.join();
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    consuming.await_received(pushed)?;
    let length = Monotonic::now().since(begin);
    let takes = |of: i32, event_type: i32| of == 0 || of == event_type;
    let asked = shape
        .consumers
        .iter()
        .zip(&receivers)
        .map(|(of, receiver)| {
            let matching = shape.suppliers.iter().filter(|by| takes(*of, **by));
            (&**receiver, matching.count() as u64 * u64::from(events))
        });
    let asked: Vec<(&Receiver, u64)> = asked.collect();
    let settled = consuming.settle(&asked)?;
    let asked = asked.iter().map(|(_, asked)| asked).sum();
    drop((suppliers, consuming));
    channel.stop()?;
    Ok(BurstRow {
        what: shape.what.to_owned(),
        pushed,
        asked,
        taken: settled.iter().map(|(taken, _)| taken).sum(),
        lost: settled.iter().map(|(_, lost)| lost).sum(),
        events_per_s: pushed as f64 / length.as_secs_f64(),
    })
}

const SHAPES: [Shape; 4] = [
    Shape {
        what: "1 supplier, 1 consumer",
        suppliers: &[20],
        consumers: &[20],
    },
    Shape {
        what: "1 supplier, 4 consumers of which one matches",
        suppliers: &[20],
        consumers: &[20, 21, 22, 23],
    },
    Shape {
        what: "4 suppliers, 4 consumers, each of one",
        suppliers: &[20, 21, 22, 23],
        consumers: &[20, 21, 22, 23],
    },
    Shape {
        what: "4 suppliers, 4 consumers, each of all",
        suppliers: &[20, 21, 22, 23],
        consumers: &[0, 0, 0, 0],
    },
];
/// The events that wait for a consumer. Bursts are longer.
const OUTBOX: usize = 256;
