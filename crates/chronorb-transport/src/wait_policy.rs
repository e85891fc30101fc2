//! The ways in which a thread waits for octets.

use std::time::Duration;

/// The way in which a thread waits for input of its connections.
///
/// A thread that blocks has to be woken, which takes microseconds, most of them between two
/// processors. A polling thread needs no wake-up, but keeps its processor from all other threads
/// meanwhile.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WaitPolicy {
    /// The thread sleeps until the kernel wakes it.
    #[default]
    Block,
    /// The thread looks again and again for so long, and then sleeps.
    Spin(Duration),
    /// The thread looks again and again, as long as that may be.
    Poll,
}

impl WaitPolicy {
    /// Returns how long the thread polls before it sleeps. [`chronorb_rt::poll_for`] bounds that
    /// further, so that no thread starves others.
    #[must_use]
    pub const fn bound(self) -> Duration {
        match self {
            Self::Block => Duration::ZERO,
            Self::Spin(bound) => bound,
            Self::Poll => Duration::MAX,
        }
    }
}
