//! E13: calls of the ORB, with and without RIO below it.

use serde::{Deserialize, Serialize};

/// What is below the server's ORB.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// The kernel, as it comes.
    Kernel,
    /// The kernel, told of the priorities: queueing by priority, and a thread for what comes in.
    KernelDriver,
    /// RIO: a class for each lane.
    Rio,
}

impl Io {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::KernelDriver, Self::Rio];

    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::KernelDriver => "kernel, with priorities",
            Self::Rio => "RIO",
        }
    }
}
