//! Threads with declared scheduling.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::num::NonZeroUsize;
use core::ops::Add;
use core::time::Duration;
use std::fs;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rustix::param::page_size;
use rustix::process::{Resource, getpid, getrlimit};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::mem::tally::{TallyHandle, ThreadCounts};
use crate::sched::scheduling::{self, Scheduling, SchedulingError};
use crate::sync::gate::Gate;
use crate::sync::pi_lock::thread_id;
use crate::sync::pi_mutex::PiMutex;
use crate::sys;
use crate::time::clock::Deadline;
use crate::time::spin::prepare_to_poll;

/// A declaration of a thread: name, scheduling, affinity, stack.
///
/// The declaration is in force before the thread's function runs; otherwise [`spawn`](Self::spawn)
/// fails with the reason. The scheduling is explicit: unlike a thread of the standard library, a
/// thread made here never inherits its policy and priority.
///
/// ```
/// use chronorb_rt::{Scheduling, ThreadBuilder};
///
/// let lane = ThreadBuilder::new("lane")
///     .scheduling(Scheduling::OTHER)
///     .stack_size(256 * 1024)
///     .prefault_stack(true)
///     .spawn(|| 42)?;
/// assert_eq!(lane.join().unwrap(), 42);
/// # Ok::<(), chronorb_rt::SpawnError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a thread runs only after `spawn`"]
pub struct ThreadBuilder {
    name: String,
    scheduling: Scheduling,
    reset_on_fork: bool,
    affinity: Option<Vec<usize>>,
    stack_size: Option<usize>,
    prefault_stack: bool,
}

/// The report of a thread that has started: its id and the size of its stack. The receiver of a
/// channel of the standard library spins while a sender is between its two steps. A spawner that is
/// more urgent than its thread, on the same processor, could then spin forever.
#[derive(Default)]
struct Report {
    started: PiMutex<Option<Result<(u32, usize), SpawnError>>>,
    is_there: Gate,
}

impl Report {
    fn send(&self, started: Result<(u32, usize), SpawnError>) {
        *self.started.lock() = Some(started);
        self.is_there.set(1);
    }

    /// Waits for the report, which every thread sends before it ends.
    fn receive(&self) -> Result<(u32, usize), SpawnError> {
        loop {
            if let Some(started) = self.started.lock().take() {
                return started;
            }
            self.is_there.wait_while(0, Deadline::after(LOOK_AGAIN));
        }
    }
}

/// The interval at which a thread that waits for a report checks for it without a wake-up.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl ThreadBuilder {
    /// A thread of time sharing with the default stack. The kernel keeps the first 15 bytes of
    /// `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scheduling: Scheduling::OTHER,
            reset_on_fork: false,
            affinity: None,
            stack_size: None,
            prefault_stack: false,
        }
    }

    /// The policy and priority; time sharing by default.
    pub fn scheduling(mut self, scheduling: Scheduling) -> Self {
        self.scheduling = scheduling;
        self
    }

    /// Whether threads and processes that are made by this thread start with time sharing
    /// (`SCHED_RESET_ON_FORK`); not by default.
    pub fn reset_on_fork(mut self, reset: bool) -> Self {
        self.reset_on_fork = reset;
        self
    }

    /// The CPUs on which the thread may run, by number from 0; by default those of the thread that
    /// makes it.
    pub fn affinity(mut self, cpus: &[usize]) -> Self {
        self.affinity = Some(cpus.to_vec());
        self
    }

    /// The size of the stack in bytes, rounded up to whole pages; 2 MiB by default. The C library
    /// may give a larger one that an ended thread has left; [`Thread::stack_size`] tells.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Whether the whole stack has its memory before the function runs, so that using it gives no
    /// page fault; not by default.
    pub fn prefault_stack(mut self, prefault: bool) -> Self {
        self.prefault_stack = prefault;
        self
    }

    /// Makes the thread, waits until its declaration holds, and lets it run `f`.
    ///
    /// # Errors
    /// See [`SpawnError`]; `f` has then not run and is dropped.
    pub fn spawn<F, T>(self, f: F) -> Result<Thread<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if self.name.contains('\0') {
            return Err(SpawnError::InvalidName);
        }
        prepare_to_poll();
        let name = self.name.clone();
        let mut builder = Builder::new().name(self.name.clone());
        if let Some(bytes) = self.stack_size {
            let pages = bytes.checked_next_multiple_of(page_size());
            builder = builder.stack_size(pages.unwrap_or(bytes));
        }
        let report = Arc::new(Report::default());
        let reported = report.clone();
        let handle = builder
            .spawn(move || {
                let started = self.declare();
                let stack_size = started.as_ref().ok().copied();
                let registered = stack_size.map(|size| Registration::new(self.name, size));
                report.send(started.map(|size| (thread_id(), size)));
                drop(report);
                registered.map(|_until_the_end| f())
            })
            .map_err(SpawnError::Create)?;
        match reported.receive() {
            Ok((tid, stack_size)) => Ok(Thread {
                name,
                tid,
                stack_size,
                handle,
            }),
            Err(error) => {
                let _nothing = handle.join();
                Err(error)
            }
        }
    }

    /// Puts the declaration into force on the calling thread. Returns the size of its stack.
    fn declare(&self) -> Result<usize, SpawnError> {
        scheduling::set_reset_on_fork(self.reset_on_fork);
        scheduling::set_current(self.scheduling)?;
        if let Some(cpus) = &self.affinity {
            set_affinity(cpus).map_err(SpawnError::Affinity)?;
        }
        if self.prefault_stack {
            sys::prefault_stack().map_err(|error| SpawnError::Prefault(error.into()))?;
        }
        let (_, size) = sys::stack().map_err(|error| SpawnError::Create(error.into()))?;
        Ok(size)
    }
}

/// A thread made by [`ThreadBuilder::spawn`]. Dropping it lets the thread run on.
pub struct Thread<T> {
    name: String,
    tid: u32,
    stack_size: usize,
    handle: JoinHandle<Option<T>>,
}

impl<T> Thread<T> {
    /// The name, uncut.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's thread id.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// The size of the stack in bytes, as the system has made it, without its guard.
    #[must_use]
    pub fn stack_size(&self) -> usize {
        self.stack_size
    }

    /// Whether the thread's function has returned or panicked.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the end of the thread and returns the result of its function.
    ///
    /// # Errors
    /// The value that the function panicked with.
    pub fn join(self) -> std::thread::Result<T> {
        match self.handle.join()? {
            Some(value) => Ok(value),
            None => unreachable!("a thread that was handed out has run its function"),
        }
    }
}

impl<T> fmt::Debug for Thread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("name", &self.name)
            .field("tid", &self.tid)
            .finish_non_exhaustive()
    }
}

/// The reason why a thread could not be made as declared.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The name contains a zero byte.
    #[error("the name of the thread contains a zero byte")]
    InvalidName,
    /// The system has no more threads or no memory for the stack.
    #[error("the thread could not be created: {0}")]
    Create(#[source] io::Error),
    /// The declared policy and priority are refused.
    #[error(transparent)]
    Scheduling(#[from] SchedulingError),
    /// None of the declared CPUs exists or is allowed to the process.
    #[error("the affinity of the thread could not be set: {0}")]
    Affinity(#[source] io::Error),
    /// There is no memory for the whole stack, or less may be locked.
    #[error("the stack of the thread could not be given its memory: {0}")]
    Prefault(#[source] io::Error),
}

/// A description of a live thread that was made by [`ThreadBuilder`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ThreadInfo {
    /// The declared name, uncut.
    pub name: String,
    /// The kernel's thread id.
    pub tid: u32,
    /// The present scheduling, read from the kernel; it differs from the declared one when the
    /// thread has changed it.
    pub scheduling: Scheduling,
    /// The numbers of the CPUs on which the thread may run.
    pub affinity: Vec<usize>,
    /// The size of the stack in bytes, as the system has made it, without its guard.
    pub stack_size: usize,
    /// The state of the thread.
    pub state: ThreadState,
    /// The CPU time that the thread has used so far.
    pub cpu_time: Duration,
}

/// The state of a thread as the kernel reports it (`/proc/PID/stat`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ThreadState {
    /// Running, or ready to run.
    Running,
    /// Waiting for an event, a lock or a time.
    Waiting,
    /// Waiting in the kernel without reacting to signals, mostly for a disk.
    Blocked,
    /// A debugger or a signal has stopped it.
    Stopped,
    /// Ending.
    Ending,
}

/// All threads made by [`ThreadBuilder`] that run their function now, in the order of their start.
///
/// The function reads `/proc` and takes a lock, so it is not for real-time threads.
#[must_use]
pub fn list() -> Vec<ThreadInfo> {
    list_of(|_, _| true)
}

/// The threads of [`list`] that `is_wanted` selects by their name and their kernel's thread id.
///
/// The kernel is asked for these alone, so a few threads of many cost little. `is_wanted` must not
/// start threads: it is called with the list locked.
#[must_use]
pub fn list_of(mut is_wanted: impl FnMut(&str, u32) -> bool) -> Vec<ThreadInfo> {
    // A thread removes itself from the list under the lock, so no listed id is out of date.
    let threads = THREADS.lock();
    threads
        .iter()
        .filter(|entry| is_wanted(&entry.name, entry.tid))
        .filter_map(|entry| {
            let tid = entry.tid.cast_signed();
            Some(ThreadInfo {
                name: entry.name.clone(),
                tid: entry.tid,
                scheduling: scheduling::of_thread(tid).ok()?,
                affinity: cpu_numbers(&sched_getaffinity(Pid::from_raw(tid)).ok()?),
                stack_size: entry.stack_size,
                state: state(tid).ok()?,
                cpu_time: sys::cpu_time(tid).ok()?,
            })
        })
        .collect()
}

/// Returns the lowest address of the calling thread's stack, if it is known. It is unknown if the
/// stack may grow without limit, as a main thread's may, and on a stack that the thread has
/// switched to.
///
/// The first call of a thread asks the C library, which allocates; all later ones read a
/// thread-local variable.
#[inline]
#[must_use]
pub fn stack_bottom() -> Option<NonZeroUsize> {
    let local = 0_u8;
    let here = core::ptr::from_ref(&local).addr();
    let stack = STACK.get();
    if stack.has(here) {
        return stack.bottom;
    }
    // Not determined yet, not known, or on another stack.
    stack_of_caller(stack, here)
}

#[cold]
fn stack_of_caller(mut stack: Stack, here: usize) -> Option<NonZeroUsize> {
    if stack.bottom.is_none() {
        stack = find_stack().unwrap_or(Stack {
            bottom: Some(NonZeroUsize::MIN),
            size: 0,
        });
        STACK.set(stack);
    }
    stack.bottom.filter(|_| stack.has(here))
}

fn find_stack() -> Option<Stack> {
    // The main thread's stack is as large as its limit, if there is one.
    let limit = getrlimit(Resource::Stack).current;
    let is_main = thread_id() == getpid().as_raw_nonzero().get().unsigned_abs();
    if is_main && limit.is_none() {
        return None;
    }
    let (lowest, size) = sys::stack().ok()?;
    Some(Stack {
        bottom: NonZeroUsize::new(lowest.addr()),
        size,
    })
}

/// A stack. The bottom is unset before it was determined, and the size if it is unknown.
#[derive(Clone, Copy)]
struct Stack {
    bottom: Option<NonZeroUsize>,
    size: usize,
}

impl Stack {
    #[inline]
    fn has(&self, address: usize) -> bool {
        let bottom = self.bottom.map_or(0, NonZeroUsize::get);
        address.wrapping_sub(bottom) < self.size
    }
}

thread_local! {
    static STACK: Cell<Stack> = const {
        Cell::new(Stack {
            bottom: None,
            size: 0,
        })
    };
}

/// Returns the sum of the counts of all running threads made by [`ThreadBuilder`], except the
/// calling one. Tests and measurements use the difference. The function takes a lock.
#[must_use]
pub fn counts_of_others() -> ThreadCounts {
    let this = thread_id();
    let threads = THREADS.lock();
    let others = threads.iter().filter(|entry| entry.tid != this);
    // SAFETY: a thread removes itself from the list before it ends, for which it waits for the
    // lock.
    let counts = others.map(|entry| unsafe { entry.counts.read() });
    counts.fold(ThreadCounts::default(), ThreadCounts::add)
}

static THREADS: PiMutex<Vec<Entry>> = PiMutex::new(Vec::new());

/// The record of a thread in the list.
struct Entry {
    tid: u32,
    name: String,
    stack_size: usize,
    counts: TallyHandle,
}

/// The entry of the calling thread in the list of threads.
struct Registration {
    tid: u32,
}

impl Registration {
    fn new(name: String, stack_size: usize) -> Self {
        let tid = thread_id();
        THREADS.lock().push(Entry {
            tid,
            name,
            stack_size,
            counts: TallyHandle::of_this_thread(),
        });
        Self { tid }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        THREADS.lock().retain(|entry| entry.tid != self.tid);
    }
}

fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

fn state(tid: i32) -> io::Result<ThreadState> {
    let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat"))?;
    // The name before it may contain anything, also a parenthesis.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes());
    Ok(match state.and_then(|rest| rest.first()) {
        Some(b'R') => ThreadState::Running,
        Some(b'S' | b'I') => ThreadState::Waiting,
        Some(b'T' | b't') => ThreadState::Stopped,
        Some(b'X' | b'x' | b'Z') => ThreadState::Ending,
        // `D`, and states of kernels before 4.14.
        _ => ThreadState::Blocked,
    })
}

fn cpu_numbers(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .take(set.count() as usize)
        .collect()
}
