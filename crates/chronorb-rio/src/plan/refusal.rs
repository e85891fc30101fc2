//! Reasons for which a plan or a class is refused, and warnings.

use std::fmt;
use std::time::Duration;

use super::processors::REAL_TIME_SHARE;
use super::reservation::{Processing, Reservation, ReservationError};
use crate::class::{MAX_CLASSES, MAX_RULES};

/// A reservation that cannot be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The class.
    pub class: String,
    /// The reason, by how much it is exceeded, and the greatest value that fits.
    pub why: Why,
}

/// The reason why a reservation cannot be kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The reservation is invalid by itself.
    Impossible(ReservationError),
    /// Another class has the same name.
    SameName,
    /// The packets are longer than those of the interface.
    TooLong {
        /// The length of the class's packets in octets.
        packet: usize,
        /// The length of the interface's longest packet in octets.
        mtu: usize,
    },
    /// The interface has the maximum number of classes.
    TooManyClasses,
    /// The interface has the maximum number of rules.
    TooManyRules,
    /// More frames can arrive than the queue holds.
    Queue {
        /// The length of the queue in frames.
        queue: usize,
        /// The number of frames that can arrive.
        frames: usize,
        /// The number of connections.
        connections: usize,
        /// The length of each connection's window in octets.
        buffer: usize,
    },
    /// The reservations exceed the data rate.
    Network {
        /// The requested bits per second.
        asked: u64,
        /// The bits per second that more urgent classes leave.
        left: u64,
        /// The greatest budget that fits, in packets.
        fits: u32,
    },
    /// The class is unbounded, and precedes classes with a reservation.
    Unbounded {
        /// The processing mode.
        processing: Processing,
        /// The first class that it delays.
        other: String,
        /// The native priority of the delayed class.
        priority: u8,
    },
    /// The class's work is not finished by the end of its period.
    Late {
        /// A lower bound of its response time.
        at_least: Duration,
        /// The period.
        period: Duration,
        /// The greatest budget that fits, in packets.
        fits: u32,
    },
    /// The classes of a processor exceed its time.
    Overload {
        /// The processor; `None` for any.
        cpu: Option<usize>,
        /// The utilisation by all of its classes.
        share: f64,
        /// The greatest budget that fits, in packets.
        fits: u32,
    },
}

/// A probable mistake in a plan, or a limit of the check.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// A longer period has a higher priority than a shorter one.
    Order {
        /// The class with the longer period.
        longer: String,
        /// The class with the shorter one.
        shorter: String,
    },
    /// The cost of a packet of these classes is unknown.
    NoCost(Vec<String>),
    /// The rate of the interface is unknown.
    NoRate,
    /// A cap is more than the reservations leave.
    Cap {
        /// The class.
        class: String,
        /// The bits per second of the cap.
        cap: u64,
        /// The remaining bits per second.
        left: u64,
    },
    /// More frames can arrive than the queue of a class holds, if its thread falls behind.
    Queue {
        /// The class.
        class: String,
        /// The length of the queue in frames.
        queue: usize,
        /// The number of frames that can arrive.
        frames: usize,
    },
    /// The windows of a class hold less than the budget of a period.
    Window {
        /// The class.
        class: String,
        /// The length of all windows in octets.
        window: usize,
        /// The budget in octets.
        budget: usize,
    },
    /// All packets of a class match the rules of a class before it.
    Shadowed {
        /// The class.
        class: String,
        /// The class before it.
        by: String,
    },
}

impl Refusal {
    pub(super) fn of(class: &Reservation, why: Why) -> Self {
        Self {
            class: class.name.clone(),
            why,
        }
    }
}

impl Why {
    /// Returns a stable word for the reason.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Impossible(_) => "impossible",
            Self::SameName => "same_name",
            Self::TooLong { .. } => "too_long",
            Self::TooManyClasses => "too_many_classes",
            Self::TooManyRules => "too_many_rules",
            Self::Queue { .. } => "queue",
            Self::Network { .. } => "network",
            Self::Unbounded { .. } => "unbounded",
            Self::Late { .. } => "late",
            Self::Overload { .. } => "overload",
        }
    }

    /// Returns the greatest budget that would fit, in packets, if the budget is too great.
    pub const fn fits(&self) -> Option<u32> {
        match self {
            Self::Network { fits, .. } | Self::Late { fits, .. } | Self::Overload { fits, .. } => {
                Some(*fits)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "class {:?}: {}", self.class, self.why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(error) => error.fmt(f),
            Self::SameName => f.write_str("another class has this name: give it one of its own"),
            Self::TooLong { packet, mtu } => {
                let over = packet - mtu;
                write!(
                    f,
                    "packets of {packet} octets are {over} longer than the interface carries: at \
                    most {mtu}"
                )
            }
            Self::TooManyClasses => write!(f, "an interface has at most {MAX_CLASSES} classes"),
            Self::TooManyRules => write!(
                f,
                "with its ports the interface has more than {MAX_RULES} rules: use ranges of ports"
            ),
            Self::Queue {
                queue,
                frames,
                connections,
                buffer,
            } => write!(
                f,
                "its {connections} connections with {buffer} octets of buffer each can have \
                {frames} frames under way, {} more than its queue of {queue} holds: give it queue \
                = {}, fewer connections or smaller buffers",
                frames.saturating_sub(*queue),
                frames.checked_next_power_of_two().unwrap_or(usize::MAX),
            ),
            Self::Network { asked, left, fits } => {
                write!(
                    f,
                    "it wants {} of the network, {} more than the {} that are left: ",
                    Bits(*asked),
                    Bits(asked.saturating_sub(*left)),
                    Bits(*left),
                )?;
                what_fits(f, *fits)
            }
            Self::Unbounded {
                processing,
                other,
                priority,
            } => {
                let bound = match processing {
                    Processing::OnArrival => "expected packets",
                    _ => "a cap",
                };
                write!(
                    f,
                    "its packets are processed {processing} without end, and class {other:?} waits \
                    as long: give it {bound}, or a native priority below {priority}"
                )
            }
            Self::Late {
                at_least,
                period,
                fits,
            } => {
                write!(
                    f,
                    "its work takes at least {at_least:?} with what comes before it, {:?} more \
                    than its period of {period:?}: ",
                    at_least.saturating_sub(*period),
                )?;
                what_fits(f, *fits)
            }
            Self::Overload { cpu, share, fits } => {
                match cpu {
                    Some(cpu) => write!(f, "processor {cpu} is")?,
                    None => f.write_str("a processor is")?,
                }
                write!(
                    f,
                    " taken to {:.1} %, {:.1} % more than the {:.0} % that real time has: ",
                    100.0 * share,
                    100.0 * (share - REAL_TIME_SHARE),
                    100.0 * REAL_TIME_SHARE,
                )?;
                what_fits(f, *fits)
            }
        }
    }
}

fn what_fits(f: &mut fmt::Formatter<'_>, fits: u32) -> fmt::Result {
    match fits {
        0 => f.write_str("not one packet fits beside the classes that come first"),
        1 => f.write_str("1 packet in each period would fit"),
        fits => write!(f, "{fits} packets in each period would fit"),
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order { longer, shorter } => write!(
                f,
                "class {longer:?} has a longer period than class {shorter:?} and a higher \
                priority: the other way round more would fit (rate-monotonic order)"
            ),
            Self::NoCost(classes) => write!(
                f,
                "the cost of a packet is not known of {}: processor time is not looked at where \
                these come in",
                classes.join(", ")
            ),
            Self::NoRate => f.write_str(
                "the rate of the interface is not known: the network is not looked at; give it \
                rate = \"100 Mbit\"",
            ),
            Self::Cap { class, cap, left } => write!(
                f,
                "class {class:?} may have {}, and reservations leave {}: nothing is promised to it",
                Bits(*cap),
                Bits(*left)
            ),
            Self::Queue {
                class,
                queue,
                frames,
            } => write!(
                f,
                "class {class:?} can have {frames} frames under way, and its queue holds {queue}: \
                packets are lost if its thread is late"
            ),
            Self::Window {
                class,
                window,
                budget,
            } => write!(
                f,
                "class {class:?} has {window} octets of windows, less than the {budget} of its \
                budget: it will not get all of it"
            ),
            Self::Shadowed { class, by } => write!(
                f,
                "class {class:?} gets no packet by its rules: all of them are of class {by:?}, \
                which is before it"
            ),
        }
    }
}

/// Bits per second, formatted with a unit.
#[derive(Clone, Copy, Debug)]
pub struct Bits(pub u64);

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{bits} bit/s"),
            1_000..1_000_000 => write!(f, "{:.1} kbit/s", bits / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} Mbit/s", bits / 1e6),
            _ => write!(f, "{:.2} Gbit/s", bits / 1e9),
        }
    }
}
