//! Conversions between reservations and class configurations.

use std::time::Duration;

use chronorb_rt::Scheduling;

use super::config::{self, ClassConfig, Urgency};
use crate::plan::{Cap, Output, Policy, Processing, Reservation};

/// Converts a reservation to the class that the engine opens for it. Unspecified values get their
/// defaults.
impl From<&Reservation> for ClassConfig {
    fn from(reservation: &Reservation) -> Self {
        let default = Self::default();
        Self {
            name: reservation.name.clone(),
            processing: match reservation.processing {
                Processing::OnArrival => config::ClassProcessing::OnArrival,
                Processing::OnDemand { cap } => config::ClassProcessing::OnDemand {
                    cap: cap.map(|cap| (cap.packets as usize, cap.period)),
                },
                Processing::Periodic { period, budget } => config::ClassProcessing::Periodic {
                    period,
                    budget: budget as usize,
                },
            },
            urgency: urgency(reservation),
            cost: reservation.cost,
            expected: (reservation.expected).map(|cap| (cap.packets as usize, cap.period)),
            cpu: reservation.cpu,
            queue: reservation.queue,
            connections: reservation.connections,
            buffer: reservation.buffer,
            dscp: reservation.dscp,
            vlan_priority: reservation.vlan_priority,
            output: match reservation.output {
                Output::Direct => config::ClassOutput::Sender,
                Output::Scheduled => config::ClassOutput::Scheduled,
            },
            ..default
        }
    }
}

/// Converts a class that is opened without a plan to the reservation that it implies.
impl From<&ClassConfig> for Reservation {
    fn from(config: &ClassConfig) -> Self {
        let packets = |packets: usize| u32::try_from(packets).unwrap_or(u32::MAX);
        let cap = |(most, period)| Cap {
            packets: packets(most),
            period,
        };
        let (policy, priority) = match config.urgency {
            Urgency::Native(Scheduling { policy, priority }) => match policy {
                chronorb_rt::Policy::Fifo => (Policy::Fifo, priority),
                chronorb_rt::Policy::RoundRobin => (Policy::RoundRobin, priority),
                chronorb_rt::Policy::Other => (Policy::Other, 0),
            },
            Urgency::Deadline(_) => (Policy::Deadline, 0),
        };
        Self {
            name: config.name.clone(),
            policy,
            priority,
            processing: match config.processing {
                config::ClassProcessing::OnArrival => Processing::OnArrival,
                config::ClassProcessing::OnDemand { cap: bound } => Processing::OnDemand {
                    cap: bound.map(cap),
                },
                config::ClassProcessing::Periodic { period, budget } => Processing::Periodic {
                    period,
                    budget: packets(budget),
                },
            },
            expected: config.expected.map(cap),
            cost: config.cost,
            dscp: config.dscp,
            vlan_priority: config.vlan_priority,
            queue: config.queue,
            connections: config.connections,
            buffer: config.buffer,
            output: match config.output {
                config::ClassOutput::Sender => Output::Direct,
                config::ClassOutput::Scheduled => Output::Scheduled,
            },
            cpu: config.cpu,
            ..Self::default()
        }
    }
}

impl Urgency {
    /// Returns the deadline reservation of a thread that processes a budget of packets by the end
    /// of each period, if a packet has this cost.
    pub(crate) fn deadline(period: Duration, budget: u32, cost: Option<Duration>) -> Self {
        // A thread that has used up its time is suspended, so an unknown cost is assumed high.
        let work = cost.and_then(|cost| cost.checked_mul(budget));
        let runtime = work.unwrap_or(period / 4).max(LEAST_RUNTIME).min(period);
        Self::Deadline(chronorb_rt::Reservation {
            runtime,
            deadline: period,
            period,
        })
    }
}

fn urgency(reservation: &Reservation) -> Urgency {
    let native = match (reservation.policy, reservation.processing) {
        (Policy::Deadline, Processing::Periodic { period, budget }) => {
            return Urgency::deadline(period, budget, reservation.cost);
        }
        (Policy::Fifo, _) => Scheduling::fifo(reservation.priority),
        (Policy::RoundRobin, _) => Scheduling::rr(reservation.priority),
        (Policy::Deadline | Policy::Other, _) => Scheduling::OTHER,
    };
    Urgency::Native(native)
}

/// The minimum that the kernel reserves.
const LEAST_RUNTIME: Duration = Duration::from_nanos(1024);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_a_reservation_promises_the_same() {
        let ten_ms = Duration::from_millis(10);
        let cap = Cap {
            packets: 7,
            period: ten_ms,
        };
        let kinds = [
            (Policy::Fifo, 70, Processing::OnArrival),
            (Policy::RoundRobin, 1, Processing::OnDemand { cap: None }),
            (Policy::Other, 0, Processing::OnDemand { cap: Some(cap) }),
            (
                Policy::Deadline,
                0,
                Processing::Periodic {
                    period: ten_ms,
                    budget: 8,
                },
            ),
        ];
        for (policy, priority, processing) in kinds {
            let reservation = Reservation {
                name: "video".to_owned(),
                policy,
                priority,
                processing,
                expected: (processing == Processing::OnArrival).then_some(cap),
                cost: Some(Duration::from_micros(20)),
                dscp: Some(46),
                vlan_priority: Some(5),
                queue: 256,
                connections: 3,
                buffer: 8192,
                output: Output::Scheduled,
                cpu: Some(1),
                ..Reservation::default()
            };
            let config = ClassConfig::from(&reservation);
            assert_eq!(Reservation::from(&config), reservation);
        }
    }

    #[test]
    fn a_deadline_has_the_time_of_the_budget_or_a_quarter() {
        let period = Duration::from_millis(10);
        let runtime = |cost| {
            let reservation = Reservation {
                policy: Policy::Deadline,
                processing: Processing::Periodic { period, budget: 8 },
                cost,
                ..Reservation::default()
            };
            match urgency(&reservation) {
                Urgency::Deadline(time) => time.runtime,
                native => panic!("{native:?}"),
            }
        };
        assert_eq!(
            runtime(Some(Duration::from_micros(20))),
            Duration::from_micros(160)
        );
        assert_eq!(runtime(None), period / 4);
        assert_eq!(runtime(Some(Duration::from_nanos(1))), LEAST_RUNTIME);
        assert_eq!(runtime(Some(period)), period);
    }
}
