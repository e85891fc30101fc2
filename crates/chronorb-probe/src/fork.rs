//! Forks, to show what a program keeps its promises about in a child.

#![allow(unsafe_code)]

use std::io;

/// Forks the process, and runs a function in the child, which then exits with its result. Returns
/// that result, or −1 if a signal ended the child.
///
/// The child has only a copy of the calling thread. Locks that other threads hold are never
/// released in it.
///
/// # Errors
/// Those of fork(2) and waitpid(2).
pub fn in_forked_child(run: impl FnOnce() -> u8) -> io::Result<i32> {
    // SAFETY: glibc makes its own locks usable in the child, which nothing else relies on here.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(u8::MAX);
        // SAFETY: it ends the child without the destructors and buffers of the parent.
        unsafe { libc::_exit(code.into()) };
    }
    let mut status = 0;
    // SAFETY: `status` is writable.
    if child < 0 || unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        -1
    })
}
