//! The memory of a ring with one publisher, and all that is unsafe about it.
//!
//! The file of the ring is sealed against new mappings that can be written to, so other processes
//! can only read it. They write to one word, the note that threads sleep, in a file of its own.
//!
//! No seal keeps the page of the note and lets other processes write to it. A process that removes
//! the page makes it empty, and the next access costs a page fault and one page of memory. Nothing
//! but the note is lost, which any process may remove anyway.
#![allow(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::slice;
use core::sync::atomic::AtomicU32;
use std::os::fd::OwnedFd;

use chronorb_rt::Mapping;
use rustix::fs;
use rustix::io::Errno;

use super::ring::{FanOutRing, FanOutWords, Slot};
use super::{FanOutOptions, memory_of_peers as peers};

pub(super) use peers::Octets;

/// The mapped memory of a ring.
#[derive(Debug)]
pub(super) struct FanOutMemory {
    ring: Mapping,
    note: Mapping,
    options: FanOutOptions,
}

/// The files of a ring.
#[derive(Debug)]
pub(super) struct FanOutFiles {
    pub(super) ring: OwnedFd,
    pub(super) note: OwnedFd,
}

impl FanOutMemory {
    /// Creates the memory of an empty ring, which only this process can write to.
    pub(super) fn create(options: FanOutOptions) -> Result<(Self, FanOutFiles), Errno> {
        let files = FanOutFiles {
            ring: peers::create_file(len(options))?,
            note: peers::create_file(NOTE_LEN)?,
        };
        let memory = Self {
            ring: Mapping::shared(&files.ring, 0, len(options))?,
            note: Mapping::shared(&files.note, 0, NOTE_LEN)?,
            options,
        };
        memory.ring.populate()?;
        memory.note.populate()?;
        fs::fcntl_add_seals(&files.ring, peers::PAGE_SEALS)?;
        Ok((memory, files))
    }

    /// Maps the memory that another process has made.
    ///
    /// # Errors
    /// The files were not made by [`create`](Self::create); or there is no memory.
    pub(super) fn adopt(files: &FanOutFiles, options: FanOutOptions) -> Result<Self, Errno> {
        // With these seals no page can be removed, so no access fails.
        let seals = peers::SIZE_SEALS | peers::PAGE_SEALS;
        peers::check_file(&files.ring, len(options), seals)?;
        peers::check_file(&files.note, NOTE_LEN, peers::SIZE_SEALS)?;
        // The kernel would fill a hole from the memory of the reader. There can be none later.
        peers::check_pages(&files.ring, len(options))?;
        let memory = Self {
            ring: Mapping::shared_to_read(&files.ring, 0, len(options))?,
            note: Mapping::shared(&files.note, 0, NOTE_LEN)?,
            options,
        };
        memory.note.populate()?;
        Ok(memory)
    }

    pub(super) fn options(&self) -> FanOutOptions {
        self.options
    }

    /// The note that threads sleep.
    #[inline]
    pub(super) fn note(&self) -> &AtomicU32 {
        // SAFETY: it is at the beginning of a mapping that can be written to, and lives as long as
        // `self`; other processes can only change its value.
        unsafe { self.note.start().cast().as_ref() }
    }

    #[inline]
    pub(super) fn ring(&self) -> FanOutRing<'_> {
        let (slots, octets) = (self.options.slots as usize, octets_at(self.options));
        let start = self.ring.start();
        // SAFETY: the words are at the beginning of the mapping, the slots after the first page,
        // and the octets after them; `len` is the sum. All are aligned, and consist of atomics, for
        // which every value is valid. They live as long as `self`. A process that maps them for
        // reading alone has no `Publisher`, and reads them by relaxed loads.
        unsafe {
            FanOutRing {
                words: start.cast::<FanOutWords>().as_ref(),
                slots: slice::from_raw_parts(start.byte_add(PAGE).cast::<Slot>().as_ptr(), slots),
                octets: Octets::of_mapping(
                    start.byte_add(octets),
                    slots * self.options.octets as usize,
                ),
            }
        }
    }
}

/// The offset of the octets.
const fn octets_at(options: FanOutOptions) -> usize {
    PAGE + (options.slots as usize * size_of::<Slot>()).next_multiple_of(PAGE)
}

/// The octets of the whole memory.
pub(super) const fn len(options: FanOutOptions) -> usize {
    octets_at(options) + options.slots as usize * options.octets as usize
}

const PAGE: usize = 4096;
const NOTE_LEN: usize = PAGE;
const _: () = assert!(size_of::<FanOutWords>() <= PAGE);
