//! On which CPU a host of the test network takes in packets that a program of its interface gets first.

use std::io;

use chronorb_rt::{Scheduling, set_scheduling_of_process};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use super::TestHost;
use crate::driver::Link;
use crate::kernel::napi;

/// That a thread of the kernel takes packets in for a host, until this is dropped: [`TestHost::take_in`].
#[derive(Debug)]
pub struct Reception<'a> {
    host: &'a TestHost,
    link: Link,
    threads: usize,
}

impl<'a> Reception<'a> {
    /// How many threads there are. None where nothing but the kernel's own network has the packets, since those go to the CPU
    /// of [`Layout::cpus`](super::Layout::cpus) by themselves.
    pub fn threads(&self) -> usize {
        self.threads
    }

    pub(super) fn begin(
        host: &'a TestHost,
        link: Link,
        cpu: usize,
        scheduling: Scheduling,
    ) -> io::Result<Self> {
        let threads = host.enter(|| napi::start(&link))?;
        let this = Self {
            host,
            link,
            threads: threads.len(),
        };
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        for thread in threads {
            let process = i32::try_from(thread).ok().and_then(Pid::from_raw);
            sched_setaffinity(process, &cpus)?;
            set_scheduling_of_process(thread, scheduling).map_err(io::Error::other)?;
        }
        Ok(this)
    }
}

impl Drop for Reception<'_> {
    fn drop(&mut self) {
        let Link { name, index, .. } = &self.link;
        // An interface that has gone needs nothing.
        let _ = self.host.enter(|| napi::restore_threaded(name, *index, 0));
    }
}
