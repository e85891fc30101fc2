//! Descriptors that a service manager has passed to this process: sd_listen_fds(3).

use std::env;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process;

use chronorb_rt::PiMutex;

/// The descriptors that were taken. No descriptor is taken twice.
static TAKEN: PiMutex<Vec<RawFd>> = PiMutex::new(Vec::new());

/// The first descriptor that is passed (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// Takes the first passed descriptor for which `is_wanted` returns `true`, and has it closed on
/// `exec`.
///
/// A program that uses passed descriptors itself uses others than those that are wanted here.
pub(crate) fn take(is_wanted: impl Fn(BorrowedFd<'_>) -> bool) -> Option<OwnedFd> {
    let number = |name| env::var(name).ok()?.parse::<RawFd>().ok();
    let count = number("LISTEN_FDS").filter(|count| *count > 0)?;
    // Variables for another process are inherited from it.
    number("LISTEN_PID").filter(|pid| pid.cast_unsigned() == process::id())?;
    let mut taken = TAKEN.lock();
    let all = FIRST..FIRST.saturating_add(count);
    // A descriptor that is not open ends the search, however great the count is.
    let open = all.take_while(|fd| taken.contains(fd) || close_on_exec(*fd));
    let mut free = open.filter(|fd| !taken.contains(fd));
    let fd = free.find(|fd| {
        // SAFETY: it is open, and nothing else in this process closes it: the service manager has
        // passed it, and it was not taken.
        is_wanted(unsafe { BorrowedFd::borrow_raw(*fd) })
    })?;
    drop(free);
    taken.push(fd);
    // SAFETY: as above. It is taken now, so this is its only owner.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has a descriptor closed on `exec`; `false` if it is not open.
fn close_on_exec(fd: RawFd) -> bool {
    // SAFETY: the call takes numbers alone, and fails for one that is not open.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) == 0 }
}
