//! Counting the system calls of another process (ptrace(2)).
#![allow(unsafe_code)]

use core::ptr;
use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{self, SyncSender};

use chronorb_rt::{Thread, ThreadBuilder};
use libc::{c_int, c_long, c_uint, c_void};
use rustix::io::Errno;

use crate::system_call;

/// A tracer of a process with all its threads. It counts their system calls between marks, which
/// the process sets by [`trace_mark`].
///
/// Every system call of the process stops twice while it is followed, so that nothing else can be
/// measured meanwhile. After the last mark the process runs on as before.
#[derive(Debug)]
pub struct Tracer {
    thread: Thread<Result<Vec<Vec<SystemCalls>>, TraceError>>,
}

/// The number of times that a thread made one system call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SystemCalls {
    /// The kernel's id of the thread.
    pub thread: u32,
    /// The name of the call, for example `sendto`; `syscall_999` if this crate has no name for it.
    pub name: String,
    /// The number of calls begun.
    pub calls: u64,
    /// The number of octets sent, received, read and written.
    pub octets: u64,
}

/// A mark that a process makes for its [`Tracer`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// One span ends here, and the next one begins.
    Next,
    /// The last span ends here.
    Last,
}

/// Makes a mark: a system call that changes nothing, whether or not the process is followed.
pub fn trace_mark(mark: Mark) {
    // SAFETY: the kernel knows no such option, takes no pointer and refuses.
    unsafe { libc::prctl(MARK as c_int, argument_of(mark), 0, 0, 0) };
}

/// Makes a mark for a [`StepCounter`](crate::StepCounter): a signal to the calling thread, which
/// is ignored unless the process handles it.
pub fn step_mark() {
    // SAFETY: the signal is a valid one, and its default is to be ignored.
    unsafe { libc::raise(STEP_MARK) };
}

impl Tracer {
    /// Begins to trace a process. It must be a child of this one where the kernel's Yama module
    /// requires that (`ptrace_scope` 1), and must not have another tracer. When this returns, all
    /// its threads are traced, and so will be those that they start.
    ///
    /// A wait that a thread was in may have ended with `EINTR`, or begins anew, which is counted.
    ///
    /// # Errors
    /// [`TraceError::Refused`], [`TraceError::Ended`].
    pub fn attach(process: u32) -> Result<Self, TraceError> {
        let (sender, attached) = mpsc::sync_channel(1);
        let thread = ThreadBuilder::new("tracer")
            .spawn(move || Tracee::new(process).follow(&sender))
            .map_err(|_| TraceError::Refused(Errno::AGAIN.raw_os_error()))?;
        match attached.recv() {
            Ok(()) => Ok(Self { thread }),
            Err(mpsc::RecvError) => {
                let ended = thread.join().unwrap_or(Err(TraceError::Ended));
                Err(ended.err().unwrap_or(TraceError::Ended))
            }
        }
    }

    /// Waits for the last mark. Returns, for each span from one mark to the next, the calls of each
    /// thread, the most frequent first.
    ///
    /// # Errors
    /// [`TraceError::Ended`] where the process ended before its last mark.
    pub fn spans(self) -> Result<Vec<Vec<SystemCalls>>, TraceError> {
        self.thread.join().unwrap_or(Err(TraceError::Ended))
    }
}

/// The reason why a process cannot be traced.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The kernel does not permit it, or does not know it: Yama, seccomp (as in some containers),
    /// another tracer, a Linux before 5.3.
    #[error(
        "ptrace is refused (system error {0}): by /proc/sys/kernel/yama/ptrace_scope, by the \
         seccomp profile of a container, or because another tracer is there; allow it \
         (CAP_SYS_PTRACE, ptrace_scope 0 or 1), or run outside of it"
    )]
    Refused(i32),
    /// The process ended while it was followed.
    #[error("the traced process ended before its last mark")]
    Ended,
}

/// The state of a traced process and its threads.
struct Tracee {
    process: i32,
    /// The threads that were asked to stop and have not stopped yet.
    stopping: Vec<i32>,
    /// The system call that each thread is in.
    present: BTreeMap<i32, u64>,
    /// Calls and octets by thread and number, since the last mark.
    span: BTreeMap<(i32, u64), (u64, u64)>,
    /// The spans that have ended; none before the first mark.
    spans: Option<Vec<Vec<SystemCalls>>>,
}

impl Tracee {
    fn new(process: u32) -> Self {
        Self {
            process: i32::try_from(process).unwrap_or(0),
            stopping: Vec::new(),
            present: BTreeMap::new(),
            span: BTreeMap::new(),
            spans: None,
        }
    }

    /// Counts until the last mark. The end of the calling thread lets the process go.
    fn follow(mut self, attached: &SyncSender<()>) -> Result<Vec<Vec<SystemCalls>>, TraceError> {
        self.seize()?;
        loop {
            let (tid, status) = wait().map_err(|_| TraceError::Ended)?;
            if !libc::WIFSTOPPED(status) {
                if tid == self.process {
                    return Err(TraceError::Ended);
                }
                self.stopping.retain(|stopping| *stopping != tid);
                continue;
            }
            let signal = libc::WSTOPSIG(status);
            let (request, deliver) = match status >> 16 {
                // The mark itself is the last thing that stops the process.
                _ if signal == SYSTEM_CALL_STOP => match self.at_system_call(tid)? {
                    Some(Mark::Last) => return Ok(self.spans.unwrap_or_default()),
                    Some(Mark::Next) | None => (libc::PTRACE_SYSCALL, 0),
                },
                0 => (libc::PTRACE_SYSCALL, signal),
                libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => (PTRACE_LISTEN, 0),
                _ => (libc::PTRACE_SYSCALL, 0),
            };
            // It fails only for a thread that was killed meanwhile, which the next wait reports.
            let _ = ptrace(request, tid, deliver as usize, ptr::null_mut());
            if !self.stopping.is_empty() {
                self.stopping.retain(|stopping| *stopping != tid);
                if self.stopping.is_empty() {
                    let _ = attached.try_send(());
                }
            }
        }
    }

    /// Takes hold of every thread that there is, until no other has come meanwhile.
    fn seize(&mut self) -> Result<(), TraceError> {
        let refused = |error: Errno| TraceError::Refused(error.raw_os_error());
        let mut seen = Vec::new();
        loop {
            let before = seen.len();
            for tid in threads_of(self.process)? {
                if seen.contains(&tid) {
                    continue;
                }
                let options = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACESYSGOOD;
                let seized = ptrace(
                    PTRACE_SEIZE,
                    tid,
                    0,
                    ptr::without_provenance_mut(options as usize),
                );
                match seized {
                    Ok(_) => {
                        ptrace(PTRACE_INTERRUPT, tid, 0, ptr::null_mut()).map_err(refused)?;
                        self.stopping.push(tid);
                    }
                    Err(Errno::SRCH) => {}
                    // One that a thread started which is followed already is so too.
                    Err(Errno::PERM) if !seen.is_empty() => {}
                    Err(error) => return Err(refused(error)),
                }
                seen.push(tid);
            }
            if seen.len() == before {
                return Ok(());
            }
        }
    }

    /// A thread has stopped where a system call begins or ends.
    fn at_system_call(&mut self, tid: i32) -> Result<Option<Mark>, TraceError> {
        let info = match system_call_info(tid) {
            Ok(info) => info,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(TraceError::Refused(error.raw_os_error())),
        };
        match info {
            Info::Entry { number, arguments } => {
                if number == libc::SYS_prctl as u64 && arguments[0] == MARK {
                    return Ok(self.mark(arguments[1]));
                }
                self.present.insert(tid, number);
                self.span.entry((tid, number)).or_default().0 += 1;
            }
            Info::Exit { result } => {
                let ended = self.present.remove(&tid);
                if let Some(number) = ended.filter(|number| system_call::moves_octets(*number)) {
                    // Where the call began before the mark, it was not counted.
                    if let Some(entry) = self.span.get_mut(&(tid, number)) {
                        entry.1 += u64::try_from(result).unwrap_or(0);
                    }
                }
            }
            Info::Other => {}
        }
        Ok(None)
    }

    fn mark(&mut self, argument: u64) -> Option<Mark> {
        let mark = [Mark::Next, Mark::Last]
            .into_iter()
            .find(|mark| argument_of(*mark) == argument)?;
        let span = std::mem::take(&mut self.span);
        match &mut self.spans {
            Some(spans) => spans.push(told(span)),
            None => self.spans = Some(Vec::new()),
        }
        Some(mark)
    }
}

fn told(span: BTreeMap<(i32, u64), (u64, u64)>) -> Vec<SystemCalls> {
    let mut told: Vec<_> = span
        .into_iter()
        .map(|((tid, number), (calls, octets))| SystemCalls {
            thread: tid.unsigned_abs(),
            name: system_call::system_call_name(number),
            calls,
            octets,
        })
        .collect();
    told.sort_by_key(|of| core::cmp::Reverse(of.calls));
    told
}

fn threads_of(process: i32) -> Result<Vec<i32>, TraceError> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).map_err(|_| TraceError::Ended)?;
    Ok(tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}

/// The kind of stop of a thread.
enum Info {
    Entry { number: u64, arguments: [u64; 2] },
    Exit { result: i64 },
    Other,
}

/// Returns the beginning of the kernel's `struct ptrace_syscall_info`, in words: the kind; two
/// pointers; and then the number and arguments of a call that begins, or the result of one that
/// ends.
fn system_call_info(tid: i32) -> Result<Info, Errno> {
    let mut words = [0_u64; 11];
    let size = size_of_val(&words);
    ptrace(
        libc::PTRACE_GET_SYSCALL_INFO,
        tid,
        size,
        words.as_mut_ptr().cast(),
    )?;
    Ok(match words[0].to_ne_bytes()[0] {
        PTRACE_SYSCALL_INFO_ENTRY => Info::Entry {
            number: words[3],
            arguments: [words[4], words[5]],
        },
        PTRACE_SYSCALL_INFO_EXIT => Info::Exit {
            result: words[3].cast_signed(),
        },
        _ => Info::Other,
    })
}

/// Asks for something to be done with a thread that the calling thread traces. `data` points to as
/// much memory as the request fills, or is a number.
pub(crate) fn ptrace(
    request: c_uint,
    tid: i32,
    address: usize,
    data: *mut c_void,
) -> Result<c_long, Errno> {
    let address: *mut c_void = ptr::without_provenance_mut(address);
    // SAFETY: requests that fill memory get a pointer to a live array, with its size as address;
    // the others take numbers. None of them accesses other memory of this process.
    let result = unsafe { libc::ptrace(request as _, tid, address, data) };
    match result {
        -1 => Err(last_error()),
        result => Ok(result),
    }
}

/// Waits for something to happen to a thread that the calling thread traces.
pub(crate) fn wait() -> Result<(i32, c_int), Errno> {
    let mut status = 0;
    loop {
        // Children of other threads are not this one's.
        let which = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: `status` is alive and of the type that the kernel fills.
        let tid = unsafe { libc::waitpid(-1, &raw mut status, which) };
        match tid {
            -1 if last_error() == Errno::INTR => {}
            -1 => return Err(last_error()),
            tid => return Ok((tid, status)),
        }
    }
}

fn last_error() -> Errno {
    let errno = std::io::Error::last_os_error();
    Errno::from_io_error(&errno).unwrap_or(Errno::INVAL)
}

const fn argument_of(mark: Mark) -> u64 {
    match mark {
        Mark::Next => 1,
        Mark::Last => 2,
    }
}

/// An option that prctl(2) does not have: "chrn".
const MARK: u64 = 0x6368_726e;
/// The bit that distinguishes a stop at a system call from one by a signal, with
/// `PTRACE_O_TRACESYSGOOD`.
const SYSTEM_CALL_STOP: c_int = libc::SIGTRAP | 0x80;

/// The signal that is a mark of instructions.
pub(crate) const STEP_MARK: c_int = libc::SIGWINCH;
pub(crate) const PTRACE_SEIZE: c_uint = 0x4206;
pub(crate) const PTRACE_INTERRUPT: c_uint = 0x4207;
pub(crate) const PTRACE_LISTEN: c_uint = 0x4208;
const PTRACE_SYSCALL_INFO_ENTRY: u8 = 1;
const PTRACE_SYSCALL_INFO_EXIT: u8 = 2;
