//! Network namespaces: networks of their own on one machine, network_namespaces(7).

#![allow(
    unsafe_code,
    reason = "unshare(2) is unsafe where it takes descriptors apart, which it does not here"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use chronorb_rt::ThreadBuilder;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// A network namespace, which is there at least as long as this is.
///
/// One without a name ends with the last process that is in it or holds it, whichever way that
/// process ends, and with it all of its interfaces.
#[derive(Debug)]
pub struct NetworkNamespace(OwnedFd);

impl NetworkNamespace {
    /// Makes a new one, without a name. There is nothing in it but a loopback interface that is
    /// down.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_SYS_ADMIN`; otherwise the system's error.
    pub fn create() -> io::Result<Self> {
        // The thread takes its new namespace with it: that of the caller stays as it is.
        let create = || {
            // SAFETY: without `FILES` no descriptor disappears for any thread.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Self::current()
        };
        let thread = ThreadBuilder::new("namespace").spawn(create);
        let thread = thread.map_err(io::Error::other)?;
        let created = thread.join();
        created.unwrap_or_else(|_| Err(io::Error::other("the thread that makes it panicked")))
    }

    /// Opens the namespace of the calling thread.
    ///
    /// # Errors
    /// `/proc` is not there, or the process has no file descriptor left.
    pub fn current() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Opens the namespace of a path: `/run/netns/NAME`, as `ip netns` names them, or
    /// `/proc/PROCESS/ns/net`.
    ///
    /// # Errors
    /// There is none, or it may not be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::open(path)?.into()))
    }

    /// Lets the calling thread do something in it. Threads and processes that it starts meanwhile
    /// stay in it, and so do sockets that it opens.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_SYS_ADMIN`; `f` was not called then.
    ///
    /// # Panics
    /// If the thread cannot go back, because it would then stay in an unexpected namespace.
    pub fn enter<T>(&self, f: impl FnOnce() -> T) -> io::Result<T> {
        let home = Self::current()?;
        self.move_in()?;
        // A thread that could not leave cannot go back either.
        let home = Home(home);
        let done = f();
        drop(home);
        Ok(done)
    }

    /// Moves the calling thread into it, for good.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_SYS_ADMIN`.
    pub fn move_in(&self) -> io::Result<()> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The namespace to which a thread returns, even if it panics.
struct Home(NetworkNamespace);

impl Drop for Home {
    fn drop(&mut self) {
        let back = self.0.move_in();
        back.expect("a thread that could leave its network namespace can go back");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    fn name_of_current() -> String {
        let link = fs::read_link("/proc/thread-self/ns/net").expect("there is /proc");
        link.to_string_lossy().into_owned()
    }

    /// A new namespace; `None`, with a word about it, where this process may not make one.
    fn create() -> Option<NetworkNamespace> {
        match NetworkNamespace::create() {
            Ok(namespace) => Some(namespace),
            Err(error) => {
                println!("NOT RUN: there are no network namespaces: {error}");
                let required = std::env::var("CHRONORB_PEERS").is_ok_and(|v| v == "required");
                assert!(!required, "CHRONORB_PEERS=required: {error}");
                None
            }
        }
    }

    #[test]
    fn a_thread_is_elsewhere_for_a_while_and_so_is_what_it_starts() {
        let Some(namespace) = create() else { return };
        let home = name_of_current();
        let (away, child) = namespace
            .enter(|| {
                let command = Command::new("readlink").arg("/proc/self/ns/net").output();
                let child = String::from_utf8(command.expect("it runs").stdout).expect("a name");
                (name_of_current(), child.trim().to_owned())
            })
            .expect("its creator may enter it");
        assert_ne!(away, home);
        assert_eq!(child, away);
        assert_eq!(name_of_current(), home);
    }

    #[test]
    fn a_thread_that_panics_elsewhere_is_back_home() {
        let Some(namespace) = create() else { return };
        let home = name_of_current();
        let enter = AssertUnwindSafe(|| namespace.enter(|| panic!("on purpose")));
        assert!(catch_unwind(enter).is_err());
        assert_eq!(name_of_current(), home);
    }

    #[test]
    fn who_may_not_enter_is_told_and_stays() {
        let Some(namespace) = create() else { return };
        let entered = move || {
            // Rights are a thread's own.
            let mut rights = capabilities(None).expect("they can be asked for");
            rights.effective = CapabilitySet::empty();
            set_capabilities(None, rights).expect("rights can always be given up");
            namespace.enter(|| ())
        };
        let entered = std::thread::spawn(entered).join();
        let error = entered.expect("it does not panic").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn what_is_no_namespace_cannot_be_entered() {
        let file = NetworkNamespace::open(Path::new("/dev/null")).expect("it is a file");
        assert!(file.enter(|| ()).is_err());
        assert!(NetworkNamespace::open(Path::new("/no/such/namespace")).is_err());
    }
}
