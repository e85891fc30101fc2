//! Admission control: the check that all reservations of a plan can be kept at once.

use std::fmt;
use std::time::Duration;

use super::processors::{self, Cpu};
use super::refusal::{Refusal, Warning, Why};
use super::reservation::{Cap, Processing, Reservation};
use crate::class::{ClassId, MAX_CLASSES, MAX_RULES, Rule};

/// The interface of a plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Interface {
    /// The name.
    pub name: String,
    /// The data rate in bits per second in each direction, including all overhead on the wire;
    /// `None` if unknown.
    pub rate: Option<u64>,
    /// The length of the longest packet in octets, including the IP header.
    pub mtu: usize,
    /// The driver.
    pub driver: DriverKind,
}

/// The mechanism that classifies the packets of an interface.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DriverKind {
    /// The best available one.
    #[default]
    Auto,
    /// An XDP program in the driver of the interface, with AF_XDP sockets.
    Xdp,
    /// AF_PACKET sockets.
    Packet,
    /// The kernel's own protocols and queues.
    Kernel,
}

/// The result of an admission check.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The demand of each class, the most urgent one first. Empty if a reservation is invalid by
    /// itself.
    pub classes: Vec<ClassAdmission>,
    /// The reasons why the plan cannot be kept; empty if it can.
    pub refusals: Vec<Refusal>,
    /// Probable mistakes, and limits of the check.
    pub warnings: Vec<Warning>,
}

/// The demand of a class, and the service that it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassAdmission {
    /// The reservation.
    pub reservation: Reservation,
    /// The maximum share of a processor, if the class is bounded and its cost known.
    pub utilisation: Option<f64>,
    /// The maximum time from the start of a period, or from the arrival of packets, to the end of
    /// the work on the whole budget, if it is known.
    pub response: Option<Duration>,
    /// The maximum data rate on the wire in bits per second, if the class is bounded.
    pub rate: Option<u64>,
    /// The maximum octets of packets per second, including IP headers.
    pub octets: Option<u64>,
    /// The number of frames that may be under way by the windows.
    pub frames_in_flight: usize,
}

/// Checks all reservations at once.
///
/// Fixed-priority classes are checked by their worst-case response times, with the end of the
/// period as the deadline. Classes with deadline scheduling are checked by their utilisation. All
/// real-time classes together must fit into Linux's real-time share. The reserved data rates must
/// fit into that of the interface in each direction, and the windows of connections into the
/// queues.
pub fn admit(interface: &Interface, classes: &[Reservation]) -> Admission {
    let mut refusals = impossible(interface, classes);
    let mut warnings = Vec::new();
    if !refusals.is_empty() {
        return Admission {
            classes: Vec::new(),
            refusals,
            warnings,
        };
    }
    let mut ranked: Vec<_> = classes.iter().collect();
    ranked.sort_by_key(|class| std::cmp::Reverse(class.urgency()));
    queues(interface, &ranked, &mut refusals, &mut warnings);
    network(interface, &ranked, &mut refusals, &mut warnings);
    let processors = processors::analyse(&ranked, &mut refusals, &mut warnings);
    shadows(classes, &mut warnings);
    let classes = ranked
        .into_iter()
        .zip(processors)
        .map(|(class, cpu)| ClassAdmission::of(interface, class, cpu))
        .collect();
    Admission {
        classes,
        refusals,
        warnings,
    }
}

impl Admission {
    /// Returns whether all reservations can be kept.
    pub fn is_admitted(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Returns the reserved data rate on the wire in bits per second, without caps.
    pub fn reserved(&self) -> u64 {
        let reserved = self
            .classes
            .iter()
            .filter(|it| is_reserved(&it.reservation));
        reserved
            .filter_map(|it| it.rate)
            .fold(0, u64::saturating_add)
    }
}

impl ClassAdmission {
    fn of(interface: &Interface, class: &Reservation, cpu: Cpu) -> Self {
        let bound = class.bound();
        let packet = class.packet.unwrap_or(interface.mtu) as u64;
        Self {
            reservation: class.clone(),
            utilisation: cpu.utilisation,
            response: cpu.response,
            rate: bound.map(|bound| rate(interface, class, bound)),
            octets: bound.map(|bound| per_second(bound, packet)),
            frames_in_flight: class.frames_in_flight(interface.mtu),
        }
    }
}

impl Interface {
    /// Returns the octets that a packet of this length takes on the wire: with the Ethernet header
    /// and check sequence, a VLAN tag, padding to the minimum length, the preamble and the gap.
    pub fn wire_octets(&self, packet: usize) -> u64 {
        (packet as u64 + 14 + 4).max(60) + 4 + 8 + 12
    }

    /// Converts a share of the rate, 0 to 1, to a cap in packets of this length. Without a period
    /// it is exact, with a period of about 10 ms. With a period it is at most the share, but at
    /// least one packet. Returns `None` if the rate is unknown.
    pub fn cap(&self, share: f64, packet: usize, period: Option<Duration>) -> Option<Cap> {
        let bits = (8 * self.wire_octets(packet)) as f64;
        let packets_per_second = self.rate? as f64 * share / bits;
        let packets = packets_per_second * period.unwrap_or(USUAL_PERIOD).as_secs_f64();
        Some(match period {
            Some(period) => Cap {
                packets: (packets as u32).max(1),
                period,
            },
            None => {
                let packets = packets.ceil().max(1.0);
                let period = Duration::try_from_secs_f64(packets / packets_per_second);
                Cap {
                    packets: packets as u32,
                    period: period.unwrap_or(Duration::MAX),
                }
            }
        })
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::Packet => "packet",
            Self::Kernel => "kernel",
        })
    }
}

/// Returns the errors of single reservations, independent of the others.
fn impossible(interface: &Interface, classes: &[Reservation]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut rules = 0;
    for (number, class) in classes.iter().enumerate() {
        let mut refuse = |why| refusals.push(Refusal::of(class, why));
        if let Err(error) = class.check() {
            refuse(Why::Impossible(error));
        }
        if classes[..number]
            .iter()
            .any(|other| other.name == class.name)
        {
            refuse(Why::SameName);
        }
        let packet = class.packet.unwrap_or(interface.mtu);
        if packet > interface.mtu {
            refuse(Why::TooLong {
                packet,
                mtu: interface.mtu,
            });
        }
        if number == MAX_CLASSES {
            refuse(Why::TooManyClasses);
        }
        let before = rules;
        rules += class.rules(ANY_CLASS, None).count();
        if before <= MAX_RULES && rules > MAX_RULES {
            refuse(Why::TooManyRules);
        }
    }
    refusals
}

/// Refuses queues that cannot hold the packets that may arrive while the thread of the class waits
/// for its period. Other queues are drained on arrival.
fn queues(
    interface: &Interface,
    ranked: &[&Reservation],
    refusals: &mut Vec<Refusal>,
    warnings: &mut Vec<Warning>,
) {
    for class in ranked {
        let frames = class.frames_in_flight(interface.mtu);
        if frames <= class.queue {
            continue;
        }
        match class.processing {
            Processing::Periodic { .. } => refusals.push(Refusal::of(
                class,
                Why::Queue {
                    queue: class.queue,
                    frames,
                    connections: class.connections,
                    buffer: class.buffer,
                },
            )),
            Processing::OnArrival | Processing::OnDemand { .. } => warnings.push(Warning::Queue {
                class: class.name.clone(),
                queue: class.queue,
                frames,
            }),
        }
    }
}

/// Refuses reservations beyond the data rate.
fn network(
    interface: &Interface,
    ranked: &[&Reservation],
    refusals: &mut Vec<Refusal>,
    warnings: &mut Vec<Warning>,
) {
    let Some(capacity) = interface.rate else {
        warnings.push(Warning::NoRate);
        return;
    };
    let mut taken = 0_u64;
    for class in ranked.iter().filter(|class| is_reserved(class)) {
        let Some(bound) = class.bound() else { continue };
        let asked = rate(interface, class, bound);
        let left = capacity.saturating_sub(taken);
        if asked > left {
            let fits = processors::most(bound.packets, |packets| {
                rate(interface, class, Cap { packets, ..bound }) <= left
            });
            let why = Why::Network { asked, left, fits };
            refusals.push(Refusal::of(class, why));
        }
        taken = taken.saturating_add(asked);
    }
    let left = capacity.saturating_sub(taken);
    for class in ranked {
        let Processing::OnDemand { cap: Some(cap) } = class.processing else {
            continue;
        };
        let cap = rate(interface, class, cap);
        if cap > left {
            let class = class.name.clone();
            warnings.push(Warning::Cap { class, cap, left });
        }
    }
    for class in ranked.iter().filter(|class| is_reserved(class)) {
        let Some(bound) = class.bound() else { continue };
        let packet = class.packet.unwrap_or(interface.mtu);
        let window = class.connections.saturating_mul(class.buffer);
        let budget = (bound.packets as usize).saturating_mul(packet);
        if window < budget {
            let class = class.name.clone();
            warnings.push(Warning::Window {
                class,
                window,
                budget,
            });
        }
    }
}

/// Returns whether the class's bound is reserved, and not only a limit.
fn is_reserved(class: &Reservation) -> bool {
    matches!(
        class.processing,
        Processing::Periodic { .. } | Processing::OnArrival
    )
}

/// Returns the data rate on the wire in bits per second, rounded up.
fn rate(interface: &Interface, class: &Reservation, bound: Cap) -> u64 {
    let packet = class.packet.unwrap_or(interface.mtu);
    per_second(bound, 8 * interface.wire_octets(packet))
}

/// Returns the total per second of `of_each` per packet, rounded up.
fn per_second(bound: Cap, of_each: u64) -> u64 {
    let all = u128::from(bound.packets) * u128::from(of_each) * 1_000_000_000;
    let rate = all.div_ceil(bound.period.as_nanos().max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Warns of classes whose rules are covered by classes before them.
fn shadows(classes: &[Reservation], warnings: &mut Vec<Warning>) {
    for (number, class) in classes.iter().enumerate() {
        let rules: Vec<_> = class.rules(ANY_CLASS, None).collect();
        let before = &classes[..number];
        let by = before.iter().find(|other| {
            let others: Vec<_> = other.rules(ANY_CLASS, None).collect();
            let is_covered = |rule| others.iter().any(|other| covers(other, rule));
            !rules.is_empty() && rules.iter().all(is_covered)
        });
        warnings.extend(by.map(|by| Warning::Shadowed {
            class: class.name.clone(),
            by: by.name.clone(),
        }));
    }
}

/// Returns whether a rule matches all packets of another one, if both have the same address.
fn covers(rule: &Rule, other: &Rule) -> bool {
    let has_ports = match (&rule.ports, &other.ports) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(ports), Some(others)) => {
            ports.start() <= others.start() && others.end() <= ports.end()
        }
    };
    has_ports
        && rule.dscp.is_none_or(|dscp| other.dscp == Some(dscp))
        && (rule.vlan_priority).is_none_or(|priority| other.vlan_priority == Some(priority))
}

const ANY_CLASS: ClassId = ClassId::new(0).expect("there are classes");
const USUAL_PERIOD: Duration = Duration::from_millis(10);
