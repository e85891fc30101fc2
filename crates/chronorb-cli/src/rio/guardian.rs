//! The guardian: a process that undoes what another one did to the machine, however that one ends.
//!
//! It reads changes, a line each, before they are made. When nobody can tell it any more, it undoes them. That is so too
//! where all goes well, so that there is one way to do it.

use std::env;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use chronorb_net::{Undo, UndoError, undo_all};
use chronorb_rt::{Termination, survive_hang_up};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thiserror::Error;

/// The command of the process; it is no one's to type.
pub(crate) const COMMAND: &str = "rio-guardian";

/// The guardian, as the process sees it that it watches over.
#[derive(Debug)]
pub(super) struct Guardian {
    process: Child,
    ear: ChildStdin,
    told: Vec<Undo>,
}

impl Guardian {
    /// Starts it, and waits until no signal but `SIGKILL` ends it.
    pub(super) fn start() -> io::Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C at the terminal is not for it.
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

    /// Tells it of a change that is going to be made.
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

    /// Has all undone.
    pub(super) fn end(mut self) -> Result<(), GuardianError> {
        drop(self.ear);
        let status = self.process.wait().map_err(GuardianError::Process)?;
        match status.success() {
            true => Ok(()),
            // It has been killed, or says what it could not do: what is left is tried here.
            false => Ok(undo_all(&self.told)?),
        }
    }
}

/// What the guardian does.
pub(crate) fn main() -> Result<(), GuardianError> {
    // It ends when it is done, not before: nobody else would undo what it knows of.
    let _deaf = Termination::install().map_err(GuardianError::Process)?;
    // Where it is stopped while its parent ends, the kernel sends it `SIGHUP` before it goes on.
    survive_hang_up().map_err(GuardianError::Process)?;
    let ready = io::stdout().write_all(READY);
    ready
        .and_then(|()| io::stdout().flush())
        .map_err(GuardianError::Process)?;
    let mut changes = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(GuardianError::Process)?;
        // A line that was cut is of a change that was not made.
        changes.extend(line.parse::<Undo>());
    }
    Ok(undo_all(&changes)?)
}

/// The output of the guardian when it is ready.
const READY: &[u8] = b"\n";

/// What is not undone, or not watched over.
#[derive(Debug, Error)]
pub(crate) enum GuardianError {
    #[error("the guardian process has ended: all is undone now, while there is somebody to do it")]
    Gone,
    #[error("the guardian process: {0}")]
    Process(io::Error),
    #[error(transparent)]
    Undo(#[from] UndoError),
}
