//! Busy threads that keep processors from sleeping, or compete for them.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_rt::{Scheduling, SpawnError, Thread, ThreadBuilder};
use rustix::process::setpriority_process;

use crate::usage;

/// Busy threads, one on each of several processors, that run until this is dropped.
///
/// An idle processor goes to sleep, and waking it can take longer than a call, above all on a
/// virtual machine. Then a client with few calls would be slower than one with many, whatever their
/// priorities.
#[derive(Debug)]
pub(crate) struct Awake {
    is_over: Arc<AtomicBool>,
    /// The threads with their processors.
    threads: Vec<(usize, Thread<()>)>,
}

impl Awake {
    /// Starts threads of the lowest urgency, which run only while no other thread wants to.
    pub(crate) fn on(cpus: impl Iterator<Item = usize>) -> Result<Self, SpawnError> {
        Self::with_niceness(cpus, MOST_NICE)
    }

    /// Starts threads that compete with ordinary threads for these processors.
    pub(crate) fn competing_on(cpus: impl Iterator<Item = usize>) -> Result<Self, SpawnError> {
        Self::with_niceness(cpus, 0)
    }

    /// Returns the time that no other thread has wanted of a processor so far, if it is known.
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
                    // Without the right to this, other threads share with this one.
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
            // The thread cannot panic.
            let _ = thread.join();
        }
    }
}

const MOST_NICE: i32 = 19;
