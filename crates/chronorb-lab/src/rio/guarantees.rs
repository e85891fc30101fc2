//! E12: guarantees and limits of bandwidth.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, sleep_until};

use super::class::{Class, FEW, Processing};
use super::course::Course;
use super::echoes::{PORT, WIND_DOWN};
use super::order::{BLOCK, Door, SendRun, SenderOrder, Served, ServerOrder, Service};
use super::outcome::FlowRow;
use super::plan::Plan;
use super::site::{Machine, Site};
use crate::error::LabError;
use crate::process::Child;

/// A flow that has a reservation, or none.
#[derive(Clone, Copy, Debug)]
struct Flow {
    name: &'static str,
    processing: Processing,
    fifo: Option<u8>,
    /// Octets in a second that it is to have, at least and at most, where that is said.
    wanted: Option<f64>,
    /// Octets of its receive buffer.
    buffer: u32,
}

/// What was found, and a line of the plot for each flow of the first trial.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) rows: Vec<FlowRow>,
    pub(super) courses: Vec<(String, Vec<(f64, f64)>)>,
}

/// Measures flows that begin one after the other, and then one that has a limit.
pub(super) fn measure(
    plan: &Plan,
    machine: &Machine,
    mut say: impl FnMut(&str),
) -> Result<Found, LabError> {
    let site = Site::build(machine, RATE, MTU)?;
    say("guarantees of bandwidth");
    let flows = [BEST_EFFORT]
        .into_iter()
        .chain(RESERVED)
        .collect::<Vec<_>>();
    let (mut rows, courses) = together(&site, "guarantees", &flows, plan.step)?;
    say("a limit of bandwidth");
    rows.extend(together(&site, "limit", &[CAPPED], plan.step * 2)?.0);
    Ok(Found { rows, courses })
}

/// How long it takes, about.
pub(super) fn length(plan: &Plan) -> Duration {
    plan.step * (FLOWS + 1) + plan.step * 3 + AROUND * 2
}

type Rows = (Vec<FlowRow>, Vec<(String, Vec<(f64, f64)>)>);

/// Lets flows begin one after the other, `step` apart, and end together when the last was there for one more.
fn together(
    site: &Site,
    trial: &'static str,
    flows: &[Flow],
    step: Duration,
) -> Result<Rows, LabError> {
    let named = |source| LabError::Trial {
        trial: format!("bandwidth, {trial}"),
        source,
    };
    let machine = &site.machine;
    let doors = flows.iter().zip(PORT..).map(|(flow, port)| Door {
        endpoint: flow.class(machine).endpoint(&site.place(), port),
        services: vec![Service::Sink {
            fifo: flow.fifo.and_then(|fifo| machine.fifo(fifo)),
            steps: 0,
        }],
    });
    let (mut server, serving) = site
        .serve(ServerOrder {
            lock_memory: machine.lock_memory,
            doors: doors.collect(),
        })
        .map_err(named)?;
    let senders: Result<Vec<Child>, _> = flows
        .iter()
        .zip(&serving.doors)
        .map(|(flow, door)| {
            site.send(SenderOrder {
                to: *door,
                fifo: flow.fifo.and_then(|fifo| machine.fifo(fifo)),
                congestion: CONGESTION.to_owned(),
            })
        })
        .collect();
    let mut senders = senders.map_err(named)?;
    site.put_in_places(&server, &senders.iter().collect::<Vec<_>>())?;

    let begun = Monotonic::now() + LEAD;
    for (sender, turn) in senders.iter_mut().zip(0..) {
        let at = begun + step * turn;
        sender
            .tell(&SendRun {
                at_ns: at.as_nanos(),
            })
            .map_err(named)?;
    }
    let count = u32::try_from(flows.len()).unwrap_or(u32::MAX);
    let last = begun + step * count.saturating_sub(1);
    let end = last + step;
    sleep_until(end);
    let down = Deadline::after(WIND_DOWN);
    for sender in senders {
        sender.stop(down).map_err(named)?;
    }
    let Served { courses } = server.hear(down).map_err(named)?;
    server.finish(down).map_err(named)?;

    let rows = flows.iter().zip(&courses).zip(0..);
    let rows = rows.filter_map(|((flow, course), turn)| {
        let own = (begun + step * turn + settling(step), end);
        let row = |phase, (from, to)| row(trial, phase, flow, course, from, to);
        let whole = row("all", own)?;
        let alone =
            (turn == 0 && count > 1).then(|| row("alone", (begun + settling(step), begun + step)));
        let beside = (count > 1).then(|| row("last", (last + settling(step), end)));
        Some([Some(whole), alone.flatten(), beside.flatten()])
    });
    let rows = rows.flatten().flatten().collect();
    let points = flows.iter().zip(&courses);
    let points = points.map(|(flow, course)| (flow.name.to_owned(), course.points(begun, POINT)));
    Ok((rows, points.collect()))
}

fn row(
    trial: &'static str,
    phase: &'static str,
    flow: &Flow,
    course: &Course,
    from: Monotonic,
    to: Monotonic,
) -> Option<FlowRow> {
    let rate = course.rate(from, to)?;
    Some(FlowRow {
        trial,
        phase,
        flow: flow.name,
        wanted_octets_per_s: flow.wanted,
        mean_octets_per_s: rate.mean,
        least_octets_per_s: rate.least,
        most_octets_per_s: rate.most,
    })
}

/// What does not count at a flow's beginning: a connection begins slowly.
fn settling(step: Duration) -> Duration {
    step / 4
}

impl Flow {
    /// As many packets in each period as its reservation says.
    const fn reserved(name: &'static str, packets: u32, fifo: u8) -> Self {
        Self {
            name,
            processing: Processing::Periodic {
                period: PERIOD,
                packets,
            },
            fifo: Some(fifo),
            wanted: Some(octets_per_second(packets)),
            buffer: packets * BLOCK as u32 * PERIODS_IN_FLIGHT,
        }
    }

    fn class(&self, machine: &Machine) -> Class {
        Class {
            name: self.name,
            processing: self.processing,
            fifo: self.fifo.and_then(|fifo| machine.fifo(fifo)),
            connections: FEW,
            buffer: Some(self.buffer),
        }
    }
}

/// What so many packets in each period are.
const fn octets_per_second(packets: u32) -> f64 {
    packets as f64 * BLOCK as f64 * 100.0
}

/// Bits in a second that the switch lets through. The paper's OC3 had 155 million; with these a cap of 40 % is a whole
/// number of packets.
pub(super) const RATE: u64 = 160_000_000;
/// A packet with its headers, so that a block is one.
const MTU: u32 = BLOCK as u32 + 40;
const PERIOD: Duration = Duration::from_millis(10);
/// Which part of the rate the limited flow may have.
const CAP_PERCENT: u64 = 40;
/// Packets of that in a period.
const CAP: u32 = (RATE / 8 * CAP_PERCENT / 100 / 100) as u32 / BLOCK as u32;
/// How many periods' worth of data may be under way.
const PERIODS_IN_FLIGHT: u32 = 4;
const FLOWS: u32 = 4;
const BEST_EFFORT: Flow = Flow {
    name: "best-effort",
    processing: Processing::Demand,
    fifo: None,
    wanted: None,
    buffer: 64_000,
};
const RESERVED: [Flow; 3] = [
    Flow::reserved("6.4", 8, 60),
    Flow::reserved("3.2", 4, 55),
    Flow::reserved("1.6", 2, 51),
];
const CAPPED: Flow = Flow {
    name: "capped",
    processing: Processing::Capped {
        period: PERIOD,
        packets: CAP,
    },
    fifo: None,
    wanted: Some(octets_per_second(CAP)),
    buffer: CAP * BLOCK as u32 * PERIODS_IN_FLIGHT,
};
/// That of the paper's day, which every kernel has. What a host prefers may send less than a class lets through: BBR has
/// no more than four packets under way for a fifth of a second in every ten, to measure the path anew.
const CONGESTION: &str = "reno";
const LEAD: Duration = Duration::from_millis(50);
const AROUND: Duration = Duration::from_secs(1);
const POINT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_those_of_the_paper() {
        let wanted = RESERVED.map(|flow| flow.wanted.unwrap_or_default());
        assert_eq!(wanted, [6.4e6, 3.2e6, 1.6e6]);
        let cap = CAPPED.wanted.unwrap_or_default();
        assert_eq!(cap, RATE as f64 / 8.0 * 0.4);
    }
}
