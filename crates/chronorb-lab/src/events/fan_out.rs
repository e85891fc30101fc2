//! One event for many consumers over TCP: what each further consumer costs the channel.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronorb_probe::{TraceError, Tracer};
use serde::Serialize;

use super::plan::EventsPlan;
use super::site::{ChannelOrder, ChannelProcess, Client, Receiver, push_now};
use crate::error::LabError;
use crate::watch::Watch;

/// The work of the channel for an event with so many consumers.
#[derive(Clone, Debug, Serialize)]
pub struct FanOutRow {
    /// The consumers.
    pub consumers: u32,
    /// The heap allocations for each event.
    pub allocations: f64,
    /// The octets that these asked for.
    pub allocated_octets: f64,
    /// The system calls for each event that send; `None` if they could not be traced.
    pub sends: Option<f64>,
    /// All system calls for each event.
    pub system_calls: Option<f64>,
}

/// The figures of the part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FanOutFigures {
    /// The rows, by the number of consumers.
    pub rows: Vec<FanOutRow>,
    /// The octets of the payload of each event.
    pub payload: usize,
    /// The reason why system calls could not be traced; empty if they were.
    pub refused: String,
}

impl FanOutFigures {
    /// Returns a figure of each further consumer, between the fewest and the most.
    pub(super) fn of_further(&self, of: impl Fn(&FanOutRow) -> Option<f64>) -> Option<f64> {
        let (first, last) = self.rows.first().zip(self.rows.last())?;
        let further = last.consumers.checked_sub(first.consumers)?;
        (further > 0).then_some((of(last)? - of(first)?) / f64::from(further))
    }
}

/// Measures all numbers of consumers.
pub(super) fn measure(plan: &EventsPlan, watch: &Watch) -> Result<FanOutFigures, LabError> {
    let mut figures = FanOutFigures {
        payload: PAYLOAD,
        ..FanOutFigures::default()
    };
    for consumers in &plan.consumers {
        watch.begin(&format!("an event for {consumers} consumers"));
        let row = row(*consumers, plan.fan_out, &mut figures.refused)?;
        figures.rows.push(row);
    }
    Ok(figures)
}

fn row(consumers: u32, events: u32, refused: &mut String) -> Result<FanOutRow, LabError> {
    let mut channel = ChannelProcess::start(&ChannelOrder {
        outbox: Some(64),
        ..ChannelOrder::default()
    })?;
    let supplying = Client::start(channel.reference(), None)?;
    let supplier = supplying.supplier(TYPE)?;
    let consuming = Client::start(channel.reference(), None)?;
    let receivers = (0..consumers).map(|_| {
        let receiver = Arc::new(Receiver::default());
        consuming.subscribe(TYPE, 0, &receiver)?;
        Ok(receiver)
    });
    let receivers = receivers.collect::<Result<Vec<_>, LabError>>()?;
    let payload = vec![7; PAYLOAD];
    let mut pushed = 0;
    let mut push = |events: u32| {
        for _ in 0..events {
            push_now(&supplier, TYPE, &payload)?;
            pushed += 1;
            receivers.iter().try_for_each(|of| of.await_taken(pushed))?;
        }
        Ok::<_, LabError>(())
    };
    push(WARM_UP)?;
    let before = channel.counts()?;
    push(events)?;
    let after = channel.counts()?;
    let each = |count: u64| count as f64 / f64::from(events);
    let mut row = FanOutRow {
        consumers,
        allocations: each(after.allocations - before.allocations),
        allocated_octets: each(after.allocated_octets - before.allocated_octets),
        sends: None,
        system_calls: None,
    };
    match Tracer::attach(channel.id()) {
        Ok(tracer) => {
            // Nothing is between the first two marks.
            channel.mark(false)?;
            channel.mark(false)?;
            push(events)?;
            channel.mark(true)?;
            let spans = tracer.spans().map_err(LabError::work(TRACING))?;
            let by_name = spans.iter().map(|span| {
                let mut by_name = BTreeMap::new();
                for of in span {
                    *by_name.entry(of.name.as_str()).or_insert(0) += of.calls;
                }
                by_name
            });
            let by_name: Vec<BTreeMap<&str, u64>> = by_name.collect();
            let sum = |which: fn(&str) -> bool| {
                let of = |span: usize| {
                    let calls = by_name.get(span).into_iter().flatten();
                    let calls = calls.filter(|(name, _)| which(name));
                    calls.map(|(_, calls)| calls).sum::<u64>()
                };
                Some(each(of(1).saturating_sub(of(0))))
            };
            row.sends = sum(|name| name.starts_with("send"));
            row.system_calls = sum(|_| true);
        }
        Err(error @ TraceError::Refused(_)) => *refused = error.to_string(),
        Err(error) => return Err(LabError::work(TRACING)(error)),
    }
    drop((supplying, consuming));
    channel.stop()?;
    Ok(row)
}

const TYPE: i32 = 20;
/// Much more than the headers of a message, so that a further encoding is seen in the allocations.
const PAYLOAD: usize = 4096;
const WARM_UP: u32 = 20;
const TRACING: &str = "tracing the system calls of a channel";
