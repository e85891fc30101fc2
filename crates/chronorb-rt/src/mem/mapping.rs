//! Mapped memory.
#![allow(unsafe_code)]

use core::ptr::{self, NonNull};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MlockFlags, ProtFlags, madvise, mlock, mlock_with, mmap, mmap_anonymous,
    munmap,
};

/// Memory that is mapped into the process for reading and writing, and unmapped on drop.
///
/// It is a range of addresses and gives out no references, because other processes and the kernel
/// may change shared memory at any time. Its start is aligned to a page.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    /// 0 once it was leaked.
    len: usize,
}

// SAFETY: a mapping is not bound to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; the owner of the addresses decides about accesses to them.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` zero bytes for this process alone, all of which have memory.
    ///
    /// # Errors
    /// There is no memory; `INVAL` for a length of 0.
    pub fn anonymous(len: usize) -> Result<Self, Errno> {
        Self::private(len, MapFlags::POPULATE)
    }

    /// Maps `len` zero bytes for this process alone, which get memory when they are first used.
    pub(crate) fn reserve(len: usize) -> Result<Self, Errno> {
        Self::private(len, MapFlags::NORESERVE)
    }

    fn private(len: usize, flags: MapFlags) -> Result<Self, Errno> {
        let flags = flags | MapFlags::PRIVATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing else.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, READ_WRITE, flags) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, len })
    }

    /// Maps `len` bytes of a file or socket from `offset` on, shared with all processes that map
    /// it. The bytes within the file get memory at once, as far as it is available.
    ///
    /// # Errors
    /// There is no memory; the descriptor cannot be mapped to read and write, or not at `offset`.
    pub fn shared(file: impl AsFd, offset: u64, len: usize) -> Result<Self, Errno> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        Self::of_file(file, offset, len, READ_WRITE, flags)
    }

    /// Maps `len` bytes of a file as [`shared`](Self::shared) does, for reading alone: a write
    /// ends the process. A byte takes memory of this process only when it is read first.
    ///
    /// # Errors
    /// There is no memory; the descriptor cannot be mapped to read, or not at `offset`.
    pub fn shared_to_read(file: impl AsFd, offset: u64, len: usize) -> Result<Self, Errno> {
        Self::of_file(file, offset, len, ProtFlags::READ, MapFlags::SHARED)
    }

    fn of_file(
        file: impl AsFd,
        offset: u64,
        len: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing else.
        let start = unsafe { mmap(ptr::null_mut(), len, access, flags, file, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, len })
    }

    /// Gives memory to every page, so that no access waits for it.
    ///
    /// # Errors
    /// There is no memory, or a page is not in the file.
    pub fn populate(&self) -> Result<(), Errno> {
        // SAFETY: the range is this mapping, whose content stays as it is.
        unsafe {
            madvise(
                self.start.as_ptr().cast(),
                self.len,
                Advice::LinuxPopulateWrite,
            )
        }
    }

    /// Locks the memory into RAM.
    ///
    /// # Errors
    /// The process may not lock as much.
    pub fn lock(&self) -> Result<(), Errno> {
        // SAFETY: the range is this mapping.
        unsafe { mlock(self.start.as_ptr().cast(), self.len) }
    }

    /// As [`lock`](Self::lock), for pages as they get memory.
    pub(crate) fn lock_on_fault(&self) -> Result<(), Errno> {
        // SAFETY: the range is this mapping.
        unsafe { mlock_with(self.start.as_ptr().cast(), self.len, MlockFlags::ONFAULT) }
    }

    /// Returns the first address.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the number of bytes; 0 after [`leak`](Self::leak).
    #[inline]
    #[must_use]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a mapping is made of one byte at least"
    )]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Keeps the memory mapped until the process ends, because the kernel or a device may still
    /// write to it.
    pub const fn leak(&mut self) {
        self.len = 0;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the range is this mapping, and borrows of it borrow `self`.
            let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        }
    }
}

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU64, Ordering};
    use std::fs;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn word(mapping: &Mapping) -> &AtomicU64 {
        // SAFETY: the mapping is longer than a word, aligned, and reached by atomics alone.
        unsafe { mapping.start().cast().as_ref() }
    }

    /// Whether the process has a mapping of the file.
    fn is_mapped(name: &str) -> bool {
        fs::read_to_string("/proc/self/maps")
            .unwrap()
            .contains(name)
    }

    #[test]
    fn shared_memory_is_seen_by_all_and_unmapped_at_the_end() {
        let file = memfd_create("mapping-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 8192).unwrap();
        let (one, other) = (
            Mapping::shared(&file, 0, 8192).unwrap(),
            Mapping::shared(&file, 4096, 4096).unwrap(),
        );
        assert_eq!(one.populate(), Ok(()));
        word(&other).store(7, Ordering::Relaxed);
        // SAFETY: it lies in the mapping.
        let second = unsafe { one.start().byte_add(4096).cast::<AtomicU64>().as_ref() };
        assert_eq!(second.load(Ordering::Relaxed), 7);
        assert!(is_mapped("mapping-test"));
        drop((one, other));
        assert!(!is_mapped("mapping-test"));
    }

    #[test]
    fn memory_of_its_own_is_zero_and_is_kept_if_it_is_leaked() {
        let mut mapping = Mapping::anonymous(4096).unwrap();
        assert_eq!(word(&mapping).load(Ordering::Relaxed), 0);
        let start = mapping.start().cast::<AtomicU64>();
        mapping.leak();
        drop(mapping);
        // SAFETY: it is mapped for good.
        let word = unsafe { start.as_ref() };
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn impossible_mappings_are_refused() {
        assert_eq!(Mapping::anonymous(0).unwrap_err(), Errno::INVAL);
        assert!(Mapping::anonymous(usize::MAX).is_err());
        let file = fs::File::open("/proc/self/exe").unwrap();
        assert_eq!(Mapping::shared(&file, 0, 4096).unwrap_err(), Errno::ACCESS);
    }
}
