//! The ways in which a host can treat the packets of a flow.

use serde::Serialize;

use super::part::Part;

/// How the server's host treats the packets of echoes, and of what there is beside them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By the kernel, as it comes.
    Kernel,
    /// By the stack of RIO, in the thread that waits for them.
    Arrival,
    /// By the stack of RIO, in a thread of the class, as urgent as the one that waits for them.
    Scheduled,
    /// The same with a thread that is not urgent at all.
    WrongClass,
    /// By the stack of RIO, all flows in one class: one queue and one thread, more urgent than all others.
    OneClass,
    /// By RIO: each flow in a class of its own, whose thread is as urgent as those that wait for it.
    Classes,
}

impl Way {
    /// Those that are compared where nothing competes.
    pub(super) const ALONE: [Self; 4] = [
        Self::Kernel,
        Self::Arrival,
        Self::Scheduled,
        Self::WrongClass,
    ];

    /// Those that are compared beside bulk traffic.
    pub(super) const IN_COMPANY: [Self; 3] = [Self::Kernel, Self::OneClass, Self::Classes];

    /// Those that a part compares.
    pub(super) const fn of(part: Part) -> &'static [Self] {
        match part {
            Part::Company => &Self::IN_COMPANY,
            _ => &Self::ALONE,
        }
    }

    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Arrival => "RIO, on arrival",
            Self::Scheduled => "RIO, scheduled",
            Self::WrongClass => "RIO, in the wrong class",
            Self::OneClass => "own stack, one class",
            Self::Classes => "RIO, classes",
        }
    }

    /// In a sentence.
    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Self::Kernel => {
                "The kernel's TCP: packets are processed when they come in, before all threads."
            }
            Self::Arrival => {
                "The stack of RIO; the thread that waits for the echo processes its packets itself."
            }
            Self::Scheduled => {
                "The stack of RIO; a thread of the class processes packets, as urgent as the thread that waits."
            }
            Self::WrongClass => {
                "The same, but that thread is an ordinary one, and shares the processor with another that computes."
            }
            Self::OneClass => {
                "The stack of RIO without early demultiplexing: one queue and one thread for both flows, which \
                 goes before all others, as the kernel's processing does."
            }
            Self::Classes => {
                "RIO: packets are told apart before any protocol work, and those of the echo are processed by a \
                 thread of its priority, those of the bulk traffic by an ordinary one."
            }
        }
    }
}
