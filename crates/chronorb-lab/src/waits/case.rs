//! What is compared: ways to wait, and where they are tried.

use serde::{Deserialize, Serialize};

/// How a server's thread waits for the next request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// In `recv` on the one connection: what no other way that sleeps can be expected to beat.
    Blocking,
    /// In a level-triggered epoll set.
    LevelTriggered,
    /// In an edge-triggered epoll set.
    EdgeTriggered,
    /// In an epoll set that tells of the connection once, and is armed again before each reply.
    OneShot,
    /// First a look at the connection (`MSG_DONTWAIT`), then as edge-triggered.
    ReceiveFirst,
    /// In `recv` on the connection, which the set does not tell of meanwhile; another thread waits
    /// in the set.
    HotConnection,
    /// Not at all: `recv` with `MSG_DONTWAIT`, again and again.
    SpinReceive,
    /// The same, by turns with a look at the set.
    SpinBoth,
    /// The same, with looks at the set alone.
    SpinSet,
    /// In io_uring, with the next `recv` and the `send` of the reply submitted by the wait: one
    /// system call a request.
    Ring,
    /// The same; the kernel does not look for the next request before it waits.
    RingLater,
    /// In io_uring, with the next `recv` submitted by the wait; the reply by a `send` before it.
    RingPlainSend,
    /// In io_uring, as a lane's leader: for a `recv` on the connection, or for an event of an epoll
    /// set. One system call a request.
    RingLeader,
}

impl Way {
    /// All, that with which the others are compared first.
    pub const ALL: [Self; 13] = [
        Self::Blocking,
        Self::LevelTriggered,
        Self::EdgeTriggered,
        Self::OneShot,
        Self::ReceiveFirst,
        Self::HotConnection,
        Self::SpinReceive,
        Self::SpinBoth,
        Self::SpinSet,
        Self::Ring,
        Self::RingLater,
        Self::RingPlainSend,
        Self::RingLeader,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking recv",
            Self::LevelTriggered => "epoll, level-triggered",
            Self::EdgeTriggered => "epoll, edge-triggered",
            Self::OneShot => "epoll, one-shot re-armed",
            Self::ReceiveFirst => "recv first, then epoll",
            Self::HotConnection => "recv on the hot connection",
            Self::SpinReceive => "spinning: recv",
            Self::SpinBoth => "spinning: recv and epoll",
            Self::SpinSet => "spinning: epoll",
            Self::Ring => "io_uring",
            Self::RingLater => "io_uring, recv poll-first",
            Self::RingPlainSend => "io_uring, plain send",
            Self::RingLeader => "io_uring, recv or epoll set",
        }
    }

    /// In a word, for a plot.
    pub(super) const fn short(self) -> &'static str {
        match self {
            Self::Blocking => "recv",
            Self::LevelTriggered => "level",
            Self::EdgeTriggered => "edge",
            Self::OneShot => "1-shot",
            Self::ReceiveFirst => "recv 1st",
            Self::HotConnection => "hot",
            Self::SpinReceive => "s: recv",
            Self::SpinBoth => "s: both",
            Self::SpinSet => "s: epoll",
            Self::Ring => "u: both",
            Self::RingLater => "u: poll",
            Self::RingPlainSend => "u: recv",
            Self::RingLeader => "u: lead",
        }
    }

    /// Whether the thread computes while it waits.
    pub(super) const fn spins(self) -> bool {
        matches!(self, Self::SpinReceive | Self::SpinBoth | Self::SpinSet)
    }

    /// Whether it takes io_uring.
    pub(super) const fn is_ring(self) -> bool {
        matches!(
            self,
            Self::Ring | Self::RingLater | Self::RingPlainSend | Self::RingLeader
        )
    }
}

/// Where client and server run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processors {
    /// Both on the same one.
    One,
    /// Each on one of its own.
    Two,
}

/// How client and server are scheduled.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// By `SCHED_OTHER`.
    Ordinary,
    /// By `SCHED_FIFO`, both at the same priority.
    RealTime,
}

/// Under which conditions ways are compared.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Setting {
    /// Where client and server run.
    pub processors: Processors,
    /// How they are scheduled.
    pub class: Class,
    /// How many connections the thread waits for besides, on which nothing happens.
    pub idle: u32,
}

impl Setting {
    /// In words.
    #[must_use]
    pub fn name(self) -> String {
        let idle = match self.idle {
            0 => String::new(),
            idle => format!(", {idle} idle connections"),
        };
        format!("{}{idle}", self.place())
    }

    /// The same without idle connections.
    pub(super) const fn place(self) -> &'static str {
        match (self.processors, self.class) {
            (Processors::One, Class::Ordinary) => "one CPU",
            (Processors::Two, Class::Ordinary) => "two CPUs",
            (Processors::One, Class::RealTime) => "one CPU, FIFO",
            (Processors::Two, Class::RealTime) => "two CPUs, FIFO",
        }
    }

    /// The ways that make sense here: a thread that spins needs a processor for itself.
    pub(super) fn ways(self) -> impl Iterator<Item = Way> {
        let all = Way::ALL.into_iter();
        all.filter(move |way| self.processors == Processors::Two || !way.spins())
    }

    /// The same with other idle connections.
    pub(super) const fn with_idle(self, idle: u32) -> Self {
        Self { idle, ..self }
    }
}

/// A way under conditions.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Trial {
    /// The conditions.
    #[serde(flatten)]
    pub setting: Setting,
    /// The way.
    pub way: Way,
}
