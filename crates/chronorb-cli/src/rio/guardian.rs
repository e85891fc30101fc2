//! The guardian: a process that undoes the changes of another one to the machine, in whatever way
//! the other one ends.
//!
//! The guardian reads the changes, a line each, before they are made. It undoes them when its input
//! is closed. The regular end takes the same path.

use std::env;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use chronorb_net::{Undo, UndoError, undo_all};
use chronorb_rt::{Termination, survive_hang_up, with_time_sharing};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thiserror::Error;

/// The hidden command of the process.
pub(crate) const COMMAND: &str = "rio-guardian";

/// The handle of the guardian in the process that it watches over.
#[derive(Debug)]
pub(super) struct Guardian {
    process: Child,
    ear: ChildStdin,
    told: Vec<Undo>,
}

impl Guardian {
    /// Starts the guardian, and waits until only `SIGKILL` can end it.
    pub(super) fn start() -> io::Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C at the terminal does not reach it.
            .process_group(0)
            .spawn()?;
        let ear = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut voice = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        voice.read_exact(&mut [0; READY.len()])?;
        Ok(Self {
            process,
            ear,
            told: Vec::new(),
        })
    }

    /// Announces a change to the guardian before it is made.
    pub(super) fn tell(&mut self, change: &Undo) -> io::Result<()> {
        self.ear.write_all(format!("{change}\n").as_bytes())?;
        self.told.push(change.clone());
        Ok(())
    }

    /// Waits until the program is asked to end, or the guardian is gone.
    pub(super) fn wait(&self, termination: &Termination) -> Result<(), GuardianError> {
        let pid = Pid::from_child(&self.process);
        let guardian = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| GuardianError::Process(error.into()))?;
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(termination.fd(), PollFlags::IN),
                PollFd::new(&guardian, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) if termination.requested() => return Ok(()),
                Ok(_) => return Err(GuardianError::Gone),
                Err(Errno::INTR) => {}
                Err(error) => return Err(GuardianError::Process(error.into())),
            }
        }
    }

    /// Has the guardian undo all changes.
    #[expect(clippy::disallowed_methods, reason = "it has time sharing")]
    pub(super) fn end(mut self) -> Result<(), GuardianError> {
        drop(self.ear);
        let status = with_time_sharing(|| self.process.wait()).flatten();
        let status = status.map_err(GuardianError::Process)?;
        if !status.success() {
            // It was killed, or failed in part: this process tries the rest.
            undo_all(&self.told)?;
        }
        Ok(())
    }
}

/// Runs the guardian.
pub(crate) fn main() -> Result<(), GuardianError> {
    // It ends when all is undone, not before: no other process knows the changes.
    let _deaf = Termination::install().map_err(GuardianError::Process)?;
    // If it is stopped while its parent ends, the kernel sends `SIGHUP` before it continues.
    survive_hang_up().map_err(GuardianError::Process)?;
    let ready = io::stdout().write_all(READY);
    ready
        .and_then(|()| io::stdout().flush())
        .map_err(GuardianError::Process)?;
    let mut changes = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(GuardianError::Process)?;
        // A truncated line announces a change that was not made.
        changes.extend(line.parse::<Undo>());
    }
    Ok(undo_all(&changes)?)
}

/// The output of the guardian when it is ready.
const READY: &[u8] = b"\n";

/// Changes are not undone, or not watched over.
#[derive(Debug, Error)]
pub(crate) enum GuardianError {
    #[error("the guardian process has ended: all changes are undone now")]
    Gone,
    #[error("the guardian process: {0}")]
    Process(io::Error),
    #[error(transparent)]
    Undo(#[from] UndoError),
}
