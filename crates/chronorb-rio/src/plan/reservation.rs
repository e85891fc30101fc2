use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use crate::class::{ClassId, Rule, RuleError};

/// What a class of packets is promised.
///
/// The default is a class of best effort: ordinary scheduling, whenever packets come, no bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reservation {
    /// Its name, which no other class of the plan has.
    pub name: String,
    /// How its threads are scheduled.
    pub policy: Policy,
    /// Their native priority: 1 to [`MAX_NATIVE`] for [`Policy::Fifo`] and [`Policy::RoundRobin`],
    /// 0 for others.
    pub priority: u8,
    /// The CORBA priority that this one is made of, if it is; who knows lanes finds theirs by it.
    pub corba_priority: Option<i16>,
    /// When its packets are processed, and how many.
    pub processing: Processing,
    /// How many packets its peers promise to send at most, where [`Processing::OnArrival`] bounds
    /// nothing itself. Admission counts with it, nothing enforces it.
    pub expected: Option<Cap>,
    /// Octets of its packets, IP header included; `None` for the interface's longest.
    pub packet: Option<usize>,
    /// Processor time that a packet takes at most, as it was measured; admission does without the
    /// processors where it is not known.
    pub cost: Option<Duration>,
    /// The ports its packets go to; none for any.
    pub ports: Vec<RangeInclusive<u16>>,
    /// The differentiated services code point of its packets, 0 to 63; `None` for any.
    pub dscp: Option<u8>,
    /// The priority in the VLAN tag of its packets, 0 to 7; `None` for any.
    pub vlan_priority: Option<u8>,
    /// Frames that wait at most, each way; at least 1.
    pub queue: usize,
    /// Connections that it can have at a time; at least 1.
    pub connections: usize,
    /// Octets that a connection can have received and nobody has read, which is its window; as many
    /// that it can have sent and nobody has acknowledged.
    pub buffer: usize,
    /// Who does the protocol work of what is sent.
    pub output: Output,
    /// The only processor of its threads; `None` for any.
    pub cpu: Option<usize>,
}

/// When the packets of a class are processed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Processing {
    /// By the thread that waits for what they bring, as they come.
    OnArrival,
    /// By the class's own thread, as they come; with a cap, the thread rests for the rest of the
    /// period once it has processed as many.
    OnDemand {
        /// How many at most.
        cap: Option<Cap>,
    },
    /// By the class's own thread, at the start of each period.
    Periodic {
        /// How long a period is.
        period: Duration,
        /// Packets that are processed in each at most; what is left waits for the next.
        budget: u32,
    },
}

/// So many packets at most in any period.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cap {
    /// The packets; at least 1.
    pub packets: u32,
    /// The period.
    pub period: Duration,
}

/// How the threads of a class are scheduled, sched(7).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Policy {
    /// Fixed priority, first in first out (`SCHED_FIFO`).
    Fifo,
    /// Fixed priority, round robin among equals (`SCHED_RR`).
    RoundRobin,
    /// Processor time of its own in each period, before any fixed priority (`SCHED_DEADLINE`).
    Deadline,
    /// Time sharing (`SCHED_OTHER`).
    #[default]
    Other,
}

/// Who does the protocol work of what a class sends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Output {
    /// The thread that sends, at once.
    #[default]
    Direct,
    /// The class's own thread, within its budget.
    Scheduled,
}

/// The greatest native priority of a class. 99 belongs to the kernel's own threads.
pub const MAX_NATIVE: u8 = 98;

impl Reservation {
    /// Whether what it says can be, as far as it can be told without the interface and other
    /// classes.
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

    /// The rules for its packets to an address: one for each range of ports. None, where it says
    /// neither ports nor a code point nor a VLAN priority: its endpoints and connections bring
    /// theirs.
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

    /// How many packets it processes at most in which time; `None` where nothing bounds them.
    pub fn bound(&self) -> Option<Cap> {
        self.processing.cap().or(self.expected)
    }

    /// Whether its threads come before those of ordinary scheduling.
    pub fn is_real_time(&self) -> bool {
        self.policy != Policy::Other
    }

    /// Frames that its connections can have under way at a time, all windows full, on an interface
    /// with packets of `mtu` octets. Its queue has to hold as many, or packets are lost that were
    /// asked for.
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
    /// How many packets are processed at most in which time; `None` where nothing bounds them.
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

/// What a reservation says and cannot be.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ReservationError {
    /// The policy has no such priority.
    #[error(
        "policy {policy} has no native priority {priority}: fifo and rr have 1 to {MAX_NATIVE}, others only 0"
    )]
    Priority {
        /// The policy.
        policy: Policy,
        /// The priority.
        priority: u8,
    },
    /// A thread with a deadline needs a period.
    #[error(
        "policy deadline needs a period and a budget: processing is {0}, and has to be periodic"
    )]
    DeadlineOf(Processing),
    /// The kernel binds no thread with a deadline to a processor.
    #[error("policy deadline goes with no cpu: the kernel lets such threads run on all of them")]
    DeadlineOnCpu,
    /// A budget or cap has no packet.
    #[error("a budget or cap of 0 packets processes nothing: 1 is the least")]
    NoPacket,
    /// A period that no timer keeps.
    #[error("a period of {0:?} is not of {SHORTEST:?} to {LONGEST:?}")]
    Period(Duration),
    /// What peers promise counts where nothing else does.
    #[error(
        "packets are expected only where they are processed on arrival: on demand has a cap, periodic a budget"
    )]
    NotOnArrival,
    /// Nobody is there to do it.
    #[error(
        "output is scheduled, and processing on arrival has no thread of its own for it: it has to be direct"
    )]
    NoThread,
    /// There is no such room.
    #[error("{room} is {size}, which is not of 1 to {MAX_ROOM}")]
    Room {
        /// Of what.
        room: &'static str,
        /// How much was asked for.
        size: usize,
    },
    /// No packet can be of it.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Below this, a thread's waking costs more than its work.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_secs(10);
/// Frames, connections or octets.
const MAX_ROOM: usize = 1 << 30;
/// Octets of the headers of IPv6 and TCP.
const HEADERS: usize = 60;
const ANY_CLASS: ClassId = ClassId::new(0).expect("there are classes");
