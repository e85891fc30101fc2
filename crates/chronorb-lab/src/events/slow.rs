//! A consumer that takes nothing, and the events of one that keeps up.

use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::{Monotonic, sleep_until};
use serde::Serialize;

use super::plan::EventsPlan;
use super::site::{ChannelOrder, ChannelProcess, Client, Receiver, push_now};
use crate::error::LabError;
use crate::report::rounds;
use crate::stats::Summary;
use crate::usage;
use crate::watch::Watch;

/// The events of the consumer that keeps up, with the other one or without it.
#[derive(Clone, Debug, Serialize)]
pub struct SlowRow {
    /// Whether there was a consumer that took nothing.
    pub beside_slow: bool,
    /// The time from the creation of an event to the consumer that keeps up.
    pub latency: Summary,
    /// The events that were pushed.
    pub pushed: u64,
    /// The events of this consumer that the channel tells as lost.
    pub fast_lost: u64,
    /// The events that the slow consumer took, after it was released.
    pub slow_taken: u64,
    /// The events of the slow consumer that the channel tells as lost.
    pub slow_lost: u64,
    /// The growth of the channel's memory in octets.
    pub growth: u64,
}

/// Measures without and with the slow consumer.
pub(super) fn measure(plan: &EventsPlan, watch: &Watch) -> Result<Vec<SlowRow>, LabError> {
    let rows = [false, true].map(|beside_slow| {
        watch.begin(if beside_slow {
            "a consumer beside a slow one"
        } else {
            "a consumer alone"
        });
        row(plan.beside_slow, beside_slow)
    });
    rows.into_iter().collect()
}

fn row(events: u32, beside_slow: bool) -> Result<SlowRow, LabError> {
    let channel = ChannelProcess::start(&ChannelOrder {
        outbox: Some(OUTBOX),
        ..ChannelOrder::default()
    })?;
    let fast = Client::start(channel.reference(), None)?;
    let receiver = Receiver::timed(events + WARM_UP);
    fast.subscribe(TYPE, 0, &receiver)?;
    let supplier = fast.supplier(TYPE)?;
    let payload = vec![7; PAYLOAD];
    for number in 1..=WARM_UP {
        push_now(&supplier, TYPE, &payload)?;
        receiver.await_taken(number.into())?;
    }
    let slow = beside_slow.then(|| {
        let client = Client::start(channel.reference(), None)?;
        let receiver = Receiver::held();
        client.subscribe(TYPE, 0, &receiver)?;
        Ok::<_, LabError>((client, receiver))
    });
    let slow: Option<(Client, Arc<Receiver>)> = slow.transpose()?;
    let before = usage::resident(channel.id());
    let begin = Monotonic::now();
    for number in 0..events {
        sleep_until(begin + PERIOD * number);
        push_now(&supplier, TYPE, &payload)?;
    }
    let of_fast = u64::from(WARM_UP + events);
    let growth = || usage::resident(channel.id()).saturating_sub(before);
    let ((fast_lost, growth), slow_of) = match &slow {
        None => (
            (fast.settle(&[(&receiver, of_fast)])?[0].1, growth()),
            (0, 0),
        ),
        Some((_client, held)) => {
            let settled = fast.settle(&[(&receiver, of_fast)])?;
            let fast_part = (settled[0].1, growth());
            held.release();
            let asked = [(&*receiver, of_fast), (&**held, events.into())];
            (fast_part, fast.settle(&asked)?[1])
        }
    };
    let latencies = receiver.latencies();
    let latencies = latencies.get(WARM_UP as usize..).unwrap_or_default();
    drop((slow, fast));
    channel.stop()?;
    Ok(SlowRow {
        beside_slow,
        latency: rounds::record(latencies).summary(),
        pushed: events.into(),
        fast_lost,
        slow_taken: slow_of.0,
        slow_lost: slow_of.1,
        growth,
    })
}

const TYPE: i32 = 20;
const PERIOD: Duration = Duration::from_millis(1);
const WARM_UP: u32 = 100;
/// The events that wait for a consumer.
pub(super) const OUTBOX: usize = 16;
/// The octets of an event. Sockets cannot hold all of a run.
pub(super) const PAYLOAD: usize = 8192;
