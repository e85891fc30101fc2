//! Oneway requests of a thread that wait in its connection, to be sent together.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Frame};
use chronorb_rt::Monotonic;

use crate::rtcorba::OnewayBuffering;

/// A sequence of whole messages that waits to be sent at once.
pub(super) struct OnewayBatch {
    octets: Frame,
    requests: u32,
    /// The time of the first one.
    since: Monotonic,
}

impl OnewayBatch {
    pub(super) fn new() -> Self {
        Self {
            octets: Frame::new(0, usize::MAX),
            requests: 0,
            since: Monotonic::from_nanos(0),
        }
    }

    pub(super) fn octets(&self) -> &[u8] {
        self.octets.as_slice()
    }

    pub(super) fn requests(&self) -> u32 {
        self.requests
    }

    /// Whether there is room for a message.
    pub(super) fn has_room(&self, message: &[u8], limits: OnewayBuffering) -> bool {
        let octets = self.octets.len().saturating_add(message.len());
        octets <= limits.octets && self.requests < limits.requests
    }

    /// Adds a message at a time.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn push(&mut self, message: &[u8], now: Monotonic) -> Result<(), CdrError> {
        self.octets.extend_from_slice(message)?;
        if self.requests == 0 {
            self.since = now;
        }
        self.requests += 1;
        Ok(())
    }

    /// Whether the messages are to be sent now.
    pub(super) fn is_due(&self, limits: OnewayBuffering, now: Monotonic) -> bool {
        self.requests >= limits.requests
            || self.octets.len() >= limits.octets
            || now.since(self.since) >= limits.delay
    }

    /// Removes the messages, and returns their number.
    pub(super) fn take(&mut self) -> u32 {
        self.octets.clear();
        std::mem::take(&mut self.requests)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: OnewayBuffering = OnewayBuffering {
        octets: 20,
        requests: 3,
        delay: Duration::from_secs(1),
    };

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_nanos(seconds * 1_000_000_000)
    }

    fn with(messages: &[(&[u8], u64)]) -> OnewayBatch {
        let mut batch = OnewayBatch::new();
        for (message, seconds) in messages {
            batch.push(message, at(*seconds)).expect("there is memory");
        }
        batch
    }

    #[test]
    fn each_bound_makes_it_due() {
        let one = with(&[(&[1; 8], 10)]);
        assert!(!one.is_due(LIMITS, at(10)));
        assert!(one.is_due(LIMITS, at(11)), "its delay is over");
        let two = with(&[(&[1; 8], 10), (&[2; 8], 12)]);
        assert!(two.is_due(LIMITS, at(12)), "the first one counts");
        let three = with(&[(&[1; 2], 10), (&[2; 2], 10), (&[3; 2], 10)]);
        assert!(three.is_due(LIMITS, at(10)), "there are enough");
        let full = with(&[(&[1; 20], 10)]);
        assert!(full.is_due(LIMITS, at(10)), "it is full");
    }

    #[test]
    fn messages_stay_whole_and_in_order() {
        let mut batch = with(&[(b"one", 1), (b"two", 1)]);
        assert_eq!(batch.octets(), b"onetwo");
        assert!(batch.has_room(&[0; 14], LIMITS));
        assert!(!batch.has_room(&[0; 15], LIMITS));
        assert_eq!(batch.take(), 2);
        assert_eq!((batch.octets(), batch.requests()), (&b""[..], 0));
        assert!(!batch.has_room(&[0; 21], LIMITS));
        let none = OnewayBuffering {
            requests: 0,
            ..LIMITS
        };
        assert!(!batch.has_room(b"x", none));
    }
}
