//! Work that no thread may do at a real-time priority.

use std::io;
use std::panic::resume_unwind;
use std::thread::{self, Builder};

use crate::sched::scheduling::{Policy, Scheduling, current, set_current};

/// Runs `work` with time sharing, for system calls that wait in the kernel for threads of other
/// processes: reaping a child, removing a file or a directory, walking `/proc`.
///
/// The kernel gives these threads no priority of the waiting one. When a child is reaped, its
/// entries in `/proc` are removed, for which the kernel repeats an attempt until every other thread
/// has released them. A real-time thread then keeps its processor busy, and with it a thread that
/// would release one.
///
/// A thread with time sharing runs `work` itself. Any other one runs it on a thread of its own, for
/// which it waits without a bound, and keeps its scheduling: once lowered, it may lack the right to
/// return.
///
/// ```
/// use std::process::Command;
///
/// let mut child = Command::new("true").spawn()?;
/// let status = chronorb_rt::with_time_sharing(|| child.wait())??;
/// assert!(status.success());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The thread could not be started, or could not be given time sharing. `work` has then not run.
/// A thread with a [reservation](crate::reserve_for) can start none.
///
/// # Panics
/// If `work` panics.
pub fn with_time_sharing<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if current().is_ok_and(|scheduling| scheduling.policy == Policy::Other) {
        return Ok(work());
    }
    thread::scope(|scope| {
        let builder = Builder::new().name("time-sharing".to_owned());
        let thread = builder.spawn_scoped(scope, || {
            set_current(Scheduling::OTHER).map_err(io::Error::other)?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::{Rights, SchedulingError, thread_id};

    /// Runs `test` on a thread for each scheduling that the process may have.
    fn with_each_scheduling(test: fn(Scheduling)) {
        for scheduling in [Scheduling::OTHER, Scheduling::fifo(1), Scheduling::rr(2)] {
            let thread = thread::spawn(move || match set_current(scheduling) {
                Ok(()) => test(scheduling),
                Err(error) => {
                    assert_eq!(error, SchedulingError::NotPermitted);
                    assert!(Rights::probe().max_fifo < Some(scheduling.priority));
                }
            });
            thread.join().expect("the test holds");
        }
    }

    #[test]
    fn work_has_time_sharing_and_its_caller_keeps_its_scheduling() {
        with_each_scheduling(|scheduling| {
            let caller = thread_id();
            let (during, worker) =
                with_time_sharing(|| (current().expect("it is known"), thread_id()))
                    .expect("a thread can be started");
            assert_eq!(during, Scheduling::OTHER, "called with {scheduling}");
            assert_eq!(worker == caller, scheduling == Scheduling::OTHER);
            assert_eq!(current().expect("it is known"), scheduling);
        });
    }

    #[test]
    fn a_panic_of_the_work_is_one_of_the_caller() {
        with_each_scheduling(|scheduling| {
            let panicked = catch_unwind(|| with_time_sharing(|| panic!("of the work")));
            let message = panicked.map(drop).expect_err("it panics");
            assert_eq!(message.downcast_ref(), Some(&"of the work"));
            assert_eq!(current().expect("it is known"), scheduling);
        });
    }
}
