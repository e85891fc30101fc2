//! Copies of this process's descriptors, and tests that cannot bear them.
//!
//! A program that is started has all descriptors until it is executed. What another test closes
//! meanwhile stays open in it: a port is not free, and datagrams to it are taken by nobody.

use std::io;
use std::process::{Child, Command};

use chronorb_rt::{PiMutex, PiMutexGuard};

/// Waits until no copies are there, and lets nobody make some as long as this is held.
///
/// A test holds it that starts a server again at its port, or calls one that is gone.
pub(crate) fn uncopied() -> PiMutexGuard<'static, ()> {
    static COPIES: PiMutex<()> = PiMutex::new(());
    COPIES.lock()
}

/// Starts a program. This returns when it has been executed, and so has closed its copies.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let _copies = uncopied();
    command.spawn()
}
