//! Short waits for another thread.

#[cfg(not(loom))]
use core::time::Duration;

#[cfg(not(loom))]
use crate::time::clock::{Monotonic, sleep_until};

/// A wait between attempts for another thread that is about to act and sends no wake-up.
///
/// The first waits yield the processor, which is enough where the other thread runs or is as
/// urgent. A real-time thread that yields is still chosen before all less urgent threads, so that
/// it would keep one of these from its processor for ever. Later waits therefore sleep, 50 µs each.
#[derive(Debug, Default)]
pub struct Backoff {
    #[cfg(not(loom))]
    yields: u32,
}

impl Backoff {
    /// Before the first wait.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for a short time.
    #[cold]
    pub fn wait(&mut self) {
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        if self.yields < YIELDS {
            self.yields += 1;
            std::thread::yield_now();
        } else {
            sleep_until(Monotonic::now() + SLEEP);
        }
    }
}

#[cfg(not(loom))]
const YIELDS: u32 = 32;
#[cfg(not(loom))]
const SLEEP: Duration = Duration::from_micros(50);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_yields_so_often_and_sleeps_from_then_on() {
        let mut backoff = Backoff::new();
        (0..YIELDS).for_each(|_| backoff.wait());
        let before = Monotonic::now();
        (0..10).for_each(|_| backoff.wait());
        assert!(Monotonic::now() - before >= 10 * SLEEP);
    }
}
