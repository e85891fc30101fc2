//! How a thread waits for octets.

use std::time::Duration;

/// How a thread waits for what its connections bring.
///
/// A thread that blocks has to be woken, which takes microseconds, most of them between two
/// processors. One that looks again and again is not, and takes its processor away from all others
/// meanwhile.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Waiting {
    /// The thread sleeps until the kernel wakes it.
    #[default]
    Block,
    /// The thread looks again and again for so long, and then sleeps.
    Spin(Duration),
    /// The thread looks again and again, as long as that may be.
    Poll,
}

impl Waiting {
    /// How long the thread looks before it sleeps; [`chronorb_rt::look_for`] bounds that further,
    /// so that no thread starves others.
    #[must_use]
    pub const fn bound(self) -> Duration {
        match self {
            Self::Block => Duration::ZERO,
            Self::Spin(bound) => bound,
            Self::Poll => Duration::MAX,
        }
    }
}
