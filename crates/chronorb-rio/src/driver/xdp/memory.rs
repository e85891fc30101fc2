//! Memory that is shared with the kernel: the frames, and the rings.
#![allow(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use chronorb_rt::Mapping;
use rustix::net::xdp::XdpRingOffset;

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// The frames of an interface (a UMEM), side by side.
#[derive(Debug)]
pub(super) struct Frames(Mapping);

impl Frames {
    /// Memory for frames of so many octets together. It is locked if the process may; the kernel
    /// keeps it in memory anyway once it has been told of it, but a page may have to be found
    /// again.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let mapping = Mapping::anonymous(len)?;
        let _locked_if_it_may = mapping.lock();
        Ok(Self(mapping))
    }

    /// Where they are.
    pub(super) fn address(&self) -> u64 {
        self.0.start().addr().get() as u64
    }

    /// Octets of all together.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Octets of a frame.
    ///
    /// # Safety
    /// The kernel has given this frame away, and nobody gives it back to it, or writes to it, as
    /// long as it is borrowed.
    ///
    /// # Panics
    /// If they are not in this memory.
    pub(super) unsafe fn read(&self, address: u64, len: usize) -> &[u8] {
        let start = self.at(address, len);
        // SAFETY: they lie in the mapping, which has been zeroed when it was made; the rest by the
        // caller's word.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// Octets of a frame, or of several side by side, to write to.
    ///
    /// # Safety
    /// They are free, and nobody else has them, or gives them to the kernel, as long as they are
    /// borrowed.
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
        // SAFETY: it lies in the mapping.
        unsafe { self.0.start().byte_add(address as usize) }
    }
}

/// A ring that is shared with the kernel.
#[derive(Debug)]
pub(super) struct Ring<T> {
    memory: Mapping,
    places: XdpRingOffset,
    len: u32,
    of: PhantomData<fn() -> T>,
}

/// What is in a ring: atomics, for which whatever is written is valid.
///
/// # Safety
/// All octets may be anything, and may be changed by others at any time.
pub(super) unsafe trait Entry {}

// SAFETY: it is an atomic.
unsafe impl Entry for AtomicU64 {}
// SAFETY: it consists of atomics, without padding.
unsafe impl Entry for Descriptor {}

/// Some octets of a frame (`struct xdp_desc`).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Descriptor {
    address: AtomicU64,
    len: AtomicU32,
    options: AtomicU32,
}

/// Octets that make up a frame, or a piece of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Where they begin.
    pub(super) address: u64,
    /// How many there are.
    pub(super) len: u32,
    /// Whether the frame goes on with the next one.
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
    /// Maps a ring of a socket, which was made with so many entries. `page` says which, `places`
    /// where things are in it.
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

    /// Where the next entry is put in, counted on and on.
    #[inline]
    pub(super) fn producer(&self) -> &AtomicU32 {
        self.word(self.places.producer)
    }

    /// Where the next entry is taken out, counted on and on.
    #[inline]
    pub(super) fn consumer(&self) -> &AtomicU32 {
        self.word(self.places.consumer)
    }

    /// Whether the kernel waits to be told of what is in it.
    #[inline]
    pub(super) fn wants_a_call(&self) -> bool {
        let flags = self.places.flags.map(|at| self.word(at));
        flags.is_none_or(|it| it.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0)
    }

    /// Its entries; a power of two.
    #[inline]
    pub(super) fn entries(&self) -> &[T] {
        // SAFETY: `map` has mapped as many behind this place, which is a multiple of their
        // alignment, and `Entry` says that they can be anything.
        unsafe {
            let first = self.memory.start().byte_add(self.places.desc as usize);
            std::slice::from_raw_parts(first.cast().as_ptr(), self.len as usize)
        }
    }

    /// The entry of a position.
    #[inline]
    pub(super) fn entry(&self, position: u32) -> &T {
        let entries = self.entries();
        &entries[position as usize & (entries.len() - 1)]
    }

    fn word(&self, at: u64) -> &AtomicU32 {
        // SAFETY: `map` has looked that it lies in the mapping, and where it has to.
        unsafe { self.memory.start().byte_add(at as usize).cast().as_ref() }
    }
}
