//! Telling who asks for it what a thread is doing to a request.

use std::fmt;
use std::sync::Arc;

/// What a server's thread is about to do.
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

    pub(crate) fn at(&self, stage: Stage) {
        (self.0)(stage);
    }
}

impl fmt::Debug for StageProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StageProbe")
    }
}
