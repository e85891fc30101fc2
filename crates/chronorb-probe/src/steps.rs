//! Counting the instructions of a thread of another process (ptrace(2)).

use std::ptr;
use std::sync::mpsc::{self, SyncSender};

use chronorb_rt::{Thread, ThreadBuilder};
use libc::{c_int, c_uint};
use rustix::io::Errno;

use crate::tracer::TraceError;
use crate::tracer::{PTRACE_INTERRUPT, PTRACE_LISTEN, PTRACE_SEIZE, STEP_MARK, ptrace, wait};

/// A tracer of a thread of another process, which counts its user-space instructions from one mark
/// to the next. The thread makes marks by [`step_mark`](crate::step_mark).
///
/// The thread stops after each instruction between marks: a million of them take some seconds.
/// After the last mark it runs on as before.
#[derive(Debug)]
pub struct StepCounter {
    thread: Thread<Result<Vec<u64>, TraceError>>,
}

impl StepCounter {
    /// Begins to count, up to so many marks, by the kernel's id of the thread. Its process must be
    /// a child of this one where the kernel's Yama module requires that (`ptrace_scope` 1), and
    /// must not have another tracer.
    ///
    /// # Errors
    /// [`TraceError::Refused`], [`TraceError::Ended`].
    pub fn attach(thread: u32, marks: usize) -> Result<Self, TraceError> {
        let tid = i32::try_from(thread).map_err(|_| TraceError::Ended)?;
        let (sender, attached) = mpsc::sync_channel(1);
        let thread = ThreadBuilder::new("steps")
            .spawn(move || count(tid, marks, &sender))
            .map_err(|_| TraceError::Refused(Errno::AGAIN.raw_os_error()))?;
        match attached.recv() {
            Ok(()) => Ok(Self { thread }),
            Err(mpsc::RecvError) => {
                let ended = thread.join().unwrap_or(Err(TraceError::Ended));
                Err(ended.err().unwrap_or(TraceError::Ended))
            }
        }
    }

    /// Waits for the last mark. Returns the number of instructions of each span from one mark to
    /// the next. They include those of a mark; an empty span shows how many these are.
    ///
    /// # Errors
    /// [`TraceError::Ended`] if the thread ended before its last mark.
    pub fn spans(self) -> Result<Vec<u64>, TraceError> {
        self.thread.join().unwrap_or(Err(TraceError::Ended))
    }
}

/// Counts until the last mark.
fn count(tid: i32, marks: usize, attached: &SyncSender<()>) -> Result<Vec<u64>, TraceError> {
    let refused = |error: Errno| match error {
        Errno::SRCH => TraceError::Ended,
        error => TraceError::Refused(error.raw_os_error()),
    };
    let ask = |request: c_uint, signal: c_int| {
        let data = ptr::without_provenance_mut(signal as usize);
        ptrace(request, tid, 0, data).map(drop).map_err(refused)
    };
    ask(PTRACE_SEIZE, 0)?;
    ask(PTRACE_INTERRUPT, 0)?;
    let mut spans = Vec::new();
    // The instructions since the last mark; none before the first one.
    let mut present: Option<u64> = None;
    loop {
        let (_, status) = wait().map_err(|_| TraceError::Ended)?;
        if !libc::WIFSTOPPED(status) {
            return Err(TraceError::Ended);
        }
        let _ = attached.try_send(());
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let mut deliver = 0;
        match (signal, &mut present) {
            (libc::SIGTRAP, Some(instructions)) if event == 0 => *instructions += 1,
            (libc::SIGTRAP, _) => {}
            _ if event != 0 => {
                ask(PTRACE_LISTEN, 0)?;
                continue;
            }
            (STEP_MARK, present) => {
                spans.extend(present.replace(0));
                if spans.len() + 1 >= marks {
                    // The end of the tracer alone would leave the single step on.
                    ask(libc::PTRACE_DETACH, 0)?;
                    return Ok(spans);
                }
            }
            _ => deliver = signal,
        }
        let request = if present.is_some() {
            libc::PTRACE_SINGLESTEP
        } else {
            libc::PTRACE_CONT
        };
        ask(request, deliver)?;
    }
}
