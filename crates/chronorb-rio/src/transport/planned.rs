//! The classes of a plan for endpoints and clients.

use chronorb_rt::Scheduling;

use crate::plan::{Policy, Reservation};

/// Returns the class with this name, or, without a name, the class with this port.
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

/// Returns the class for clients with this scheduling.
pub(super) fn of_caller(plan: &[Reservation], urgency: Scheduling) -> Option<&Reservation> {
    let is_one = |class: &&Reservation| scheduling(class) == Some(urgency);
    plan.iter().find(is_one)
}

/// Returns the scheduling of the class's threads, unless they have a deadline.
pub(super) fn scheduling(class: &Reservation) -> Option<Scheduling> {
    match class.policy {
        Policy::Fifo => Some(Scheduling::fifo(class.priority)),
        Policy::RoundRobin => Some(Scheduling::rr(class.priority)),
        Policy::Other => Some(Scheduling::OTHER),
        Policy::Deadline => None,
    }
}
