//! Reservations: the processor time and the packets that a class is promised.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use crate::class::{ClassId, Rule, RuleError};

/// The reservation of a class of packets.
///
/// The default is a class of best effort: ordinary scheduling, processing on demand, no bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reservation {
    /// The name, unique in the plan.
    pub name: String,
    /// The scheduling of its threads.
    pub policy: Policy,
    /// The native priority of its threads: 1 to [`MAX_NATIVE`] for [`Policy::Fifo`] and
    /// [`Policy::RoundRobin`], 0 for others.
    pub priority: u8,
    /// The CORBA priority from which the native one was derived, if there is one. The ORB finds the
    /// lane by it.
    pub corba_priority: Option<i16>,
    /// The processing mode and its bound.
    pub processing: Processing,
    /// The maximum number of packets that the peers send, for [`Processing::OnArrival`], which
    /// enforces no bound. Only admission control uses it.
    pub expected: Option<Cap>,
    /// The length of its packets in octets, including the IP header; `None` for the interface's
    /// longest.
    pub packet: Option<usize>,
    /// The maximum processor time of a packet, as measured. Without it, admission control skips the
    /// processors.
    pub cost: Option<Duration>,
    /// The destination ports of its packets; empty for any.
    pub ports: Vec<RangeInclusive<u16>>,
    /// The differentiated services code point of its packets, 0 to 63; `None` for any.
    pub dscp: Option<u8>,
    /// The priority in the VLAN tag of its packets, 0 to 7; `None` for any.
    pub vlan_priority: Option<u8>,
    /// The maximum number of waiting frames in each direction, at least 1.
    pub queue: usize,
    /// The maximum number of connections, at least 1.
    pub connections: usize,
    /// The maximum octets of received and unread data of a connection, which is its window, and of
    /// sent and unacknowledged data.
    pub buffer: usize,
    /// The thread that does the protocol work of output.
    pub output: Output,
    /// The only processor of its threads; `None` for any.
    pub cpu: Option<usize>,
}

/// The time at which the packets of a class are processed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Processing {
    /// On arrival, by the thread that waits for their contents.
    OnArrival,
    /// On arrival, by the class's own thread. With a cap, the thread sleeps for the rest of the
    /// period after it has processed so many.
    OnDemand {
        /// The maximum, if there is one.
        cap: Option<Cap>,
    },
    /// At the start of each period, by the class's own thread.
    Periodic {
        /// The length of a period.
        period: Duration,
        /// The maximum number of packets per period. The rest waits for the next one.
        budget: u32,
    },
}

/// A maximum number of packets per period.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cap {
    /// The number of packets, at least 1.
    pub packets: u32,
    /// The period.
    pub period: Duration,
}

/// The scheduling of a class's threads, sched(7).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Policy {
    /// Fixed priority, first in first out (`SCHED_FIFO`).
    Fifo,
    /// Fixed priority, round robin among equals (`SCHED_RR`).
    RoundRobin,
    /// A reserved processor time in each period, before any fixed priority (`SCHED_DEADLINE`).
    Deadline,
    /// Time sharing (`SCHED_OTHER`).
    #[default]
    Other,
}

/// The thread that does the protocol work of a class's output.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Output {
    /// The sending thread, at once.
    #[default]
    Direct,
    /// The class's own thread, within its budget.
    Scheduled,
}

/// The greatest native priority of a class. 99 is left to the kernel's own threads.
pub const MAX_NATIVE: u8 = 98;

impl Reservation {
    /// Checks the reservation by itself, without the interface and other classes.
    ///
    /// # Errors
    /// [`ReservationError`].
    pub fn check(&self) -> Result<(), ReservationError> {
        self.check_scheduling()?;
        let caps = [self.processing.cap(), self.expected];
        for cap in caps.into_iter().flatten() {
            if cap.packets == 0 {
                return Err(ReservationError::NoPacket);
            }
            if cap.period < SHORTEST || cap.period > LONGEST {
                return Err(ReservationError::Period(cap.period));
            }
        }
        if self.expected.is_some() && self.processing != Processing::OnArrival {
            return Err(ReservationError::NotOnArrival);
        }
        if self.output == Output::Scheduled && self.processing == Processing::OnArrival {
            return Err(ReservationError::NoThread);
        }
        let rooms = [
            ("queue", self.queue),
            ("connections", self.connections),
            ("buffer", self.buffer),
            ("packet", self.packet.unwrap_or(1)),
        ];
        for (room, size) in rooms {
            if size == 0 || size > MAX_ROOM {
                return Err(ReservationError::Room { room, size });
            }
        }
        for rule in self.rules(ANY_CLASS, None) {
            rule.check()?;
        }
        Ok(())
    }

    fn check_scheduling(&self) -> Result<(), ReservationError> {
        let right = match self.policy {
            Policy::Fifo | Policy::RoundRobin => 1..=MAX_NATIVE,
            Policy::Deadline | Policy::Other => 0..=0,
        };
        if !right.contains(&self.priority) {
            return Err(ReservationError::Priority {
                policy: self.policy,
                priority: self.priority,
            });
        }
        if self.policy == Policy::Deadline {
            if !matches!(self.processing, Processing::Periodic { .. }) {
                return Err(ReservationError::DeadlineOf(self.processing));
            }
            if self.cpu.is_some() {
                return Err(ReservationError::DeadlineOnCpu);
            }
        }
        Ok(())
    }

    /// Returns the rules for its packets to an address, one for each range of ports. A reservation
    /// without ports, code point and VLAN priority has none; its endpoints and connections add
    /// their own.
    pub fn rules(&self, class: ClassId, to: Option<IpAddr>) -> impl Iterator<Item = Rule> + '_ {
        let is_marked = self.dscp.is_some() || self.vlan_priority.is_some();
        let rule = Rule {
            to,
            dscp: self.dscp,
            vlan_priority: self.vlan_priority,
            ..Rule::all(class)
        };
        let any_port = (self.ports.is_empty() && is_marked).then(|| rule.clone());
        let of_ports = self.ports.iter().map(move |ports| Rule {
            ports: Some(ports.clone()),
            ..rule.clone()
        });
        of_ports.chain(any_port)
    }

    /// Returns the maximum number of packets per period; `None` if it is unbounded.
    pub fn bound(&self) -> Option<Cap> {
        self.processing.cap().or(self.expected)
    }

    /// Returns whether its threads precede those of ordinary scheduling.
    pub fn is_real_time(&self) -> bool {
        self.policy != Policy::Other
    }

    /// Returns the number of frames that may be under way with all windows full, on an interface
    /// with packets of `mtu` octets. A shorter queue loses packets that the windows permit.
    pub fn frames_in_flight(&self, mtu: usize) -> usize {
        let segment = mtu.saturating_sub(HEADERS).max(1);
        (self.connections).saturating_mul(self.buffer.div_ceil(segment))
    }
}

impl Default for Reservation {
    fn default() -> Self {
        Self {
            name: "best-effort".to_owned(),
            policy: Policy::Other,
            priority: 0,
            corba_priority: None,
            processing: Processing::OnDemand { cap: None },
            expected: None,
            packet: None,
            cost: None,
            ports: Vec::new(),
            dscp: None,
            vlan_priority: None,
            queue: 512,
            connections: 8,
            buffer: 1 << 16,
            output: Output::Direct,
            cpu: None,
        }
    }
}

impl Processing {
    /// Returns the maximum number of packets per period; `None` if it is unbounded.
    pub const fn cap(self) -> Option<Cap> {
        match self {
            Self::OnArrival => None,
            Self::OnDemand { cap } => cap,
            Self::Periodic { period, budget } => Some(Cap {
                packets: budget,
                period,
            }),
        }
    }
}

impl fmt::Display for Processing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnArrival => f.write_str("on arrival"),
            Self::OnDemand { cap: None } => f.write_str("on demand"),
            Self::OnDemand { cap: Some(cap) } => write!(f, "on demand, at most {cap}"),
            Self::Periodic { period, budget } => write!(f, "{budget} each {period:?}"),
        }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} each {:?}", self.packets, self.period)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "fifo",
            Self::RoundRobin => "rr",
            Self::Deadline => "deadline",
            Self::Other => "other",
        })
    }
}

/// An invalid value of a reservation.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ReservationError {
    /// The policy does not have the priority.
    #[error(
        "policy {policy} has no native priority {priority}: fifo and rr have 1 to {MAX_NATIVE}, \
        others only 0"
    )]
    Priority {
        /// The policy.
        policy: Policy,
        /// The priority.
        priority: u8,
    },
    /// A deadline class has no period.
    #[error(
        "policy deadline needs a period and a budget: processing is {0}, and has to be periodic"
    )]
    DeadlineOf(Processing),
    /// The kernel does not bind deadline threads to a processor.
    #[error("policy deadline goes with no cpu: the kernel lets such threads run on all of them")]
    DeadlineOnCpu,
    /// A budget or cap is zero.
    #[error("a budget or cap of 0 packets processes nothing: 1 is the least")]
    NoPacket,
    /// The period is out of range.
    #[error("a period of {0:?} is not of {SHORTEST:?} to {LONGEST:?}")]
    Period(Duration),
    /// Expected packets are given for a mode with its own bound.
    #[error(
        "packets are expected only where they are processed on arrival: on demand has a cap, \
        periodic a budget"
    )]
    NotOnArrival,
    /// Scheduled output is given for a mode without a thread.
    #[error(
        "output is scheduled, and processing on arrival has no thread of its own for it: it has to \
        be direct"
    )]
    NoThread,
    /// A size is out of range.
    #[error("{room} is {size}, which is not of 1 to {MAX_ROOM}")]
    Room {
        /// The name of the size.
        room: &'static str,
        /// The given size.
        size: usize,
    },
    /// The rules can match no packet.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// The shortest period; below it, waking the thread costs more than its work.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_secs(10);
/// The maximum number of frames, connections or octets.
const MAX_ROOM: usize = 1 << 30;
/// The length of the headers of IPv6 and TCP in octets.
const HEADERS: usize = 60;
const ANY_CLASS: ClassId = ClassId::new(0).expect("there are classes");
