//! Words that this process writes and any other may read without a request.
#![allow(unsafe_code)]

use core::ffi::CStr;
use core::ops::Deref;
use core::slice;
use core::sync::atomic::AtomicU64;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstatfs, ftruncate, memfd_create,
};
use rustix::io::Errno;

use crate::mem::mapping::Mapping;

/// Words in an anonymous file (`memfd_create`). Its name is visible among the descriptors of the
/// process: `/proc/PID/fd/N` is a link to `/memfd:NAME (deleted)`. It ends with the process.
///
/// The words are zero at first. No other process can change them; the size of the file is sealed. A
/// reader reads the file, in which eight octets at a multiple of eight are an untorn word on 64-bit
/// machines. A 32-bit kernel copies the halves of a word one after the other.
#[derive(Debug)]
pub struct PublishedWords {
    memory: Mapping,
    /// The file that other processes open.
    file: OwnedFd,
}

impl PublishedWords {
    /// Makes `len` zero words, at least one, all of which have memory.
    ///
    /// # Errors
    /// There is no memory or no descriptor left; `InvalidInput` for a length that no memory has.
    pub fn create(name: &CStr, len: usize) -> io::Result<Self> {
        let octets = len
            .checked_mul(size_of::<AtomicU64>())
            .filter(|octets| (1..=isize::MAX as usize).contains(octets))
            .ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
            // Before Linux 6.3.
            Err(Errno::INVAL) => memfd_create(name, flags),
            made => made,
        }?;
        ftruncate(&file, octets as u64)?;
        let words = Self {
            memory: Mapping::shared(&file, 0, octets)?,
            file,
        };
        // From now on no other process can map it for writing, either.
        fcntl_add_seals(
            &words.file,
            SEALS | SealFlags::FUTURE_WRITE | SealFlags::SEAL,
        )?;
        words.memory.populate()?;
        Ok(words)
    }

    /// Returns whether a file is in memory and keeps its size, like that of published words, so
    /// that reading it never blocks.
    pub fn is_published(file: &File) -> bool {
        // First this, which no file system answers itself: a file in memory has seals, no other
        // does.
        fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALS))
            && fstatfs(file).is_ok_and(|system| system.f_type as u64 == TMPFS)
    }
}

impl Deref for PublishedWords {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        let len = self.memory.len() / size_of::<AtomicU64>();
        // SAFETY: the mapping has as many words, all of which were zero at first, and lives as long
        // as `self`; it is as aligned as pages are.
        unsafe { slice::from_raw_parts(self.memory.start().as_ptr().cast(), len) }
    }
}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// The magic number of tmpfs, statfs(2). The file system of huge pages has another one.
const TMPFS: u64 = 0x0102_1994;

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;
    use std::fs::{self, OpenOptions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;
    use std::process;

    use super::*;

    #[test]
    fn what_is_written_is_read_by_whoever_opens_the_descriptor() {
        let words = PublishedWords::create(c"published-test", 1000).unwrap();
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[999].store(77, Ordering::Relaxed);
        let path = path(&words);
        let name = fs::read_link(&path).unwrap();
        assert_eq!(name.to_str(), Some("/memfd:published-test (deleted)"));
        let file = File::open(&path).unwrap();
        assert!(PublishedWords::is_published(&file));
        let mut last = [0; 8];
        file.read_exact_at(&mut last, 999 * 8).unwrap();
        assert_eq!(u64::from_ne_bytes(last), 77);
    }

    #[test]
    fn nobody_else_writes_or_cuts_it() {
        let words = PublishedWords::create(c"published-test", 8).unwrap();
        let file = OpenOptions::new().write(true).open(path(&words)).unwrap();
        assert!(file.write_at(&[1], 0).is_err());
        assert!(file.set_len(0).is_err());
        assert!(file.set_len(1 << 20).is_err());
        assert_eq!(words[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn other_files_are_not_taken_for_published_ones() {
        assert!(!PublishedWords::is_published(
            &File::open("/proc/self/exe").unwrap()
        ));
        let file = memfd_create("published-test", MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(!PublishedWords::is_published(&file.into()));
    }

    #[test]
    fn a_length_that_no_memory_has_is_refused() {
        for len in [0, usize::MAX, usize::MAX / 8] {
            let error = PublishedWords::create(c"published-test", len).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{len}");
        }
    }

    fn path(words: &PublishedWords) -> PathBuf {
        let descriptor = words.file.as_raw_fd();
        format!("/proc/{}/fd/{descriptor}", process::id()).into()
    }
}
