//! Real-time Linux for chronorb: threads, priorities, priority-inheritance mutex, clocks.
//!
//! The ORB calls the kernel about scheduling, memory locking and signals in this crate only. It
//! knows nothing of CORBA. It reports exactly what the system grants and refuses; its users decide
//! how to continue without a right.
//!
//! | need | item |
//! |---|---|
//! | a thread with a declared policy, priority, affinity and stack | [`ThreadBuilder`] |
//! | the scheduling of the calling thread | [`current`], [`set_current`] |
//! | that of another thread | [`set_scheduling_of`], [`thread_id`] |
//! | that of a thread of the kernel or of another process | [`scheduling_of_process`], [`set_scheduling_of_process`] |
//! | work that no thread may do at a real-time priority, as reaping a child | [`with_time_sharing`] |
//! | processor time that is reserved for a thread | [`reserve_for`] |
//! | a thread that is lowered once it has used a budget of processor time | [`CpuBudget`] |
//! | the rights of the process, and how to grant missing ones | [`Rights`] |
//! | memory that is mapped, for this process alone or shared | [`Mapping`] |
//! | no page faults after the start | [`lock_all`], [`page_faults`] |
//! | time | [`Monotonic`], [`Deadline`] |
//! | mutual exclusion without unbounded priority inversion | [`PiMutex`] |
//! | the same as separate calls, without a value | [`PiLock`] |
//! | mutual exclusion on several CPUs, above all other threads | [`CeilingLock`] |
//! | a table that readers enter without waiting | [`Slots`] |
//! | the same for names, by hash | [`HashIndex`] |
//! | several look-ups at the price of one | [`epoch::enter`] |
//! | ownership without waiting, and without lost wake-ups | [`Baton`] |
//! | busy and idle threads of a lane, and its backlog | [`WorkerSet`] |
//! | threads that wait at one source of work while others wait for all | [`SourceAffinity`] |
//! | activities that other threads find, cancel and wake | [`Cancellable`] |
//! | a state that threads wait on | [`Gate`] |
//! | bounded polling that starves no other thread | [`poll_for`], [`poll_unless_contended`] |
//! | a short wait for a thread that sends no wake-up | [`Backoff`] |
//! | a wake-up through a file descriptor | [`Wake`] |
//! | a wake-up of one chosen thread that waits on an epoll set | [`Kick`] |
//! | `SIGINT` and `SIGTERM` | [`Termination`] |
//! | `SIGHUP` | [`survive_hang_up`] |
//! | a regular file, read without waiting and without the memory of a device | [`read_file`], [`read_text`], [`read_file_up_to`] |
//! | a file, written through no link of another user | [`write_file`] |
//! | texts of peers for people | [`is_hidden`], [`visible`], [`visible_json`] |
//! | words that any other process may read without asking | [`PublishedWords`] |
//! | proof that a path does not allocate, and that memory is given back | [`CountingAllocator`] |
//! | counts of the threads of this process | [`ThreadCounts`], [`counts_of_others`] |
//! | measurements of locks and wake-ups | [`observe_synchronisation`], [`count`] |
//! | events for the application's log, reported without waiting for it | [`log::tell`] |
//! | context switches of a thread or a process | [`Usage`] |
//!
//! # Folders
//!
//! Each folder uses only those before it: `sys` (system calls), `time`, `mem`, `sync` (locks and
//! sets of threads), `table`, `sched` (threads and signals), `log`.
//!
//! Linux 5.14 or newer is required (`FUTEX_LOCK_PI2`, `MADV_POPULATE_WRITE`).
//!
//! A process made by `fork` without `exec` cannot use the crate: the thread id that [`PiMutex`]
//! remembers belongs to the parent.

#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod causes;
pub mod log;
mod mem;
mod sched;
mod sync;
mod sys;
mod table;
mod time;
mod visible;

pub use causes::with_causes;
pub use mem::alloc::{
    CountingAllocator, RefusedAllocations, allocated_octets, allocations, forbid, live_octets,
    peak_octets, refuse_above,
};
pub use mem::mapping::Mapping;
pub use mem::memory::{MemoryLockError, Usage, lock_all, page_faults, return_great_blocks};
pub use mem::published::PublishedWords;
pub use mem::tally::{COUNT_WORDS, ThreadCounts, count};
pub use mem::text::Text;
pub use sched::budget::CpuBudget;
pub use sched::ceiling_lock::CeilingLock;
pub use sched::reservation::{Reservation, ReservationError, reserve_for};
pub use sched::rights::{MemoryLock, MissingRight, PriorityRefusal, Rights, raise_open_files};
pub use sched::scheduling::{
    Policy, Scheduling, SchedulingError, current, scheduling_of_process, set_current,
    set_scheduling_of, set_scheduling_of_process,
};
pub use sched::signal::{Termination, survive_hang_up};
pub use sched::thread::{
    SpawnError, Thread, ThreadBuilder, ThreadInfo, ThreadState, counts_of_others, list, list_of,
    stack_bottom,
};
pub use sched::time_sharing::with_time_sharing;
pub use sync::baton::{Baton, BatonGuard, ReleaseOutcome};
pub use sync::cancellable::{Activity, Cancellable};
pub use sync::gate::Gate;
pub use sync::kick::{Kick, epoll_wait_or_kick};
pub use sync::observer::{SyncObserver, observe_synchronisation};
pub use sync::pi_lock::{NotOwner, PiLock, PiLockError, lock_operations, thread_id};
pub use sync::pi_mutex::{PiMutex, PiMutexGuard};
pub use sync::source_affinity::{AffineThread, SourceAffinity};
pub use sync::wake::Wake;
pub use sync::worker_set::{Bounds, Call, OfferOutcome, Rank, WakeReason, WorkerSet};
pub use sys::call_after_fork;
pub use sys::files::{
    MAX_FILE, read_file, read_file_up_to, read_text, read_text_up_to, write_file,
};
pub use table::epoch;
pub use table::hash_index::HashIndex;
pub use table::slots::{Full, Key, RemoveOutcome, SlotRef, Slots};
pub use time::backoff::Backoff;
pub use time::clock::{Deadline, Monotonic, sleep_until, tai, thread_cpu_time};
pub use time::spin::{poll_for, poll_unless_contended, prepare_to_poll};
pub use visible::{is_hidden, visible, visible_json};
