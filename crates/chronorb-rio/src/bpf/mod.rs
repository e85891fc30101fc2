//! BPF programs as Rust values, in both dialects. The kernel runs them for each packet.
//!
//! * [`classic`]: one accumulator, one index and sixteen words of scratch memory. Sockets filter
//!   with it.
//! * [`extended`]: ten registers, maps and helpers. Interfaces classify with it.
//! * [`classifier`]: compiles the rules of an interface to programs of either dialect. Only the
//!   classic program is made from the rules. The extended one is its translation, so the two always
//!   agree.
//!
//! No external compiler is needed. This module makes no system call.

pub(crate) mod classic;
pub(crate) mod classifier;
pub(crate) mod extended;
mod labels;
mod translation;

use thiserror::Error;

pub(crate) use labels::Label;

/// An error of assembly.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum AssembleError {
    /// A jump goes to a label that was never bound.
    #[error("instruction {at} jumps to a label that is not bound")]
    Unbound {
        /// The instruction that jumps.
        at: usize,
    },
    /// A label is bound twice.
    #[error("a label is bound again at instruction {at}")]
    BoundTwice {
        /// The second binding.
        at: usize,
    },
    /// A jump is longer than its instruction can encode. In the classic dialect, which has no
    /// loops, a backward jump is an error too.
    #[error("instruction {at} jumps {distance} instructions, which is out of range")]
    OutOfRange {
        /// The instruction that jumps.
        at: usize,
        /// The number of instructions between; negative for a backward jump.
        distance: i64,
    },
    /// The program has more instructions than the kernel accepts.
    #[error("a program of {len} instructions is longer than the {max} that the kernel takes")]
    TooLong {
        /// The number of instructions.
        len: usize,
        /// The maximum number of instructions.
        max: usize,
    },
}
