//! Copies of this process's descriptors, and tests that are sensitive to them.
//!
//! A started program has all descriptors until it is executed. If another test closes one
//! meanwhile, it stays open in that program: a port is still in use, and datagrams to it are lost.

use std::io;
use std::process::{Child, Command};

use chronorb_rt::{PiMutex, PiMutexGuard};

/// Waits until there are no copies, and prevents new ones as long as the guard is held.
///
/// A test holds it if it restarts a server at the same port, or calls one that has ended.
pub(crate) fn uncopied() -> PiMutexGuard<'static, ()> {
    static COPIES: PiMutex<()> = PiMutex::new(());
    COPIES.lock()
}

/// Starts a program. Returns when it has been executed, and so has closed its copies.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let _copies = uncopied();
    command.spawn()
}
