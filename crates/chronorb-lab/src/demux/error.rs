//! Why the experiment fails.

use thiserror::Error;

/// The cost of demultiplexing could not be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemuxError {
    /// The ORB refused what was to be measured: no endpoint can be opened, or memory is short.
    #[error("{doing}: {source}")]
    Orb {
        /// What was tried.
        doing: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A look-up did not find what it was for, so that its time means nothing.
    #[error("{0} of {1} look-ups of the stage {2} found nothing")]
    NotFound(usize, usize, &'static str),
}

impl DemuxError {
    /// Names what was tried when `source` happened.
    pub(super) fn orb<E>(doing: &'static str) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Orb {
            doing,
            source: source.into(),
        }
    }
}
