//! The bound of the stack for everything that recurses over received data.
//!
//! The sender of a message chooses how deep its values are nested, and a level may take kilobytes
//! of the stack. Therefore each level compares the address of the stack with a limit.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use crate::CdrError;

/// The lowest address of a stack that decoding and encoding may use.
///
/// This crate knows no threads. A crate that does tells it the limit of the calling thread by
/// [`set_stack_limits`]; otherwise 256 KiB are assumed to be left at the first nested value of a
/// message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StackLimit(NonZeroUsize);

impl StackLimit {
    /// The limit of a stack whose lowest usable address is `lowest`.
    #[must_use]
    pub fn at(lowest: usize) -> Self {
        Self(NonZeroUsize::new(lowest).unwrap_or(NonZeroUsize::MIN))
    }

    /// The limit of the calling thread's stack.
    #[inline]
    pub(crate) fn of_this_thread() -> Self {
        let known = LIMITS.get().and_then(|limits| limits());
        known.unwrap_or_else(Self::of_unknown_thread)
    }

    #[cold]
    fn of_unknown_thread() -> Self {
        Self::at(here().saturating_sub(UNKNOWN))
    }

    /// Checks that there is room for one more level of the recursion, and `more` bytes.
    ///
    /// # Errors
    /// [`CdrError::TooDeep`]
    #[inline(always)]
    pub(crate) fn check(self, more: usize) -> Result<(), CdrError> {
        if here().saturating_sub(self.0.get()) < RESERVE + more {
            return Err(CdrError::TooDeep);
        }
        Ok(())
    }
}

/// The bytes that a level of values of type `T` takes when they are copied, compared or printed by
/// functions that recurse without a check.
#[inline(always)]
pub(crate) const fn level<T>() -> usize {
    const { assert!(size_of::<T>() < isize::MAX as usize / COPIES / 2) };
    LEVEL + COPIES * size_of::<T>()
}

/// Sets the function that returns the limit of the calling thread's stack, or nothing where it is
/// not known. The first one that is set remains.
pub fn set_stack_limits(limits: fn() -> Option<StackLimit>) {
    // The application may have set one of its own before.
    let _ = LIMITS.set(limits);
}

static LIMITS: OnceLock<fn() -> Option<StackLimit>> = OnceLock::new();

/// The address of the stack, to within the frame of the caller.
#[inline(always)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(&local).addr()
}

/// The size that is assumed for the stack of an unknown thread, in bytes.
const UNKNOWN: usize = 256 << 10;
/// Room for the functions of a level and what they call, in bytes. Without optimisation a level of
/// [`walk`](crate::any) takes 3 KiB.
const RESERVE: usize = 16 << 10;
/// The bytes of a level for addresses and counters.
const LEVEL: usize = 1 << 10;
/// The values of a level that may be on the stack at once: in the frames of functions that return
/// them, and as parts of each other.
const COPIES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_asked_for_above_the_limit() {
        let limit = StackLimit::at(here() - RESERVE - 4096);
        assert_eq!(limit.check(0), Ok(()));
        assert_eq!(limit.check(1 << 15), Err(CdrError::TooDeep));
        assert_eq!(StackLimit::at(here()).check(0), Err(CdrError::TooDeep));
    }

    #[test]
    fn a_stack_below_its_limit_has_no_room() {
        let limit = StackLimit::at(here() + (1 << 20));
        assert_eq!(limit.check(0), Err(CdrError::TooDeep));
    }
}
