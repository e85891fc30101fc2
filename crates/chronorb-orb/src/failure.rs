//! The cause of a failure, in addition to its exception.
//!
//! A [`SystemException`] is three numbers, because it is a value of the wire format and `Copy`. The
//! ORB often knows more: the address, the operating system's error, the part of the URL, the
//! setting. It keeps this as a text of bounded length for the thread that got the exception. A call
//! that succeeds neither reads nor writes it.

use std::cell::Cell;
use std::error::Error;
use std::fmt;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::Text;

thread_local! {
    static LAST: Cell<Option<LastFailure>> = const { Cell::new(None) };
    /// Whether the last failure belongs to an earlier step than the present one.
    static IS_EARLIER: Cell<bool> = const { Cell::new(false) };
}

/// A failure and its cause, as far as the ORB knows it.
///
/// See [`Orb::last_failure`](crate::Orb::last_failure).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LastFailure {
    exception: SystemException,
    cause: Text<MOST>,
}

impl LastFailure {
    /// The exception that the caller received.
    #[must_use]
    pub fn exception(&self) -> SystemException {
        self.exception
    }

    /// The cause, for example `no connection to 127.0.0.1:2809: Connection refused (os error
    /// 111)`; at most 384 octets of it.
    #[must_use]
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

impl fmt::Display for LastFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.exception, self.cause)
    }
}

impl Error for LastFailure {}

/// Returns the exception, and records its cause as the calling thread's last failure.
#[cold]
#[inline(never)]
pub(crate) fn because(exception: SystemException, cause: fmt::Arguments<'_>) -> SystemException {
    put(LastFailure {
        exception,
        cause: Text::of(cause),
    });
    exception
}

/// The last failure of the calling thread whose cause is known.
pub(crate) fn last() -> Option<LastFailure> {
    LAST.try_with(Cell::get).ok().flatten()
}

/// Begins a step: from now on [`kept`] does not return causes of earlier steps.
pub(crate) fn begin() {
    let _ = IS_EARLIER.try_with(|is_earlier| is_earlier.set(true));
}

/// The failure with this exception, if it happened on the calling thread in the present step. It is
/// kept in an error, or until another thread takes the result of the call.
#[cold]
pub(crate) fn kept(exception: SystemException) -> Option<Box<LastFailure>> {
    let is_earlier = IS_EARLIER.try_with(Cell::get).unwrap_or(true);
    let failure = last().filter(|failure| !is_earlier && failure.exception == exception);
    failure.map(Box::new)
}

/// Records a failure, perhaps of another thread, as the last one of the calling thread.
pub(crate) fn put(failure: LastFailure) {
    let _ = LAST.try_with(|last| last.set(Some(failure)));
    let _ = IS_EARLIER.try_with(|is_earlier| is_earlier.set(false));
}

/// The greatest length of a cause in octets: room for some addresses and their errors.
const MOST: usize = 384;

/// The exception where too many requests wait, or one has waited for too long.
pub(crate) const DISCARDED: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::REQUEST_DISCARDED);
/// The exception for a target whose POA does not exist.
pub(crate) const NO_SUCH_ADAPTER: SystemException =
    SystemException::no(SystemExceptionKind::ObjectNotExist, minor::NO_SUCH_ADAPTER);
/// The exception for a request to a POA whose destruction is not complete.
pub(crate) const ADAPTER_DESTROYED: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::ADAPTER_DESTROYED);
