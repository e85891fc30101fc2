//! What a plan says of the classes of endpoints and calls.

use chronorb_rt as rt;
use chronorb_rt::Scheduling;

use crate::engine::{ClassConfig, Output, Processing, Urgency};
use crate::plan::{self, Policy, Reservation};

/// The class of this name, or else the one whose packets go to this port.
pub(super) fn of_endpoint<'p>(
    plan: &'p [Reservation],
    name: Option<&str>,
    port: u16,
) -> Option<&'p Reservation> {
    let has_port =
        |class: &&Reservation| class.ports.iter().any(|ports| ports.contains(&port)) && port != 0;
    match name {
        Some(name) => plan.iter().find(|class| class.name == name),
        None => plan.iter().find(has_port),
    }
}

/// The class of who is scheduled like this.
pub(super) fn of_caller(plan: &[Reservation], urgency: Scheduling) -> Option<&Reservation> {
    let is_one = |class: &&Reservation| scheduling(class) == Some(urgency);
    plan.iter().find(is_one)
}

/// The class as it is opened.
pub(super) fn config(class: &Reservation) -> ClassConfig {
    let default = ClassConfig::default();
    let cap = |cap: plan::Cap| (cap.packets as usize, cap.period);
    ClassConfig {
        name: class.name.clone(),
        processing: match class.processing {
            plan::Processing::OnArrival => Processing::OnArrival,
            plan::Processing::OnDemand { cap: given } => Processing::OnDemand {
                cap: given.map(cap),
            },
            plan::Processing::Periodic { period, budget } => Processing::Periodic {
                period,
                budget: budget as usize,
            },
        },
        urgency: urgency(class),
        cpu: class.cpu,
        queue: class.queue,
        connections: class.connections,
        buffer: class.buffer,
        backlog: default.backlog.min(class.connections),
        dscp: class.dscp,
        vlan_priority: class.vlan_priority,
        output: match class.output {
            plan::Output::Direct => Output::Sender,
            plan::Output::Scheduled => Output::Scheduled,
        },
        ..default
    }
}

/// How its threads are scheduled, if that is by a priority.
pub(super) fn scheduling(class: &Reservation) -> Option<Scheduling> {
    match class.policy {
        Policy::Fifo => Some(Scheduling::fifo(class.priority)),
        Policy::RoundRobin => Some(Scheduling::rr(class.priority)),
        Policy::Other => Some(Scheduling::OTHER),
        Policy::Deadline => None,
    }
}

fn urgency(class: &Reservation) -> Urgency {
    match (scheduling(class), class.processing) {
        (Some(scheduling), _) => Urgency::Native(scheduling),
        (None, plan::Processing::Periodic { period, budget }) => {
            // What its packets cost where that is known.
            let known = class.cost.map(|cost| cost.saturating_mul(budget));
            let runtime = known.unwrap_or(period / 4).clamp(LEAST_RUNTIME, period);
            Urgency::Deadline(rt::Reservation {
                runtime,
                deadline: period,
                period,
            })
        }
        // A plan without a period has no deadline, and is refused before.
        (None, _) => Urgency::Native(Scheduling::OTHER),
    }
}

/// As the kernel has it (sched(7)).
const LEAST_RUNTIME: std::time::Duration = std::time::Duration::from_micros(2);
