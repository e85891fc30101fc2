//! A counter of copied octets.

use std::cell::Cell;

/// Returns the number of octets that the calling thread has copied within user space so far, in and
/// out of frames and arenas.
///
/// Contiguous copies are counted: octets, strings, slices of numbers and of plain data, message
/// parts that are joined, and moves of a growing frame. Not counted are values that are written one
/// by one (the members of a struct, the header of a message), characters that are converted, and
/// copies by the kernel.
///
/// Tests and measurements use the difference.
#[must_use]
pub fn octets_copied() -> u64 {
    COPIED.get()
}

/// Adds to the calling thread's number of copied octets. Callers report contiguous copies.
#[inline]
pub(crate) fn count(octets: usize) {
    COPIED.set(COPIED.get() + octets as u64);
}

thread_local! {
    static COPIED: Cell<u64> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arena, CdrError, Encoder, Endian, Frame};

    fn copied_by(act: impl FnOnce() -> Result<(), CdrError>) -> u64 {
        let before = octets_copied();
        act().unwrap();
        octets_copied() - before
    }

    #[test]
    fn what_is_copied_in_one_piece_is_counted_and_single_values_are_not() {
        let mut frame = Frame::new(256, 4096);
        let mut e = Encoder::new(&mut frame, Endian::NATIVE);
        assert_eq!(copied_by(|| e.write_u64(7)), 0);
        assert_eq!(copied_by(|| e.write_octets(&[1; 10])), 10);
        assert_eq!(copied_by(|| e.write_str("ACME")), 4);
        assert_eq!(copied_by(|| e.write_seq(&[0.5_f64; 3])), 24);
        let len = frame.len();
        assert_eq!(copied_by(|| frame.reserve(1000)), len as u64);
        let arena = Arena::new(64);
        assert_eq!(copied_by(|| arena.copy_slice(&[1_u16; 4]).map(drop)), 8);
        assert_eq!(copied_by(|| arena.alloc(1_u16).map(drop)), 0);
    }
}
