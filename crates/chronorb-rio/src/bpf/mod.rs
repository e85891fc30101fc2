//! Programs that the kernel runs for each packet, written as Rust values: BPF in both of its
//! dialects.
//!
//! * [`classic`]: one accumulator, one index, sixteen words of scratch memory; what sockets filter
//!   with.
//! * [`extended`]: ten registers, maps, helpers; what interfaces classify with.
//! * [`classifier`]: from the rules of an interface to programs of either dialect. Only a classic
//!   one is made from rules, and the extended one is its translation, so that the two cannot
//!   disagree.
//!
//! No compiler is needed, and nothing here speaks to the kernel.

pub(crate) mod classic;
pub(crate) mod classifier;
pub(crate) mod extended;
mod labels;
mod translation;

use thiserror::Error;

pub(crate) use labels::Label;

/// Why a program cannot be assembled.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum AssembleError {
    /// A jump goes to a label that is nowhere.
    #[error("instruction {at} jumps to a label that is not bound")]
    Unbound {
        /// The instruction that jumps.
        at: usize,
    },
    /// A label is at two places.
    #[error("a label is bound again at instruction {at}")]
    BoundTwice {
        /// The second place.
        at: usize,
    },
    /// A jump goes further than its instruction can say, or back in the classic dialect, which has
    /// no loops.
    #[error("instruction {at} jumps {distance} instructions, which is out of range")]
    OutOfRange {
        /// The instruction that jumps.
        at: usize,
        /// How many instructions it would pass over; negative where it goes back.
        distance: i64,
    },
    /// It has more instructions than the kernel takes.
    #[error("a program of {len} instructions is longer than the {max} that the kernel takes")]
    TooLong {
        /// Its instructions.
        len: usize,
        /// How many there can be.
        max: usize,
    },
}
