//! Forks of the process. Connections belong to the process that has made them: two processes that
//! read replies from one would take those of each other.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::rtcorba::policies::renew_bindings;

/// The number of forks from the first process that counted them to this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Returns the number of forks that led to this process, as far as they were
/// [counted](begin_count).
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Counts the forks of this process from now on. Without memory for that they go unnoticed.
#[cold]
pub(crate) fn begin_count() {
    static BEGUN: OnceLock<bool> = OnceLock::new();
    BEGUN.get_or_init(|| chronorb_rt::call_after_fork(in_child).is_ok());
}

/// Runs on the only thread of a child. Its bindings are not current any more, so its next call
/// binds anew, and finds the count changed.
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    renew_bindings();
}
