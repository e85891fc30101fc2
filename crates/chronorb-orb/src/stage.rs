//! Probes of the stages of a request.

use std::fmt;
use std::sync::Arc;

/// The next step of a thread.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Stage {
    /// Accepting a connection.
    Accept,
    /// Reading from a connection.
    Read,
    /// Finding the target of a request.
    Dispatch,
    /// Calling the servant.
    Upcall,
    /// Writing the reply.
    Write,
    /// Server: finding the servant, in the POA that was found.
    Find,
    /// Server: concluding the reply, after the servant has returned.
    Conclude,
    /// Server: looking for the next work, after the transport has taken or buffered the reply.
    Rest,
    /// Client: finding the way to the object, after the call.
    Bind,
    /// Client: marshalling the request.
    Marshal,
    /// Client: sending it.
    Send,
    /// Client: waiting for the reply, after the transport has taken the request.
    Await,
    /// Client: reading the reply's header.
    Understand,
    /// Client: passing the results to the stub, which demarshals them.
    Return,
}

impl Stage {
    /// All of them, in the order of their numbers: the one with number `n` (`stage as u8`) is
    /// `ALL[n]`.
    pub const ALL: [Self; 14] = [
        Self::Accept,
        Self::Read,
        Self::Dispatch,
        Self::Upcall,
        Self::Write,
        Self::Find,
        Self::Conclude,
        Self::Rest,
        Self::Bind,
        Self::Marshal,
        Self::Send,
        Self::Await,
        Self::Understand,
        Self::Return,
    ];
}

/// A function that each thread calls before each [`Stage`], on that thread.
///
/// A function that is called at the stages of a request, for tests and measurements. It runs on the
/// request path and delays the request.
#[derive(Clone)]
pub struct StageProbe(Arc<dyn Fn(Stage) + Send + Sync>);

impl StageProbe {
    /// A probe that calls `f`.
    pub fn new(f: impl Fn(Stage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    /// Returns a probe that records a [stamp](chronorb_probe::stamp) at each stage, with the
    /// stage's number. The stamps must be [kept](chronorb_probe::keep_stamps) first. Together with
    /// those of transports they show where the time of a request goes.
    #[must_use]
    pub fn stamps() -> Self {
        Self::new(|stage| chronorb_probe::stamp(stage as u8))
    }

    /// Reports a stage, as the ORB's threads do.
    #[cold]
    pub fn at(&self, stage: Stage) {
        (self.0)(stage);
    }
}

impl fmt::Debug for StageProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StageProbe")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_where_their_numbers_say() {
        for (number, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, number);
        }
    }
}
