//! An open serial line, raw, and read without waiting.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::termios::{self, OptionalActions};

/// A line. One connection at a time goes by it.
#[derive(Debug)]
pub(crate) struct Line {
    file: OwnedFd,
    taken: AtomicBool,
}

impl Line {
    /// Opens a line at a speed of so many bauds, or at the one that it has.
    pub(crate) fn open(path: &Path, baud: Option<u32>) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        let mut settings = termios::tcgetattr(&file)?;
        settings.make_raw();
        if let Some(baud) = baud {
            settings.set_speed(baud)?;
        }
        termios::tcsetattr(&file, OptionalActions::Now, &settings)?;
        Ok(Self {
            file,
            taken: AtomicBool::new(false),
        })
    }

    /// Whether nobody had it; the caller has it now, until [`give_back`](Self::give_back).
    pub(crate) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn give_back(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
