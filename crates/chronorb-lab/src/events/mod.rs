//! `chronorb lab events`: the real-time event channel, within a process and over TCP.
//!
//! [`Events`] counts the instructions, allocations, locks and system calls of a push within a
//! process, by the number of consumers and of other subscribers. Over TCP a channel has a process
//! of its own. It gets urgent events beside a saturated lane, one event for many consumers,
//! bursts, connections, and a consumer that takes nothing. A thousand timers run on one lane. A
//! ring of shared memory has up to a thousand cursors. Other systems take the same events in turns.
//!
//! The parts follow the performance tests of TAO's event channel; the book says which.

mod bursts;
mod claims;
mod connections;
mod fan_out;
mod outcome;
mod peer_parts;
mod peers;
mod plan;
mod priority;
mod push;
mod report;
mod ring;
mod site;
mod slow;
mod timers;

use std::time::Duration;

use crate::bench::Cpus;
use crate::error::LabError;
use crate::experiment::{Experiment, observed};
use crate::watch::Watch;

pub use bursts::BurstRow;
pub use connections::{ConnectionOrder, ConnectionRow};
pub use fan_out::{FanOutFigures, FanOutRow};
pub use outcome::EventsOutcome;
pub(crate) use peer_parts::peers_main;
pub(crate) use peers::PEERS;
pub use peers::{AbsentPeer, PeerFigures, PeerRow, PeerSystem};
pub use plan::{EventsPart, EventsPlan};
pub use priority::PriorityRow;
pub(crate) use priority::{LOAD, load_main};
pub(crate) use push::{PUSHES, pushes_main};
pub use push::{PushCase, PushFigures, PushRow};
pub use ring::RingRow;
pub(crate) use ring::{RING, ring_main};
pub(crate) use site::{CHANNEL, Client, Receiver, channel_main, push_now};
pub use slow::SlowRow;
pub use timers::TimerFigures;

/// The experiment on event channels.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct Events;

impl Experiment for Events {
    const NAME: &'static str = "events";
    const TITLE: &'static str = "The event channel: priorities, fan-out, filters, losses";

    type Plan = EventsPlan;
    type Findings = EventsOutcome;

    fn full() -> EventsPlan {
        EventsPlan::full()
    }

    fn short() -> EventsPlan {
        EventsPlan::short()
    }

    fn measure(plan: &EventsPlan) -> Result<EventsOutcome, LabError> {
        let one_cpu = !Cpus::of_this_process()?.are_several();
        let mut outcome = EventsOutcome::new(plan, one_cpu);
        let (environment, ()) = observed(|| {
            let watch = Watch::start("events", plan.length());
            if plan.has(EventsPart::Priority) {
                let urgent = priority::measure(plan, &watch, &mut outcome.priority)?;
                outcome.real_time &= urgent;
            }
            if plan.has(EventsPart::Collocated) || plan.has(EventsPart::Filters) {
                watch.begin("pushes within a process");
                outcome.pushes = Some(push::measure(plan)?);
            }
            if plan.has(EventsPart::FanOut) {
                outcome.fan_out = Some(fan_out::measure(plan, &watch)?);
            }
            if plan.has(EventsPart::Bursts) {
                outcome.bursts = bursts::measure(plan, &watch)?;
            }
            if plan.has(EventsPart::Connections) {
                outcome.connections = connections::measure(plan, &watch)?;
            }
            if plan.has(EventsPart::Timers) {
                watch.begin("timers");
                let timers = timers::measure(plan)?;
                outcome.real_time &= timers.real_time;
                outcome.timers = Some(timers);
            }
            if plan.has(EventsPart::SlowConsumer) {
                outcome.slow = slow::measure(plan, &watch)?;
            }
            if plan.has(EventsPart::Ring) {
                outcome.ring = ring::measure(plan, &watch)?;
            }
            if plan.has(EventsPart::Peers) {
                outcome.peers = Some(peers::measure(plan, &watch)?);
            }
            Ok(())
        })?;
        outcome.environment = environment;
        Ok(outcome)
    }
}

/// The longest time of a step, with a tracer and on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
