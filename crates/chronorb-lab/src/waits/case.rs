//! The ways to wait that are compared, and the settings in which they are measured.

use serde::{Deserialize, Serialize};

/// A way in which a server's thread waits for the next request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitMethod {
    /// In `recv` on the only connection: the least that a sleeping thread can cost.
    Blocking,
    /// In a level-triggered epoll set.
    LevelTriggered,
    /// In an edge-triggered epoll set.
    EdgeTriggered,
    /// In an epoll set that reports the connection once, and is armed again before each reply.
    OneShot,
    /// By `recv` with `MSG_DONTWAIT` first; in an edge-triggered set if it finds nothing.
    ReceiveFirst,
    /// In `recv` on the connection, which is disarmed in the set; another thread waits in the set.
    HotConnection,
    /// By busy-polling with `recv` and `MSG_DONTWAIT`.
    SpinReceive,
    /// By busy-polling with `recv` and the set in turns.
    SpinBoth,
    /// By busy-polling the set alone.
    SpinSet,
    /// In io_uring: one system call submits the `send` of the reply and the next `recv`, and waits.
    Ring,
    /// Like [`Ring`](Self::Ring), but the kernel waits before it tries to receive.
    RingLater,
    /// In io_uring, which submits the next `recv` as it waits; the reply by a `send` before it.
    RingPlainSend,
    /// In io_uring, as a lane's leader: for a `recv` on the connection or an event of an epoll set,
    /// with one system call a request.
    RingLeader,
}

impl WaitMethod {
    /// All ways, beginning with the one that the others are compared with.
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

    /// Returns the name in texts and tables, and the shorter one in charts.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Blocking => ("blocking recv", "recv"),
            Self::LevelTriggered => ("epoll, level-triggered", "level"),
            Self::EdgeTriggered => ("epoll, edge-triggered", "edge"),
            Self::OneShot => ("epoll, one-shot re-armed", "1-shot"),
            Self::ReceiveFirst => ("recv first, then epoll", "recv 1st"),
            Self::HotConnection => ("recv on the hot connection", "hot"),
            Self::SpinReceive => ("spinning: recv", "s: recv"),
            Self::SpinBoth => ("spinning: recv and epoll", "s: both"),
            Self::SpinSet => ("spinning: epoll", "s: epoll"),
            Self::Ring => ("io_uring", "u: both"),
            Self::RingLater => ("io_uring, recv poll-first", "u: poll"),
            Self::RingPlainSend => ("io_uring, plain send", "u: recv"),
            Self::RingLeader => ("io_uring, recv or epoll set", "u: lead"),
        }
    }

    /// The name in texts and tables.
    pub(crate) const fn name(self) -> &'static str {
        self.names().0
    }

    /// The name in charts.
    pub(super) const fn short(self) -> &'static str {
        self.names().1
    }

    /// Whether the thread keeps its processor while it waits.
    pub(super) const fn spins(self) -> bool {
        matches!(self, Self::SpinReceive | Self::SpinBoth | Self::SpinSet)
    }

    /// Whether the thread needs io_uring.
    pub(super) const fn is_ring(self) -> bool {
        matches!(
            self,
            Self::Ring | Self::RingLater | Self::RingPlainSend | Self::RingLeader
        )
    }
}

/// The processors of client and server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processors {
    /// One for both.
    One,
    /// One for each.
    Two,
}

/// The scheduling class of client and server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsClass {
    /// `SCHED_OTHER`.
    Ordinary,
    /// `SCHED_FIFO`, both at the same priority.
    RealTime,
}

/// The conditions under which ways are compared.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Setting {
    /// The processors of client and server.
    pub processors: Processors,
    /// The scheduling class of both.
    pub class: WaitsClass,
    /// The number of other connections in the thread's set, which stay idle.
    pub idle: u32,
}

impl Setting {
    /// All settings without idle connections, measured or not.
    pub(super) fn places() -> impl Iterator<Item = Self> {
        let classes = [WaitsClass::Ordinary, WaitsClass::RealTime];
        classes.into_iter().flat_map(|class| {
            [Processors::One, Processors::Two].map(|processors| Self {
                processors,
                class,
                idle: 0,
            })
        })
    }

    /// The name in texts and tables.
    pub(crate) fn name(self) -> String {
        match self.idle {
            0 => self.place().to_owned(),
            idle => format!("{}, {idle} idle connections", self.place()),
        }
    }

    /// The name without the idle connections.
    pub(super) const fn place(self) -> &'static str {
        match (self.processors, self.class) {
            (Processors::One, WaitsClass::Ordinary) => "one CPU",
            (Processors::Two, WaitsClass::Ordinary) => "two CPUs",
            (Processors::One, WaitsClass::RealTime) => "one CPU, FIFO",
            (Processors::Two, WaitsClass::RealTime) => "two CPUs, FIFO",
        }
    }

    /// The ways that are measured here: a spinning thread needs a processor of its own.
    pub(super) fn ways(self) -> impl Iterator<Item = WaitMethod> {
        let all = WaitMethod::ALL.into_iter();
        all.filter(move |way| self.processors == Processors::Two || !way.spins())
    }

    /// The same setting with another number of idle connections.
    pub(super) const fn with_idle(self, idle: u32) -> Self {
        Self { idle, ..self }
    }
}
