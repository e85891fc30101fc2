//! A budget of processor time, at whose end the kernel interrupts the thread and lowers it.
#![allow(unsafe_code)]

use core::cell::{Cell, OnceCell};
use core::mem;
use core::ptr;
use core::time::Duration;
use std::io;

use libc::{SIG_DFL, SIG_IGN, SIGVTALRM, c_int};

use crate::sched::scheduling::{Policy, Scheduling};
use crate::sync::pi_lock::thread_id;
use crate::sync::pi_mutex::PiMutex;
use crate::sys;

/// A budget of processor time of the calling thread. A thread that exceeds it is scheduled as
/// [`Scheduling::OTHER`] from then on, until the budget [ends](Self::end).
///
/// The kernel compares at the ticks that interrupt the thread. That is up to one tick after the
/// budget for a thread that runs on, as under `SCHED_FIFO`. Among more busy threads of ordinary
/// scheduling than processors it can take more than a second of processor time.
///
/// The signal is `SIGVTALRM`; system calls that it interrupts are continued (`SA_RESTART`). Locks
/// that inherit priority go on to raise a thread that was lowered.
///
/// A thread has one budget at a time: a second one replaces the first.
#[derive(Debug)]
#[must_use = "a budget ends when it is dropped"]
pub struct CpuBudget {
    /// A budget belongs to the thread that has made it.
    _of_thread: core::marker::PhantomData<*const ()>,
}

impl CpuBudget {
    /// Begins a budget. The first one of a thread makes a timer, each makes one system call.
    ///
    /// # Errors
    /// `AlreadyExists` where the application has a handler for `SIGVTALRM`, which stays. An error
    /// of the system where it has no more timers.
    pub fn begin(budget: Duration) -> io::Result<Self> {
        install()?;
        TIMER.with(|timer| {
            let timer = match timer.get() {
                Some(timer) => timer,
                None => {
                    let made = Timer::new()?;
                    timer.get_or_init(|| made)
                }
            };
            LOWERED_FROM.set(None);
            IS_ARMED.set(true);
            // Zero would disarm it.
            timer.set(budget.max(Duration::from_nanos(1)))
        })?;
        Ok(Self {
            _of_thread: core::marker::PhantomData,
        })
    }

    /// Ends the budget. Returns the scheduling that the thread had before it was lowered, if it
    /// was; the caller decides whether it gets that again.
    #[must_use = "a lowered thread stays lowered"]
    pub fn end(self) -> Option<Scheduling> {
        self.disarm();
        mem::forget(self);
        LOWERED_FROM.take()
    }

    fn disarm(&self) {
        // A signal that is pending is handled before the system call returns, since it goes to
        // this thread.
        let _ = TIMER.try_with(|timer| timer.get().map(|timer| timer.set(Duration::ZERO)));
        IS_ARMED.set(false);
    }
}

impl Drop for CpuBudget {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// A timer of the kernel by the processor time of the thread that made it.
struct Timer(libc::timer_t);

impl Timer {
    fn new() -> io::Result<Self> {
        // SAFETY: a `sigevent` consists of numbers and a pointer, for which zero is valid.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGVTALRM;
        event.sigev_notify_thread_id = thread_id() as c_int;
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both are alive and of the types that the call reads and fills.
        let made = unsafe {
            libc::timer_create(
                libc::CLOCK_THREAD_CPUTIME_ID,
                &raw mut event,
                &raw mut timer,
            )
        };
        if made == 0 {
            Ok(Self(timer))
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Lets the timer run out once, after this processor time; never for zero.
    fn set(&self, after: Duration) -> io::Result<()> {
        let value = libc::timespec {
            tv_sec: after.as_secs().min(MAX_SECONDS) as _,
            tv_nsec: after.subsec_nanos() as _,
        };
        let once = libc::itimerspec {
            // SAFETY: a `timespec` consists of numbers, for which zero is valid.
            it_interval: unsafe { mem::zeroed() },
            it_value: value,
        };
        // SAFETY: `once` is alive, the timer was made by this thread and is deleted on drop only.
        let set = unsafe { libc::timer_settime(self.0, 0, &raw const once, ptr::null_mut()) };
        if set == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was made in `new`, and is used no more.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Starts to handle the signal; further calls do nothing.
fn install() -> io::Result<()> {
    static INSTALLED: PiMutex<bool> = PiMutex::new(false);
    if IS_INSTALLED.get() {
        return Ok(());
    }
    let mut installed = INSTALLED.lock();
    if !*installed {
        let present = sys::disposition(SIGVTALRM)?;
        if present != SIG_DFL && present != SIG_IGN {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the application handles SIGVTALRM itself, by which budgets end",
            ));
        }
        // SAFETY: the handler makes two system calls that leave `errno` alone where they succeed,
        // and writes to cells of its own thread that have no destructor.
        unsafe { sys::catch_signal(SIGVTALRM, on_end, false) }?;
        *installed = true;
    }
    IS_INSTALLED.set(true);
    Ok(())
}

/// Lowers the thread, whose budget has ended.
extern "C" fn on_end(_signal: c_int) {
    if !IS_ARMED.get() {
        return;
    }
    let Ok((policy, priority)) = sys::scheduler(0) else {
        return;
    };
    let policy_of_three = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => Policy::Fifo,
        libc::SCHED_RR => Policy::RoundRobin,
        _ => Policy::Other,
    };
    let lowered = libc::SCHED_OTHER | (policy & libc::SCHED_RESET_ON_FORK);
    // Every thread may lower itself.
    if sys::set_scheduler(0, lowered, 0).is_ok() {
        LOWERED_FROM.set(Some(Scheduling {
            policy: policy_of_three,
            priority: priority as u8,
        }));
    }
}

/// The greatest number of seconds that every kernel takes.
const MAX_SECONDS: u64 = i32::MAX as u64;

thread_local! {
    /// Whether this thread has seen that the handler is installed.
    static IS_INSTALLED: Cell<bool> = const { Cell::new(false) };
    static IS_ARMED: Cell<bool> = const { Cell::new(false) };
    /// The scheduling of the thread before it was lowered.
    static LOWERED_FROM: Cell<Option<Scheduling>> = const { Cell::new(None) };
    static TIMER: OnceCell<Timer> = const { OnceCell::new() };
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;
    use crate::time::clock::thread_cpu_time;

    /// Uses this much processor time.
    fn burn(time: Duration) {
        let begun = thread_cpu_time();
        while thread_cpu_time() - begun < time {
            black_box(0);
        }
    }

    #[test]
    fn a_thread_is_lowered_only_after_its_budget() {
        let within = CpuBudget::begin(Duration::from_secs(3600)).expect("a timer");
        burn(Duration::from_millis(1));
        assert_eq!(within.end(), None);
        let before = crate::current().expect("a usual policy");
        let exceeded = CpuBudget::begin(Duration::from_millis(1)).expect("a timer");
        // Until a tick of the kernel notices it, however long that is.
        while LOWERED_FROM.get().is_none() {
            burn(Duration::from_millis(1));
        }
        assert_eq!(crate::current().ok(), Some(Scheduling::OTHER));
        assert_eq!(exceeded.end(), Some(before));
    }

    #[test]
    fn a_budget_that_has_ended_lowers_nothing() {
        drop(CpuBudget::begin(Duration::from_millis(1)).expect("a timer"));
        burn(Duration::from_millis(20));
        assert_eq!(LOWERED_FROM.get(), None);
    }
}
