//! System calls that have no safe wrapper elsewhere, behind safe functions where possible.
#![allow(unsafe_code)]

pub(crate) mod files;

use core::mem::{self, MaybeUninit};
use core::ptr;
use core::time::Duration;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, c_long, c_void};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// The policy (with its flags) and the priority of the thread `tid`; 0 is the calling thread.
pub(crate) fn scheduler(tid: i32) -> Result<(c_int, c_int), Errno> {
    // The kernel's `struct sched_param` is this number alone. That of a C library may have more.
    let mut priority: c_int = 0;
    // SAFETY: the call takes no pointer.
    let policy = check(unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) })?;
    // SAFETY: `priority` is alive and of the type that the kernel fills.
    check(unsafe { libc::syscall(libc::SYS_sched_getparam, tid, &raw mut priority) })?;
    Ok((policy as c_int, priority))
}

/// Sets the policy (with its flags) and the priority of the thread `tid`; 0 is the calling thread.
///
/// The system call itself, because the function of some C libraries refuses.
pub(crate) fn set_scheduler(tid: i32, policy: c_int, priority: c_int) -> Result<(), Errno> {
    let param = &raw const priority;
    // SAFETY: `priority` is alive, and is all of the kernel's `struct sched_param`.
    check(unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, param) })?;
    Ok(())
}

/// Sets `SCHED_DEADLINE` for the thread `tid` and time sharing for its children; 0 is the calling
/// thread. Times are in ns.
pub(crate) fn set_deadline(
    tid: i32,
    runtime: u64,
    deadline: u64,
    period: u64,
) -> Result<(), Errno> {
    let attributes = SchedulingAttributes {
        size: size_of::<SchedulingAttributes>() as u32,
        policy: libc::SCHED_DEADLINE as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        nice: 0,
        priority: 0,
        runtime,
        deadline,
        period,
    };
    // SAFETY: `attributes` is alive, and contains its own size.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) })?;
    Ok(())
}

/// `struct sched_attr` of the kernel, sched_setattr(2), in its first version.
#[repr(C)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The resource usage of the calling thread.
pub(crate) fn thread_usage() -> libc::rusage {
    usage(libc::RUSAGE_THREAD)
}

/// The resource usage of all threads of the process.
pub(crate) fn process_usage() -> libc::rusage {
    usage(libc::RUSAGE_SELF)
}

fn usage(of: c_int) -> libc::rusage {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: `usage` is writable and of the type that the kernel fills.
    unsafe { libc::getrusage(of as _, usage.as_mut_ptr()) };
    // SAFETY: a `rusage` consists of numbers, for which zero is valid too.
    unsafe { usage.assume_init() }
}

/// The lowest address and the size of the calling thread's stack, in whole pages, without its
/// guard; not for the main thread, whose stack grows by itself.
pub(crate) fn stack() -> Result<(*mut c_void, usize), Errno> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: `attributes` is writable, and is filled by the call that succeeds.
    let error = unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) };
    if error != 0 {
        return Err(Errno::from_raw_os_error(error));
    }
    let (mut lowest, mut size) = (ptr::null_mut(), 0);
    // SAFETY: `attributes` was filled above; it is destroyed here and used no more.
    let error = unsafe {
        let error =
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    if error != 0 {
        return Err(Errno::from_raw_os_error(error));
    }
    let (offset, size) = whole_pages(lowest.addr(), size, page_size());
    Ok((lowest.wrapping_byte_add(offset), size))
}

/// Gives memory to every page of the calling thread's stack; not for the main thread.
pub(crate) fn prefault_stack() -> Result<(), Errno> {
    let (lowest, size) = stack()?;
    // SAFETY: the range is the mapped stack of this very thread, and populating it does not change
    // what it contains.
    unsafe { madvise(lowest, size, Advice::LinuxPopulateWrite) }
}

/// The CPU time that the thread `tid` of this process has used.
pub(crate) fn cpu_time(tid: i32) -> Result<Duration, Errno> {
    // As pthread_getcpuclockid(3): the complement of the id, the bit for a thread, and the
    // scheduler's clock.
    const OF_A_THREAD: i32 = 4;
    const BY_THE_SCHEDULER: i32 = 2;
    let clock = (!tid << 3) | OF_A_THREAD | BY_THE_SCHEDULER;
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` is writable and of the type that the call fills.
    check(unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) }.into())?;
    // SAFETY: a `timespec` consists of numbers, for which zero is valid too.
    let time = unsafe { time.assume_init() };
    // A time that was used is never negative, and has less than a second of nanoseconds.
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Calls `handler` for `signal`; once only if `once`, and then the default action is back.
///
/// # Safety
/// `handler` does only what signal-safety(7) allows.
pub(crate) unsafe fn catch_signal(
    signal: c_int,
    handler: extern "C" fn(c_int),
    once: bool,
) -> Result<(), Errno> {
    // SAFETY: a `sigaction` of zeroes is valid: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    if once {
        action.sa_flags |= libc::SA_RESETHAND;
    }
    // SAFETY: `action` is alive and complete, and the caller vouches for the handler.
    check(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }.into())?;
    Ok(())
}

/// Returns the action of the process on `signal`: the address of a handler, `SIG_DFL` or `SIG_IGN`.
pub(crate) fn disposition(signal: c_int) -> Result<libc::sighandler_t, Errno> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no action is given, and the present one is written to `action`.
    check(unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) }.into())?;
    // SAFETY: a `sigaction` of zeroes is valid too.
    Ok(unsafe { action.assume_init() }.sa_sigaction)
}

/// Sends `signal` to the thread `tid` of this process; 0 only asks whether there is such a thread.
pub(crate) fn signal_thread(tid: i32, signal: c_int) -> Result<(), Errno> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) })?;
    Ok(())
}

/// Blocks `signal` on the calling thread. Returns the thread's mask without it.
pub(crate) fn block_signal(signal: c_int) -> libc::sigset_t {
    let mut blocked = MaybeUninit::uninit();
    let mut mask = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` fills `blocked` before it is used, `pthread_sigmask` fills `mask`, and
    // neither refuses a signal number that exists.
    unsafe {
        libc::sigemptyset(blocked.as_mut_ptr());
        libc::sigaddset(blocked.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), mask.as_mut_ptr());
        libc::sigdelset(mask.as_mut_ptr(), signal);
        mask.assume_init()
    }
}

/// Has each process that is forked from this one call a function, before `fork` returns in it.
///
/// The function runs on the only thread of the child, while locks of other threads may be held: it
/// must neither lock nor allocate. A child that is made by the system call itself (`clone`, or
/// `vfork`) does not call it.
///
/// # Errors
/// `ENOMEM` if there is no memory for the entry.
pub fn call_after_fork(in_child: extern "C" fn()) -> Result<(), Errno> {
    // SAFETY: the function is one of the program, which stays.
    let error = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if error == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw_os_error(error))
    }
}

/// Blocks (`SIG_BLOCK`) or lets through (`SIG_UNBLOCK`) a signal on the calling thread.
pub(crate) fn change_signal(signal: c_int, how: c_int) {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` fills `signals` before it is used, and the old mask is not asked for.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), signal);
        libc::pthread_sigmask(how, signals.as_ptr(), ptr::null_mut());
    }
}

/// Waits for one event of an epoll set, with the thread's signal mask as `mask` during the wait.
/// Returns the event's flags and data; `None` after `time_out`.
pub(crate) fn epoll_wait(
    set: BorrowedFd<'_>,
    time_out: Option<Duration>,
    mask: Option<&libc::sigset_t>,
) -> Result<Option<(u32, u64)>, Errno> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // The kernel's own type of a time: two numbers of 64 bits on every machine.
    let time = time_out.map(|time_out| {
        let seconds = i64::try_from(time_out.as_secs()).unwrap_or(i64::MAX);
        [seconds, time_out.subsec_nanos().into()]
    });
    // SAFETY: there is room for the one event asked for; the time and the mask are null or alive,
    // and the mask begins with the kernel's own signal set, whose size is given.
    let events = check(unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            set.as_raw_fd(),
            &raw mut event,
            1,
            time.as_ref().map_or(ptr::null(), ptr::from_ref),
            mask.map_or(ptr::null(), ptr::from_ref),
            KERNEL_SIGNAL_SET,
        )
    });
    match events {
        // Emulators and sandboxes lack calls that the kernel has.
        Err(Errno::NOSYS) => epoll_wait_in_milliseconds(set, time_out, mask),
        events => Ok((events? > 0).then_some((event.events, event.u64))),
    }
}

/// Waits as [`epoll_wait`] does, by the older system call. The time is rounded up.
#[cold]
fn epoll_wait_in_milliseconds(
    set: BorrowedFd<'_>,
    time_out: Option<Duration>,
    mask: Option<&libc::sigset_t>,
) -> Result<Option<(u32, u64)>, Errno> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let time_out = time_out.map_or(-1, |time_out| {
        c_int::try_from(time_out.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    });
    // SAFETY: as for `epoll_wait`; the time is a number.
    let events = check(unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait,
            set.as_raw_fd(),
            &raw mut event,
            1,
            time_out,
            mask.map_or(ptr::null(), ptr::from_ref),
            KERNEL_SIGNAL_SET,
        )
    })?;
    Ok((events > 0).then_some((event.events, event.u64)))
}

/// The size of the kernel's signal set: one bit for each of its 64 signals.
const KERNEL_SIGNAL_SET: usize = 8;

/// The part of a range that consists of whole pages: its offset and its size.
fn whole_pages(start: usize, size: usize, page: usize) -> (usize, usize) {
    let offset = start.next_multiple_of(page) - start;
    (offset, size.saturating_sub(offset) / page * page)
}

/// The result of a call of the C library that reports errors by -1 and `errno`.
fn check(result: c_long) -> Result<c_long, Errno> {
    if result == -1 {
        let errno = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&errno).unwrap_or(Errno::INVAL));
    }
    Ok(result)
}
/// Sets the least size of blocks that glibc maps, and the size that it keeps free at the end of a
/// heap.
#[cfg(target_env = "gnu")]
pub(crate) fn set_allocator_thresholds(mapped: c_int, kept: c_int) {
    // SAFETY: `mallopt` takes numbers, and may be called at any time, by any thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, mapped);
        libc::mallopt(libc::M_TRIM_THRESHOLD, kept);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::event::epoll::{CreateFlags, EventData, EventFlags, add, create};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn both_calls_wait_alike() {
        let set = create(CreateFlags::CLOEXEC).unwrap();
        let readable = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let a_moment = Some(Duration::from_nanos(1));
        for wait in [epoll_wait, epoll_wait_in_milliseconds] {
            assert_eq!(wait(set.as_fd(), a_moment, None), Ok(None));
            assert_eq!(wait(readable.as_fd(), a_moment, None), Err(Errno::INVAL));
        }
        add(&set, &readable, EventData::new_u64(7), EventFlags::IN).unwrap();
        for wait in [epoll_wait, epoll_wait_in_milliseconds] {
            let event = Some((EventFlags::IN.bits(), 7));
            assert_eq!(wait(set.as_fd(), None, None), Ok(event));
        }
    }
}
