//! Memory locking and page faults.

use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};

use crate::mem::mapping::Mapping;
use crate::sys;

/// Locks all present and future memory of the process into RAM (`mlockall`), so that no page of it
/// is ever fetched again.
///
/// From then on every mapping is filled when it is made: stacks of threads cost their whole size.
///
/// # Errors
/// See [`MemoryLockError`].
pub fn lock_all() -> Result<(), MemoryLockError> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|error| match error {
        Errno::PERM => MemoryLockError::NotPermitted,
        Errno::NOMEM => MemoryLockError::LimitExceeded,
        other => MemoryLockError::Os(other.raw_os_error()),
    })
}

/// Returns whether the kernel lets the process lock `size` more bytes. It tests with addresses
/// only, without memory.
pub(crate) fn can_lock(size: usize) -> Result<bool, Errno> {
    Ok(Mapping::reserve(size)?.lock_on_fault().is_ok())
}

/// Makes glibc return freed blocks of 1 MiB and more to the system.
///
/// glibc maps large blocks and unmaps them, but each freed block raises the threshold for mapping,
/// up to 32 MiB. Blocks below the threshold come from heaps, where one small block behind them
/// keeps all of their memory in the process. This function fixes the thresholds for the whole
/// process: blocks of 1 MiB and more are always mapped, and 2 MiB of free memory are kept at the
/// end of a heap, the values of glibc after it has freed one block of 1 MiB. Settings of the
/// environment (`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_`, `GLIBC_TUNABLES`) have
/// precedence.
pub fn return_great_blocks() {
    #[cfg(target_env = "gnu")]
    {
        const SETTINGS: [&str; 3] = [
            "MALLOC_MMAP_THRESHOLD_",
            "MALLOC_TRIM_THRESHOLD_",
            "GLIBC_TUNABLES",
        ];
        if SETTINGS.iter().any(|name| std::env::var_os(name).is_some()) {
            return;
        }
        sys::set_allocator_thresholds(1 << 20, 2 << 20);
    }
}

/// The page faults of the calling thread so far: minor ones (served from memory) and major ones
/// (served from a disk). A thread of a lane shows none between two requests.
#[must_use]
pub fn page_faults() -> (u64, u64) {
    let usage = Usage::of_thread();
    (usage.minor_faults, usage.major_faults)
}

/// The kernel's counts of a thread, or of all threads of the process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults served from a disk.
    pub major_faults: u64,
    /// The number of times that a thread gave up its processor to wait.
    pub voluntary_switches: u64,
    /// The number of times that a processor was taken away to run another thread.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Returns the counts of the calling thread.
    #[must_use]
    pub fn of_thread() -> Self {
        Self::of(&sys::thread_usage())
    }

    /// Returns the counts of all present and former threads of the process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::of(&sys::process_usage())
    }

    fn of(usage: &libc::rusage) -> Self {
        Self {
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

impl core::ops::Sub for Usage {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
        }
    }
}

/// The reason why the memory of the process could not be locked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MemoryLockError {
    /// The process may not lock memory: no `CAP_IPC_LOCK`, and a limit of zero.
    #[error(
        "not permitted to lock memory; grant CAP_IPC_LOCK (setcap cap_ipc_lock=ep, or \
         AmbientCapabilities= of the service) or a memlock limit (LimitMEMLOCK=infinity, \
         limits.d, ulimit -l)"
    )]
    NotPermitted,
    /// The process is larger than its `RLIMIT_MEMLOCK`, and has no `CAP_IPC_LOCK`.
    #[error(
        "the process is larger than its limit of locked memory; raise it (LimitMEMLOCK=infinity, \
         memlock in limits.d, ulimit -l) or grant CAP_IPC_LOCK"
    )]
    LimitExceeded,
    /// The system gave another error number.
    #[error("memory could not be locked: system error {0}")]
    Os(i32),
}

#[cfg(test)]
mod tests {
    use core::hint::black_box;

    use super::*;

    #[test]
    fn first_touch_of_fresh_memory_is_counted() {
        let (before, _) = page_faults();
        let mut pages = vec![0_u8; 64 << 20];
        for page in pages.chunks_mut(4096) {
            page[0] = 1;
        }
        black_box(&pages);
        let (after, _) = page_faults();
        assert!(after > before);
    }
}
