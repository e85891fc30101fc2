//! An open serial line in raw, non-blocking mode.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::termios::{self, OptionalActions};

/// A line. It carries one connection at a time.
#[derive(Debug)]
pub(crate) struct Line {
    file: OwnedFd,
    taken: AtomicBool,
}

impl Line {
    /// Opens a line with this speed in baud, or with its present speed.
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

    /// Returns whether the line was unused. Then the caller owns it until
    /// [`give_back`](Self::give_back).
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
