//! Memory shared with the kernel: the frames, and the rings.
#![allow(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use chronorb_rt::Mapping;
use rustix::net::xdp::XdpRingOffset;

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// The contiguous frames of an interface (a UMEM).
#[derive(Debug)]
pub(super) struct Frames(Mapping);

impl Frames {
    /// Allocates memory for frames of this total length, and locks it if the process may. The
    /// kernel pins registered frames anyway, but without the lock an access may cause a minor page
    /// fault.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let mapping = Mapping::anonymous(len)?;
        let _locked_if_it_may = mapping.lock();
        Ok(Self(mapping))
    }

    /// Returns the start address.
    pub(super) fn address(&self) -> u64 {
        self.0.start().addr().get() as u64
    }

    /// Returns the total length in octets.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns octets of a frame.
    ///
    /// # Safety
    /// The kernel has handed this frame over. Until the borrow ends, the frame is neither given
    /// back nor written to.
    ///
    /// # Panics
    /// If the range is outside of this memory.
    pub(super) unsafe fn read(&self, address: u64, len: usize) -> &[u8] {
        let start = self.at(address, len);
        // SAFETY: the range is within the mapping, which was zeroed at creation. The caller
        // guarantees the rest.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// Returns octets of a frame, or of several adjacent ones, for writing.
    ///
    /// # Safety
    /// The frames are free. Until the borrow ends, they have no other user and are not given to the
    /// kernel.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    #[allow(
        clippy::mut_from_ref,
        reason = "frames have one owner at a time, by the caller's word"
    )]
    pub(super) unsafe fn write(&self, address: u64, len: usize) -> &mut [u8] {
        let start = self.at(address, len);
        // SAFETY: as in `read`.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    fn at(&self, address: u64, len: usize) -> NonNull<u8> {
        let end = usize::try_from(address)
            .ok()
            .and_then(|it| it.checked_add(len));
        assert!(end.is_some_and(|end| end <= self.0.len()), "no such frame");
        // SAFETY: the address is within the mapping.
        unsafe { self.0.start().byte_add(address as usize) }
    }
}

/// A ring shared with the kernel.
#[derive(Debug)]
pub(super) struct Ring<T> {
    memory: Mapping,
    places: XdpRingOffset,
    len: u32,
    of: PhantomData<fn() -> T>,
}

/// The entry of a ring: atomics, for which every written value is valid.
///
/// # Safety
/// Every bit pattern is valid, and concurrent changes by others are allowed.
pub(super) unsafe trait Entry {}

// SAFETY: it is an atomic.
unsafe impl Entry for AtomicU64 {}
// SAFETY: it consists of atomics, without padding.
unsafe impl Entry for Descriptor {}

/// A piece of a frame, as the kernel describes it (`struct xdp_desc`).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Descriptor {
    address: AtomicU64,
    len: AtomicU32,
    options: AtomicU32,
}

/// The octets of a frame, or of a piece of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The start address.
    pub(super) address: u64,
    /// The number of octets.
    pub(super) len: u32,
    /// Whether the frame continues with the next piece.
    pub(super) goes_on: bool,
}

impl Descriptor {
    pub(super) fn load(&self) -> Piece {
        Piece {
            address: self.address.load(Ordering::Relaxed),
            len: self.len.load(Ordering::Relaxed),
            goes_on: self.options.load(Ordering::Relaxed) & libc::XDP_PKT_CONTD != 0,
        }
    }

    pub(super) fn store(&self, piece: Piece) {
        let options = if piece.goes_on {
            libc::XDP_PKT_CONTD
        } else {
            0
        };
        self.address.store(piece.address, Ordering::Relaxed);
        self.len.store(piece.len, Ordering::Relaxed);
        self.options.store(options, Ordering::Relaxed);
    }
}

impl<T: Entry> Ring<T> {
    /// Maps a ring of a socket with this many entries. `page` selects the ring; `places` gives the
    /// offsets of its parts.
    pub(super) fn map(
        socket: &OwnedFd,
        page: u64,
        places: XdpRingOffset,
        len: u32,
    ) -> io::Result<Self> {
        let octets = places.desc as usize + len as usize * size_of::<T>();
        let memory = Mapping::shared(socket, page, octets)?;
        let words = [Some(places.producer), Some(places.consumer), places.flags];
        let is_inside = |at: u64| at.is_multiple_of(4) && at as usize + 4 <= octets;
        if !places.desc.is_multiple_of(8) || !words.into_iter().flatten().all(is_inside) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            memory,
            places,
            len,
            of: PhantomData,
        })
    }

    /// Returns the position at which the next entry is put in. It wraps.
    #[inline]
    pub(super) fn producer(&self) -> &AtomicU32 {
        self.word(self.places.producer)
    }

    /// Returns the position at which the next entry is taken out. It wraps.
    #[inline]
    pub(super) fn consumer(&self) -> &AtomicU32 {
        self.word(self.places.consumer)
    }

    /// Returns whether the kernel needs a system call to notice new entries.
    #[inline]
    pub(super) fn wants_a_call(&self) -> bool {
        let flags = self.places.flags.map(|at| self.word(at));
        flags.is_none_or(|it| it.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0)
    }

    /// Returns the entries; their number is a power of two.
    #[inline]
    pub(super) fn entries(&self) -> &[T] {
        // SAFETY: `map` has mapped this many entries at this offset, which is a multiple of their
        // alignment. `Entry` allows every bit pattern.
        unsafe {
            let first = self.memory.start().byte_add(self.places.desc as usize);
            std::slice::from_raw_parts(first.cast().as_ptr(), self.len as usize)
        }
    }

    /// Returns the entry at a position.
    #[inline]
    pub(super) fn entry(&self, position: u32) -> &T {
        let entries = self.entries();
        &entries[position as usize & (entries.len() - 1)]
    }

    fn word(&self, at: u64) -> &AtomicU32 {
        // SAFETY: `map` has checked that the offset is aligned and within the mapping.
        unsafe { self.memory.start().byte_add(at as usize).cast().as_ref() }
    }
}
