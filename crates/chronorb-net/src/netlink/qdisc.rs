//! Queueing disciplines: how packets wait for an interface.

use super::message::{Answer, Attribute, Attributes, MalformedMessage, Request};
use super::{Netlink, NetlinkError};

/// The number of a queueing discipline or of a class in one: the discipline's number and the
/// class's, `1:10` in text, in hexadecimal.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Handle(pub u32);

impl Handle {
    /// The interface itself, to which the first discipline is attached.
    pub const ROOT: Self = Self(0xffff_ffff);
    /// The ingress of the interface.
    pub const INGRESS: Self = Self(0xffff_fff1);

    /// The class `minor` of the discipline `major`; the discipline itself for 0.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// The number of the discipline.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The number of the class in it; 0 for the discipline itself.
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
}

/// A queueing discipline that is to be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Discipline {
    /// Packets pass at a rate (`tbf`).
    Rate {
        /// Octets per second, with the [`AROUND_FRAME`] of each frame.
        rate: u64,
        /// Octets that pass at once after a rest; at least the longest packet with its header.
        burst: u32,
        /// Octets that wait at most; more are dropped.
        limit: u32,
    },
    /// A tree of classes with a rate each (`htb`).
    Classes {
        /// The minor number of the class for packets that no filter classifies; with 0 these
        /// packets are sent without a limit.
        default: u16,
    },
    /// Packets wait in their order (`pfifo`).
    Order {
        /// Packets that wait at most; more are dropped.
        limit: u32,
    },
    /// Filters for incoming packets, without a queue (`ingress`).
    Ingress,
}

/// A class of [`Discipline::Classes`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// Octets per second, with the [`AROUND_FRAME`] of each frame, that it has whatever the others
    /// do.
    pub rate: u64,
    /// Octets per second that it may have where the others leave them.
    pub ceiling: u64,
    /// The octets that are sent at once after a pause, at its own rate and at the ceiling.
    pub burst: u32,
    /// The priority for borrowed bandwidth, 0 to 7; lower numbers are served first.
    pub priority: u32,
    /// Octets that it sends before another of the same priority has its turn.
    pub quantum: u32,
}

/// The kernel's description of a queueing discipline, or of a class.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueueInfo {
    /// `tbf`, `htb`, `noqueue`.
    pub kind: String,
    /// The interface.
    pub index: u32,
    /// The number.
    pub handle: Handle,
    /// The parent to which it is attached.
    pub parent: Handle,
    /// The statistics of sent packets.
    pub sent: TrafficCounts,
    /// The rates of a class of [`Discipline::Classes`].
    pub rates: Option<Rates>,
}

/// The rates of a class, in octets per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rates {
    /// The guaranteed rate.
    pub rate: u64,
    /// The most that it may have.
    pub ceiling: u64,
    /// [`Share::priority`].
    pub priority: u32,
}

/// The statistics of a queueing discipline, or of a class, since it was created.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TrafficCounts {
    /// Octets, with Ethernet headers.
    pub octets: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that were dropped since too many were waiting.
    pub dropped: u32,
    /// Packets that wait now.
    pub waiting: u32,
    /// Octets that wait now.
    pub waiting_octets: u32,
    /// Times that sending had to wait for its rate.
    pub over_rate: u32,
}

impl std::fmt::Display for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}:{:x}", self.major(), self.minor())
    }
}

impl Netlink {
    /// Attaches a queueing discipline to an interface, as `handle`, in place of one that is there.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where the kernel has no such discipline.
    pub fn set_discipline(
        &mut self,
        index: u32,
        parent: Handle,
        handle: Handle,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        let kind = discipline.kind();
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let fixed = fixed(index, handle, parent, 0);
        let mut request = Request::new(libc::RTM_NEWQDISC, flags, &fixed);
        request.text(libc::TCA_KIND, kind);
        discipline.tell(&mut request);
        let what = format_args!("attach the queueing discipline {kind} to the interface {index}");
        self.order(&what, request)
    }

    /// Takes a queueing discipline away, with all that is in it; the interface's own default comes
    /// back.
    ///
    /// # Errors
    /// [`NetlinkError`]; [`NetlinkError::is_absent`] where there is none.
    pub fn remove_discipline(&mut self, index: u32, parent: Handle) -> Result<(), NetlinkError> {
        let fixed = fixed(index, Handle(0), parent, 0);
        let request = Request::new(libc::RTM_DELQDISC, libc::NLM_F_ACK, &fixed);
        let what = format_args!("take the queueing discipline off the interface {index}");
        self.order(&what, request)
    }

    /// Makes a class, or changes it.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where there is no discipline with classes.
    pub fn set_class(
        &mut self,
        index: u32,
        parent: Handle,
        class: Handle,
        share: &Share,
    ) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE;
        let fixed = fixed(index, class, parent, 0);
        let mut request = Request::new(libc::RTM_NEWTCLASS, flags, &fixed);
        request.text(libc::TCA_KIND, HTB);
        request.nest(libc::TCA_OPTIONS, |options| share.tell(options));
        let what = format_args!("make the class {class} of the interface {index}");
        self.order(&what, request)
    }

    /// The queueing disciplines of an interface.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn disciplines(&mut self, index: u32) -> Result<Vec<QueueInfo>, NetlinkError> {
        let what = format_args!("list the queueing disciplines of the interface {index}");
        // The kernel reports the disciplines of all interfaces, whatever the request.
        let all = self.queues(&what, 0, libc::RTM_GETQDISC, libc::RTM_NEWQDISC)?;
        Ok(all.into_iter().filter(|it| it.index == index).collect())
    }

    /// The queueing disciplines of all interfaces.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn all_disciplines(&mut self) -> Result<Vec<QueueInfo>, NetlinkError> {
        let what = "list the queueing disciplines of all interfaces";
        self.queues(&what, 0, libc::RTM_GETQDISC, libc::RTM_NEWQDISC)
    }

    /// The classes of the queueing disciplines of an interface.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn classes(&mut self, index: u32) -> Result<Vec<QueueInfo>, NetlinkError> {
        let what = format_args!("list the classes of the interface {index}");
        self.queues(&what, index, libc::RTM_GETTCLASS, libc::RTM_NEWTCLASS)
    }

    fn queues(
        &mut self,
        what: &dyn std::fmt::Display,
        index: u32,
        ask: u16,
        told: u16,
    ) -> Result<Vec<QueueInfo>, NetlinkError> {
        let fixed = fixed(index, Handle(0), Handle(0), 0);
        let request = Request::new(ask, libc::NLM_F_DUMP, &fixed);
        self.list(what, &request, |answer| read(answer, told))
    }
}

impl Discipline {
    fn kind(&self) -> &'static str {
        match self {
            Self::Rate { .. } => "tbf",
            Self::Classes { .. } => HTB,
            Self::Order { .. } => "pfifo",
            Self::Ingress => "ingress",
        }
    }

    pub(super) fn tell(&self, request: &mut Request) {
        match *self {
            Self::Rate { rate, burst, limit } => request.nest(libc::TCA_OPTIONS, |options| {
                // `struct tc_tbf_qopt`, whose burst is a time and gives way to that in octets.
                let mut parameters = rate_of(rate).to_vec();
                parameters.extend(rate_of(0));
                parameters.extend([limit, 0, 0].map(u32::to_ne_bytes).concat());
                options.attribute(TCA_TBF_PARMS, &parameters);
                options.attribute(TCA_TBF_RATE64, &rate.to_ne_bytes());
                options.number(TCA_TBF_BURST, burst);
            }),
            Self::Classes { default } => request.nest(libc::TCA_OPTIONS, |options| {
                // `struct tc_htb_glob`.
                let parameters = [HTB_VERSION, HTB_RATE_TO_QUANTUM, default.into(), 0, 0];
                options.attribute(TCA_HTB_INIT, &parameters.map(u32::to_ne_bytes).concat());
            }),
            // `struct tc_fifo_qopt`.
            Self::Order { limit } => {
                request.attribute(libc::TCA_OPTIONS, &limit.to_ne_bytes());
            }
            Self::Ingress => {}
        }
    }
}

impl Share {
    pub(super) fn tell(&self, options: &mut Request) {
        // `struct tc_htb_opt`.
        let mut parameters = rate_of(self.rate).to_vec();
        parameters.extend(rate_of(self.ceiling));
        let rest = [
            ticks(self.burst, self.rate),
            ticks(self.burst, self.ceiling),
            self.quantum,
            0,
            self.priority,
        ];
        parameters.extend(rest.map(u32::to_ne_bytes).concat());
        options.attribute(TCA_HTB_PARMS, &parameters);
        options.attribute(TCA_HTB_RATE64, &self.rate.to_ne_bytes());
        options.attribute(TCA_HTB_CEIL64, &self.ceiling.to_ne_bytes());
    }
}

/// Encodes `struct tc_ratespec`: a rate in octets per second on a cable, with the overhead of a
/// frame there. Rates that do not fit are sent in a second attribute.
fn rate_of(rate: u64) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[1] = TC_LINKLAYER_ETHERNET;
    spec[2..4].copy_from_slice(&AROUND_FRAME.to_ne_bytes());
    spec[6..8].copy_from_slice(&SHORTEST_FRAME.to_ne_bytes());
    spec[8..12].copy_from_slice(&u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
    spec
}

/// Returns the transmission time of `octets` at `rate` octets per second, in ticks of 64 ns.
fn ticks(octets: u32, rate: u64) -> u32 {
    let ns = u128::from(octets) * 1_000_000_000 / u128::from(rate.max(1));
    u32::try_from(ns >> 6).unwrap_or(u32::MAX)
}

/// `struct tcmsg`.
pub(super) fn fixed(index: u32, handle: Handle, parent: Handle, info: u32) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    for (to, from) in fixed[4..]
        .chunks_exact_mut(4)
        .zip([index, handle.0, parent.0, info])
    {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    fixed
}

pub(super) fn read(answer: Answer<'_>, told: u16) -> Result<Option<QueueInfo>, MalformedMessage> {
    if answer.kind != told {
        return Ok(None);
    }
    let (fixed, attributes) = answer.split::<FIXED>()?;
    let number =
        |at: usize| u32::from_ne_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let kind = attributes.find(libc::TCA_KIND)?.and_then(Attribute::text);
    let statistics = attributes.find(libc::TCA_STATS2)?;
    let options = match (told, kind) {
        (libc::RTM_NEWTCLASS, Some(HTB)) => attributes.find(libc::TCA_OPTIONS)?,
        _ => None,
    };
    Ok(Some(QueueInfo {
        kind: kind.unwrap_or_default().to_owned(),
        index: number(4),
        handle: Handle(number(8)),
        parent: Handle(number(12)),
        sent: statistics
            .map(|s| read_sent(s.nested()))
            .transpose()?
            .unwrap_or_default(),
        rates: options.map(|it| read_rates(it.nested())).transpose()?,
    }))
}

/// `struct tc_htb_opt`, and rates in 64 bits where that has no room for them.
fn read_rates(options: Attributes<'_>) -> Result<Rates, MalformedMessage> {
    let mut rates = Rates {
        rate: 0,
        ceiling: 0,
        priority: 0,
    };
    let mut long = (None, None);
    for attribute in options {
        let Attribute { kind, value } = attribute?;
        let number = |at: usize| {
            let octets = value.get(at..).and_then(|rest| rest.first_chunk::<4>());
            octets
                .map(|octets| u32::from_ne_bytes(*octets))
                .ok_or(MalformedMessage)
        };
        let of_64_bits = || {
            let octets = value.first_chunk::<8>().ok_or(MalformedMessage)?;
            Ok(Some(u64::from_ne_bytes(*octets)))
        };
        match kind {
            TCA_HTB_PARMS => {
                rates.rate = number(8)?.into();
                rates.ceiling = number(20)?.into();
                rates.priority = number(40)?;
            }
            TCA_HTB_RATE64 => long.0 = of_64_bits()?,
            TCA_HTB_CEIL64 => long.1 = of_64_bits()?,
            _ => {}
        }
    }
    Ok(Rates {
        rate: long.0.unwrap_or(rates.rate),
        ceiling: long.1.unwrap_or(rates.ceiling),
        ..rates
    })
}

/// Reads `struct gnet_stats_basic` and `gnet_stats_queue`, and the 64-bit count of packets if there
/// is one.
fn read_sent(statistics: Attributes<'_>) -> Result<TrafficCounts, MalformedMessage> {
    let mut sent = TrafficCounts::default();
    let mut packets = None;
    for attribute in statistics {
        let Attribute { kind, value } = attribute?;
        let number = |at: usize| {
            let octets = value.get(at..).and_then(|rest| rest.first_chunk::<4>());
            octets
                .map(|octets| u32::from_ne_bytes(*octets))
                .ok_or(MalformedMessage)
        };
        let long = || {
            let octets = value.first_chunk::<8>().ok_or(MalformedMessage)?;
            Ok(u64::from_ne_bytes(*octets))
        };
        match kind {
            TCA_STATS_BASIC => {
                sent.octets = long()?;
                sent.packets = number(8)?.into();
            }
            TCA_STATS_PKT64 => packets = Some(long()?),
            TCA_STATS_QUEUE => {
                sent.waiting = number(0)?;
                sent.waiting_octets = number(4)?;
                sent.dropped = number(8)?;
                sent.over_rate = number(16)?;
            }
            _ => {}
        }
    }
    sent.packets = packets.unwrap_or(sent.packets);
    Ok(sent)
}

/// Octets of preamble, check sequence and gap, which are around each frame on a cable.
pub const AROUND_FRAME: u16 = 24;
/// The octets of the shortest frame on a cable, with its overhead.
const SHORTEST_FRAME: u16 = 84;
const HTB: &str = "htb";
/// Octets of `struct tcmsg`.
const FIXED: usize = 20;

// <linux/pkt_sched.h>
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// The version of the interface between kernel and tools.
const HTB_VERSION: u32 = 3;
/// A class without a quantum has its rate divided by this.
const HTB_RATE_TO_QUANTUM: u32 = 10;

// <linux/gen_stats.h>
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
