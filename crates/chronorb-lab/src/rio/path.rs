//! The paths of a flow's packets through a host.

use serde::Serialize;

use super::plan::RioPart;

/// The path of the packets of echoes, and of the traffic beside them, through the server's host.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketPath {
    /// The kernel with its defaults.
    Kernel,
    /// The stack of RIO, in the thread that waits for the packets.
    Arrival,
    /// The stack of RIO, in a thread of the class, as urgent as the one that waits.
    Scheduled,
    /// The same stack, in a thread that is not urgent at all.
    WrongClass,
    /// The stack of RIO with all flows in one class: one queue and one thread, more urgent than all
    /// others.
    OneClass,
    /// RIO with a class for each flow, whose thread is as urgent as those that wait for it.
    Classes,
}

impl PacketPath {
    /// The paths that are compared without competition.
    pub(super) const ALONE: [Self; 4] = [
        Self::Kernel,
        Self::Arrival,
        Self::Scheduled,
        Self::WrongClass,
    ];

    /// The paths that are compared beside bulk traffic.
    pub(super) const IN_COMPANY: [Self; 3] = [Self::Kernel, Self::OneClass, Self::Classes];

    /// Returns the paths that a part compares.
    pub(super) const fn of(part: RioPart) -> &'static [Self] {
        match part {
            RioPart::Company => &Self::IN_COMPANY,
            _ => &Self::ALONE,
        }
    }

    /// The name in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.words().0
    }

    /// Returns the description, in a sentence.
    pub(super) const fn meaning(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Kernel => (
                "kernel",
                "The kernel's TCP: packets are processed when they come in, before all threads.",
            ),
            Self::Arrival => (
                "RIO, on arrival",
                "The stack of RIO; the thread that waits for the echo processes its packets \
                 itself.",
            ),
            Self::Scheduled => (
                "RIO, scheduled",
                "The stack of RIO; a thread of the class processes packets, as urgent as the \
                 thread that waits.",
            ),
            Self::WrongClass => (
                "RIO, in the wrong class",
                "The same, but that thread is an ordinary one, and shares the processor with \
                 another that computes.",
            ),
            Self::OneClass => (
                "own stack, one class",
                "The stack of RIO without early demultiplexing: one queue and one thread for both \
                 flows, which preempts all others, as the kernel's processing does.",
            ),
            Self::Classes => (
                "RIO, classes",
                "RIO: packets are classified before any protocol work. A thread of the echo's \
                 priority processes those of the echo, an ordinary one those of the bulk \
                 traffic.",
            ),
        }
    }
}
