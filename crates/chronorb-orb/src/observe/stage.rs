//! Probes of the stages of a request.

use std::fmt;
use std::sync::Arc;

/// The next step of a thread.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Stage {
    /// To take a connection in.
    Accept,
    /// To read from a connection.
    Read,
    /// To find the target of a request.
    Dispatch,
    /// To call the servant.
    Upcall,
    /// To write the reply.
    Write,
    /// Of a server: to find the servant, in the POA that it has found.
    Find,
    /// Of a server: to conclude the reply, since the servant has returned.
    Conclude,
    /// Of a server: to look for the next work, since the transport has the reply, or keeps it.
    Rest,
    /// Of a client: to find how the object is reached, since it was called.
    Bind,
    /// Of a client: to marshal the request.
    Marshal,
    /// Of a client: to send it.
    Send,
    /// Of a client: to wait for the reply, since the transport has the request.
    Await,
    /// Of a client: to read the reply's header.
    Understand,
    /// Of a client: to hand the results to the stub, which demarshals them.
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
/// For tests and measurements: it runs on the way of the request, so that what it does delays it.
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

    /// Tells of a stage, as the ORB's threads do.
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
