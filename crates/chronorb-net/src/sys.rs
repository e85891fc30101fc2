//! The system call for socket options that have no safe wrapper elsewhere.

#![allow(unsafe_code, reason = "these options have no safe wrapper elsewhere")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

/// Sets an option of a socket whose value is a number.
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    value: c_int,
) -> io::Result<()> {
    let len = size_of_val(&value) as libc::socklen_t;
    let place = (&raw const value).cast();
    // SAFETY: `value` is alive and of the size given.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, place, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
