//! Threads that compute without end: to keep processors from sleeping, and to compete.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Scheduling, SpawnError, Thread, ThreadBuilder};
use rustix::process::setpriority_process;

use crate::usage;

/// Threads that do nothing but keep a processor each awake, with what nobody else wants of it, until this is dropped.
///
/// Where a processor sleeps as soon as nobody has anything to do, waking it up can take longer than a call does, above
/// all on a virtual machine. Then a client that calls seldom would be slower than one that calls often, whatever
/// their priorities.
#[derive(Debug)]
pub(crate) struct Awake {
    is_over: Arc<AtomicBool>,
    /// Each with its processor.
    threads: Vec<(usize, Thread<()>)>,
}

impl Awake {
    /// With what nobody else wants of these processors.
    pub(crate) fn on(cpus: impl Iterator<Item = usize>) -> Result<Self, SpawnError> {
        Self::with_niceness(cpus, MOST_NICE)
    }

    /// With as much as any other ordinary thread has of these processors.
    pub(crate) fn competing_on(cpus: impl Iterator<Item = usize>) -> Result<Self, SpawnError> {
        Self::with_niceness(cpus, 0)
    }

    /// How long nobody else has wanted this processor by now; nothing where that is not known.
    pub(crate) fn unwanted(&self, cpu: usize) -> Option<Duration> {
        let (_, thread) = self.threads.iter().find(|(of, _)| *of == cpu)?;
        usage::of_own_thread(thread.tid())
    }

    fn with_niceness(cpus: impl Iterator<Item = usize>, niceness: i32) -> Result<Self, SpawnError> {
        let mut this = Self {
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        for cpu in cpus {
            let is_over = this.is_over.clone();
            let thread = ThreadBuilder::new("awake")
                .scheduling(Scheduling::OTHER)
                .affinity(&[cpu])
                .spawn(move || {
                    // Where it is refused, others share with this thread.
                    let _ = setpriority_process(None, niceness);
                    while !is_over.load(Ordering::Relaxed) {
                        spin_loop();
                    }
                });
            this.threads.push((cpu, thread?));
        }
        Ok(this)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for (_, thread) in self.threads.drain(..) {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

const MOST_NICE: i32 = 19;
