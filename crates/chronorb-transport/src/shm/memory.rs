//! The memory of a connection, and all that is unsafe about it: a file without a name, mapped into
//! both processes.
//!
//! The first page holds the [`Words`] of both directions, the two rings follow. The file is sealed,
//! so that it keeps its size, and, once both sides have it, its pages. Before it has both seals
//! neither side takes anything out: whatever the other process does, no access can fail then. The
//! other process may change the octets of a ring at any time. So they are never referred to, and
//! copied in and out by atomics, or many at a time by an instruction in assembly.
#![allow(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::os::fd::OwnedFd;

use chronorb_rt::Mapping;
use rustix::fs::{self, MemfdFlags, SealFlags};
use rustix::io::Errno;

use super::ring::{Ring, Words};

/// The mapped memory of a connection. `Producer` and `Consumer` copy in and out, one of each at a
/// time; copies at the wrong time give wrong octets, which the other process can bring about
/// anyway.
#[derive(Debug)]
pub(super) struct Memory {
    memory: Mapping,
    /// The size of each ring in octets, a power of two.
    ring: usize,
}

/// The two directions, as seen from the side that created the memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RingDirection {
    There = 0,
    Back = 1,
}

impl Memory {
    /// Creates memory for two empty rings, and its file, which is sent to the peer.
    pub(super) fn create(ring: usize) -> Result<(Self, OwnedFd), Errno> {
        let file = create_file(len(ring))?;
        let memory = Self::map(&file, ring)?;
        for direction in [RingDirection::There, RingDirection::Back] {
            memory.ring(direction).words.begin();
        }
        Ok((memory, file))
    }

    /// The memory that the other process has made.
    ///
    /// # Errors
    /// The file was not made by [`create`](Self::create); or there is no memory.
    pub(super) fn adopt(file: &OwnedFd, ring: usize) -> Result<Self, Errno> {
        check_file(file, len(ring), SIZE_SEALS)?;
        let memory = Self::map(file, ring)?;
        // From now on no hole can be made in it either.
        fs::fcntl_add_seals(file, PAGE_SEALS)?;
        memory.memory.populate()?;
        Ok(memory)
    }

    /// Adopts the memory as [`adopt`](Self::adopt) does, for a test peer that violates the
    /// protocol.
    #[cfg(test)]
    pub(super) fn adopt_without_seals(file: &OwnedFd, ring: usize) -> Self {
        Self::map(file, ring).expect("it has the right size")
    }

    /// Whether the other process has [adopted](Self::adopt) the memory, whose file this is, and
    /// sealed it; no page of it is missing then.
    pub(super) fn is_sealed(&self, file: &OwnedFd) -> bool {
        let seals = fs::fcntl_get_seals(file);
        seals.is_ok_and(|seals| seals.contains(PAGE_SEALS)) && self.memory.populate().is_ok()
    }

    /// Maps a file of the right size.
    fn map(file: &OwnedFd, ring: usize) -> Result<Self, Errno> {
        let memory = Mapping::shared(file, 0, len(ring))?;
        memory.populate()?;
        Ok(Self { memory, ring })
    }

    /// One of its rings.
    #[inline]
    pub(super) fn ring(&self, direction: RingDirection) -> Ring<'_> {
        let (words, octets) = match direction {
            RingDirection::There => (0, WORDS_LEN),
            RingDirection::Back => (size_of::<Words>(), WORDS_LEN + self.ring),
        };
        // SAFETY: both words lie in the mapping's first page, at a multiple of their alignment, and
        // consist of atomics, for which all that the other process can write is valid. They live as
        // long as `self`.
        let words = unsafe { self.memory.start().byte_add(words).cast::<Words>().as_ref() };
        // SAFETY: the ring lies in the mapping, whose size is `len(self.ring)`.
        let octets = unsafe {
            let start = self.memory.start().byte_add(octets);
            Octets::of_mapping(start, self.ring)
        };
        Ring { words, octets }
    }
}

/// Creates a file in memory that keeps its size.
pub(super) fn create_file(len: usize) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match fs::memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        // Before Linux 6.3.
        Err(Errno::INVAL) => fs::memfd_create(NAME, flags),
        made => made,
    }?;
    fs::ftruncate(&file, len as u64)?;
    fs::fcntl_add_seals(&file, SIZE_SEALS)?;
    Ok(file)
}

/// Checks that another process has made a file in memory with this size and at least these seals.
pub(super) fn check_file(file: &OwnedFd, len: usize, seals: SealFlags) -> Result<(), Errno> {
    // First this, which no file system answers itself: a file in memory has seals, no other does.
    if !fs::fcntl_get_seals(file)?.contains(seals) {
        return Err(Errno::PERM);
    }
    let is_ordinary = fs::fstatfs(file)?.f_type as u64 == TMPFS;
    if !is_ordinary || fs::fstat(file)?.st_size as u64 != len as u64 {
        return Err(Errno::INVAL);
    }
    Ok(())
}

/// Checks that all of a file in memory has pages.
pub(super) fn check_pages(file: &OwnedFd, len: usize) -> Result<(), Errno> {
    // The unit is that of POSIX, whatever the size of a page.
    let octets = fs::fstat(file)?.st_blocks as u64 * 512;
    if octets < len as u64 {
        return Err(Errno::INVAL);
    }
    Ok(())
}

/// The octets of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Octets<'m> {
    start: NonNull<u8>,
    /// A power of two.
    len: usize,
    of_memory: PhantomData<&'m Mapping>,
}

impl<'m> Octets<'m> {
    /// The octets of a mapping from an address on; `len` is a power of two.
    ///
    /// # Safety
    /// They lie in a mapping that lives for `'m`, and are reached by atomics only. It can be
    /// written to, unless [`write`](Self::write) is never called.
    pub(super) const unsafe fn of_mapping(start: NonNull<u8>, len: usize) -> Self {
        Self {
            start,
            len,
            of_memory: PhantomData,
        }
    }
}

impl Octets<'_> {
    #[inline]
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// Copies the octets at a position into `room`, which is no longer than the ring.
    #[inline]
    pub(super) fn read(self, position: u32, room: &mut [u8]) {
        let (first, rest) = room.split_at_mut(self.before_end(position, room.len()));
        assert!(rest.len() <= self.len);
        // SAFETY: `before_end` keeps the first part within the ring, and the assertion the rest.
        // Own memory and the mapping do not overlap.
        unsafe {
            copy_out(self.start.add(self.offset(position)).as_ptr(), first);
            copy_out(self.start.as_ptr(), rest);
        }
    }

    /// Copies octets to a position; they are no longer than the ring.
    #[inline]
    pub(super) fn write(self, position: u32, octets: &[u8]) {
        let (first, rest) = octets.split_at(self.before_end(position, octets.len()));
        assert!(rest.len() <= self.len);
        // SAFETY: as in `read`.
        unsafe {
            copy_in(self.start.add(self.offset(position)).as_ptr(), first);
            copy_in(self.start.as_ptr(), rest);
        }
    }

    #[inline]
    fn offset(self, position: u32) -> usize {
        position as usize & (self.len - 1)
    }

    /// Returns how many of `n` octets at a position are before the end of the ring.
    #[inline]
    fn before_end(self, position: u32, n: usize) -> usize {
        n.min(self.len - self.offset(position))
    }
}

/// Runs `$step` for each unit of a range of shared memory that ends at `$end` and has as many
/// octets as `$rest`, with the unit's atomic type and its value's type. A unit is the greatest to
/// which its address is aligned and which the range still holds. Each step takes its octets off
/// `$rest`.
macro_rules! by_units {
    ($end:expr, $rest:expr, $step:ident) => {
        let start = $end.addr() - $rest.len();
        if start & 1 != 0 && !$rest.is_empty() {
            $step!(AtomicU8, u8);
        }
        if start & 2 != 0 && $rest.len() >= 2 {
            $step!(AtomicU16, u16);
        }
        if start & 4 != 0 && $rest.len() >= 4 {
            $step!(AtomicU32, u32);
        }
        while $rest.len() >= 64 {
            for _ in 0..8 {
                $step!(AtomicU64, u64);
            }
        }
        while $rest.len() >= 8 {
            $step!(AtomicU64, u64);
        }
        if $rest.len() >= 4 {
            $step!(AtomicU32, u32);
        }
        if $rest.len() >= 2 {
            $step!(AtomicU16, u16);
        }
        if !$rest.is_empty() {
            $step!(AtomicU8, u8);
        }
        debug_assert!($rest.is_empty());
    };
}

/// Copies out of shared memory by relaxed atomics, since the other process may write to it at the
/// same time.
///
/// # Safety
/// So many octets at `from` are mapped, and only reached by atomics in this process.
#[inline]
unsafe fn copy_out(from: *mut u8, mut to: &mut [u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if to.len() >= BULK {
        // SAFETY: the caller guarantees that `from` is mapped; `to` is this thread's own.
        return unsafe { copy_bulk(from, to.as_mut_ptr(), to.len()) };
    }
    // SAFETY: the caller guarantees that it is mapped.
    let end = unsafe { from.add(to.len()) };
    macro_rules! load {
        ($Unit:ident, $Value:ident) => {
            // SAFETY: between `from` and `end`, of which `to` is the rest; `by_units` checks length
            // and alignment.
            let shared = unsafe { $Unit::from_ptr(end.sub(to.len()).cast()) };
            let (unit, rest) = mem::take(&mut to).split_at_mut(size_of::<$Value>());
            unit.copy_from_slice(&shared.load(Ordering::Relaxed).to_ne_bytes());
            to = rest;
        };
    }
    by_units!(end, to, load);
}

/// Copies into shared memory, as [`copy_out`] copies out.
///
/// # Safety
/// As for [`copy_out`].
#[inline]
unsafe fn copy_in(to: *mut u8, mut from: &[u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if from.len() >= BULK {
        // SAFETY: the caller guarantees that `to` is mapped; `from` is not written meanwhile.
        return unsafe { copy_bulk(from.as_ptr(), to, from.len()) };
    }
    // SAFETY: the caller guarantees that it is mapped.
    let end = unsafe { to.add(from.len()) };
    macro_rules! store {
        ($Unit:ident, $Value:ident) => {
            // SAFETY: as in `copy_out`.
            let shared = unsafe { $Unit::from_ptr(end.sub(from.len()).cast()) };
            let Some((unit, rest)) = from.split_first_chunk() else {
                unreachable!("`by_units` looks at the length");
            };
            shared.store($Value::from_ne_bytes(*unit), Ordering::Relaxed);
            from = rest;
        };
    }
    by_units!(end, from, store);
}

/// Copies many octets by one instruction, which moves whole lines where atomics move words. The
/// compiler knows nothing of the memory that assembly accesses, so an access of the other process
/// at the same time is no data race of this program; the octets are then a mix.
///
/// # Safety
/// `from` is readable and `to` writable for `octets` bytes, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy_bulk(from: *const u8, to: *mut u8, octets: usize) {
    // SAFETY: the caller guarantees both ranges. The direction flag is clear on entry of any
    // assembly, and the instruction changes the three registers only.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") octets => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// The number of octets from which one instruction copies faster than words do: a call with 1 KiB
/// took 0.4 µs more by it, one with 64 KiB 17 µs less.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const BULK: usize = 4 << 10;

/// Octets of the whole memory.
const fn len(ring: usize) -> usize {
    WORDS_LEN + 2 * ring
}

/// The name in the list of a process's mappings.
const NAME: &str = "chronorb";
/// The words have a page.
const WORDS_LEN: usize = 4096;
const _: () = assert!(2 * size_of::<Words>() <= WORDS_LEN);
/// The file can neither shrink nor grow, because reading behind the end of a mapped file kills the
/// process.
pub(super) const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// The pages cannot be removed, and no seal can be added. Existing mappings stay writable.
pub(super) const PAGE_SEALS: SealFlags = SealFlags::FUTURE_WRITE.union(SealFlags::SEAL);
/// `TMPFS_MAGIC`; huge pages, which may run out, are of another file system.
const TMPFS: u64 = 0x0102_1994;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_come_out_as_they_went_in_at_any_position_and_length() {
        const RING: usize = 16_384;
        let (memory, _file) = Memory::create(RING).expect("there is memory");
        let octets = memory.ring(RingDirection::There).octets;
        let written: [u8; RING] = core::array::from_fn(|n| (n % 251) as u8);
        for position in [0, 1, 7, 4095, 12_000, 16_383] {
            for len in [0, 1, 8, 65, 4095, 4096, 4097, 9000, 16_384] {
                octets.write(position, &[0xff; RING]);
                octets.write(position, &written[..len]);
                let mut read = [0; RING];
                octets.read(position, &mut read);
                assert_eq!(read[..len], written[..len], "{position} {len}");
                assert!(read[len..].iter().all(|octet| *octet == 0xff));
            }
        }
    }
}
