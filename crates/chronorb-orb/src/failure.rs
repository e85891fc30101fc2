//! What is known of a failure beyond its exception.
//!
//! A [`SystemException`] is three numbers, since it is a value of the wire and `Copy`. What the ORB
//! knows besides (the address, the error of the system, the part of the URL, the setting) is a text
//! of bounded length beside it, of the thread that got the exception. A call that succeeds neither
//! reads nor writes it.

use std::cell::Cell;
use std::error::Error;
use std::fmt;

use chronorb_giop::SystemException;
use chronorb_rt::Text;

thread_local! {
    static LAST: Cell<Option<LastFailure>> = const { Cell::new(None) };
    /// Whether that is of an earlier step than the present one.
    static IS_EARLIER: Cell<bool> = const { Cell::new(false) };
}

/// A failure, and its cause as far as the ORB knows it; see [`Orb::last_failure`](crate::Orb::last_failure).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LastFailure {
    exception: SystemException,
    cause: Text<MOST>,
}

impl LastFailure {
    /// The exception that the caller got.
    #[must_use]
    pub fn exception(&self) -> SystemException {
        self.exception
    }

    /// The cause, as `no connection to 127.0.0.1:2809: Connection refused (os error 111)`: 384
    /// octets of it at most.
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

/// The exception; its cause becomes that of the calling thread's last failure.
#[cold]
#[inline(never)]
pub(crate) fn because(exception: SystemException, cause: fmt::Arguments<'_>) -> SystemException {
    put(LastFailure {
        exception,
        cause: Text::of(cause),
    });
    exception
}

/// The last failure of the calling thread of which more is known than the exception.
pub(crate) fn last() -> Option<LastFailure> {
    LAST.try_with(Cell::get).ok().flatten()
}

/// Begins a step: its exceptions do not get the causes of earlier ones from [`kept`].
pub(crate) fn begin() {
    let _ = IS_EARLIER.try_with(|is_earlier| is_earlier.set(true));
}

/// The failure with this exception, if the calling thread had it in the present step. It is kept
/// in an error, or until another thread takes the result of the call.
#[cold]
pub(crate) fn kept(exception: SystemException) -> Option<Box<LastFailure>> {
    let is_earlier = IS_EARLIER.try_with(Cell::get).unwrap_or(true);
    let failure = last().filter(|failure| !is_earlier && failure.exception == exception);
    failure.map(Box::new)
}

/// Makes a failure, of another thread perhaps, the last one of the calling thread.
pub(crate) fn put(failure: LastFailure) {
    let _ = LAST.try_with(|last| last.set(Some(failure)));
    let _ = IS_EARLIER.try_with(|is_earlier| is_earlier.set(false));
}

/// Octets of a cause: some addresses with the errors of the system.
const MOST: usize = 384;
