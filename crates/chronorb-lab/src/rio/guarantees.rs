//! E12: guarantees and limits of bandwidth.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::class::{PacketClass, Processing};
use super::echoes::{PORT, WIND_DOWN};
use super::history::OctetHistory;
use super::order::{AcceptorOrder, BLOCK, RioServer, SendStart, Service, Traffic};
use super::outcome::{FlowRow, RateCurve};
use super::plan::{RioPart, RioPlan};
use super::site::{RioMachine, RioSite};
use crate::error::LabError;

/// The rows of a trial, and a curve for each flow.
type FlowFigures = (Vec<FlowRow>, Vec<RateCurve>);

/// Measures flows that begin one after the other, and then one that has a limit.
pub(super) fn measure(
    plan: &RioPlan,
    machine: &RioMachine,
    mut begin: impl FnMut(&str),
) -> Result<FlowFigures, LabError> {
    let site = RioSite::build(machine, RATE, MTU)?;
    begin("guarantees of bandwidth");
    let [first, second, third] = RESERVED;
    let flows = [BEST_EFFORT, first, second, third];
    let (mut rows, curves) = together(&site, "guarantees", &flows, plan.step)?;
    begin("a limit of bandwidth");
    rows.extend(together(&site, "limit", &[CAPPED], plan.step * 2)?.0);
    Ok((rows, curves))
}

/// Returns the approximate duration.
pub(super) fn length(plan: &RioPlan) -> Duration {
    plan.step * (FLOWS + 1) + plan.step * 3 + AROUND * 2
}

/// Runs flows that begin one after the other, `step` apart, and end together one step after the
/// last one began.
fn together(
    site: &RioSite,
    trial: &'static str,
    flows: &[PacketClass],
    step: Duration,
) -> Result<FlowFigures, LabError> {
    let figures = try_together(site, trial, flows, step);
    figures.map_err(|error| error.in_trial(format!("bandwidth, {trial}")))
}

fn try_together(
    site: &RioSite,
    trial: &'static str,
    flows: &[PacketClass],
    step: Duration,
) -> Result<FlowFigures, LabError> {
    let machine = &site.machine;
    let fifo = |flow: &PacketClass| flow.fifo.and_then(|fifo| machine.fifo(fifo));
    let acceptors = flows.iter().zip(PORT..).map(|(flow, port)| {
        let (fifo, sink_steps) = (fifo(flow), Some(0));
        let class = PacketClass { fifo, ..*flow };
        AcceptorOrder {
            endpoint: class.endpoint(&site.host(), port),
            services: vec![Service { fifo, sink_steps }],
        }
    });
    let server = RioServer {
        lock_memory: machine.lock_memory,
        acceptors: acceptors.collect(),
    };
    let traffic = flows.iter().map(|flow| {
        let congestion = CONGESTION.to_owned();
        (fifo(flow), Traffic::Bulk { congestion })
    });
    let traffic: Vec<_> = traffic.collect();
    let (mut server, mut senders) = site.start(server, &traffic)?;

    let begun = Monotonic::now() + LEAD;
    let mut last = begun;
    for (sender, turn) in senders.iter_mut().zip(0..) {
        last = begun + step * turn;
        let at_ns = last.as_nanos();
        sender.tell(&SendStart { at_ns })?;
    }
    let end = last + step;
    sleep_until(end);
    let down = Deadline::after(WIND_DOWN);
    for sender in senders {
        sender.stop(down)?;
    }
    let histories: Vec<OctetHistory> = server.hear(down)?;
    server.finish(down)?;

    // A connection begins slowly, so the beginning of a flow does not count.
    let settling = step / 4;
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    for ((flow, history), turn) in flows.iter().zip(&histories).zip(0..) {
        let phases = [
            ("all", true, begun + step * turn, end),
            ("alone", turn == 0 && flows.len() > 1, begun, begun + step),
            ("last", flows.len() > 1, last, end),
        ];
        for (phase, _, from, to) in phases.into_iter().filter(|(_, is_wanted, ..)| *is_wanted) {
            let rate = history.rate(from + settling, to);
            rows.extend(rate.map(|rate| FlowRow {
                trial,
                phase,
                flow: flow.name,
                wanted_octets_per_s: wanted(flow),
                mean_octets_per_s: rate.mean,
                least_octets_per_s: rate.least,
                most_octets_per_s: rate.most,
            }));
        }
        curves.push(RateCurve {
            part: RioPart::Guarantees,
            name: match flow.name {
                "best-effort" => "best effort".to_owned(),
                reserved => format!("{reserved} MB/s"),
            },
            points: history.points(begun, POINT),
        });
    }
    Ok((rows, curves))
}

/// Returns the reservation or the limit of a flow in octets in a second.
const fn wanted(flow: &PacketClass) -> Option<f64> {
    match flow.processing {
        Processing::Arrival | Processing::Demand => None,
        Processing::Capped { packets, .. } | Processing::Periodic { packets, .. } => {
            Some(packets as f64 * BLOCK as f64 * 100.0)
        }
    }
}

/// Returns the class of a flow with a reservation of so many packets in each period.
const fn reserved(name: &'static str, packets: u32, fifo: u8) -> PacketClass {
    let period = PERIOD;
    let processing = Processing::Periodic { period, packets };
    PacketClass {
        buffer: Some(packets * BLOCK as u32 * PERIODS_IN_FLIGHT),
        ..PacketClass::of_flow(name, processing, Some(fifo))
    }
}

/// The rate of the switch in bit/s. The paper's OC3 had 155 million; with this rate a cap of 40 %
/// is a whole number of packets.
pub(super) const RATE: u64 = 160_000_000;
/// A packet with its headers, so that a block is one.
const MTU: u32 = BLOCK as u32 + 40;
const PERIOD: Duration = Duration::from_millis(10);
/// The share of the rate that the limited flow may have.
const CAP_PERCENT: u64 = 40;
/// The packets of that share in a period.
const CAP: u32 = (RATE / 8 * CAP_PERCENT / 100 / 100) as u32 / BLOCK as u32;
/// The periods whose data may be in flight.
const PERIODS_IN_FLIGHT: u32 = 4;
const FLOWS: u32 = 4;
const BEST_EFFORT: PacketClass = PacketClass {
    buffer: Some(64_000),
    ..PacketClass::of_flow("best-effort", Processing::Demand, None)
};
const RESERVED: [PacketClass; 3] = [
    reserved("6.4", 8, 60),
    reserved("3.2", 4, 55),
    reserved("1.6", 2, 51),
];
const CAPPED: PacketClass = PacketClass {
    processing: Processing::Capped {
        period: PERIOD,
        packets: CAP,
    },
    fifo: None,
    ..reserved("capped", CAP, 0)
};
/// The congestion control of the paper's day, which every kernel has. A host's default may send
/// less than a class lets through: BBR has at most four packets in flight for a fifth of a second
/// in every ten, to measure the path anew.
const CONGESTION: &str = "reno";
const LEAD: Duration = Duration::from_millis(50);
const AROUND: Duration = Duration::from_secs(1);
const POINT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_those_of_the_paper() {
        let wanted = RESERVED.map(|flow| wanted(&flow).unwrap_or_default());
        assert_eq!(wanted, [6.4e6, 3.2e6, 1.6e6]);
        let cap = super::wanted(&CAPPED).unwrap_or_default();
        assert_eq!(cap, RATE as f64 / 8.0 * 0.4);
    }
}
