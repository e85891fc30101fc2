//! The classes of a plan for endpoints and clients.

use chronorb_rt::Scheduling;

use crate::plan::{Policy, Reservation};

/// Returns the class with this name. Without a name, returns the class with this port, or else the
/// real-time class with the scheduling of the endpoint's lane, unless that class has packets of its
/// own.
pub(super) fn of_endpoint<'p>(
    plan: &'p [Reservation],
    name: Option<&str>,
    port: u16,
    urgency: Option<Scheduling>,
) -> Option<&'p Reservation> {
    let has_port =
        |class: &&Reservation| class.ports.iter().any(|ports| ports.contains(&port)) && port != 0;
    let has_urgency = |class: &&Reservation| {
        let is_open =
            class.ports.is_empty() && class.dscp.is_none() && class.vlan_priority.is_none();
        is_open && class.is_real_time() && scheduling(class) == urgency
    };
    match name {
        Some(name) => plan.iter().find(|class| class.name == name),
        None => (plan.iter().find(has_port)).or_else(|| plan.iter().find(has_urgency)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, priority: u8) -> Reservation {
        Reservation {
            name: name.to_owned(),
            policy: Policy::Fifo,
            priority,
            ..Reservation::default()
        }
    }

    #[test]
    fn endpoints_have_the_class_of_their_name_port_or_lane() {
        let plan = [
            Reservation {
                ports: vec![10_020..=10_020],
                ..class("with a port", 84)
            },
            class("of a lane", 82),
            Reservation {
                name: "rest".to_owned(),
                ..Reservation::default()
            },
        ];
        let of = |name, port, urgency| {
            let found = of_endpoint(&plan, name, port, urgency);
            found.map(|class| class.name.as_str())
        };
        let lane = |priority| Some(Scheduling::fifo(priority));
        assert_eq!(of(Some("of a lane"), 10_020, lane(84)), Some("of a lane"));
        assert_eq!(of(None, 10_020, lane(82)), Some("with a port"));
        assert_eq!(of(None, 0, lane(82)), Some("of a lane"));
        assert_eq!(of(None, 2809, lane(84)), None, "it has a port");
        assert_eq!(of(None, 2809, Some(Scheduling::rr(82))), None);
        assert_eq!(of(None, 2809, Some(Scheduling::OTHER)), None);
        assert_eq!(of(None, 2809, None), None);
    }
}
