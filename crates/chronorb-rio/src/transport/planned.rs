//! What a plan says of the classes of endpoints and calls.

use chronorb_rt::Scheduling;

use crate::plan::{Policy, Reservation};

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

/// How its threads are scheduled, if that is by a priority.
pub(super) fn scheduling(class: &Reservation) -> Option<Scheduling> {
    match class.policy {
        Policy::Fifo => Some(Scheduling::fifo(class.priority)),
        Policy::RoundRobin => Some(Scheduling::rr(class.priority)),
        Policy::Other => Some(Scheduling::OTHER),
        Policy::Deadline => None,
    }
}
