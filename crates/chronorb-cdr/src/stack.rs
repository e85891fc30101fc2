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

    /// Checks that there is room for one more level of the recursion, and `more`.
    ///
    /// # Errors
    /// [`CdrError::TooDeep`]
    #[inline(always)]
    pub(crate) fn check(self, more: Room) -> Result<(), CdrError> {
        if here().saturating_sub(self.0.get()) < RESERVE + more.bytes() {
            return Err(CdrError::TooDeep);
        }
        Ok(())
    }
}

/// Room on the stack for levels of values that are copied, compared or printed by functions that
/// recurse without a check. It is at most 16 MiB, and takes two octets of a decoder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Room(u16);

impl Room {
    pub(crate) const NONE: Self = Self(0);

    /// The room for a level of values of type `T`.
    #[inline(always)]
    pub(crate) const fn of<T>() -> Self {
        let bytes = size_of::<T>().saturating_mul(COPIES).saturating_add(LEVEL);
        let units = bytes.div_ceil(UNIT);
        Self(if units < MOST as usize {
            units as u16
        } else {
            MOST
        })
    }

    /// This room and that for one more level, unless they are too much.
    #[inline(always)]
    pub(crate) fn with<T>(self) -> Option<Self> {
        self.0.checked_add(Self::of::<T>().0).map(Self)
    }

    /// This room without that for a level.
    #[inline(always)]
    pub(crate) fn without<T>(self) -> Self {
        Self(self.0.saturating_sub(Self::of::<T>().0))
    }

    #[inline(always)]
    fn bytes(self) -> usize {
        usize::from(self.0) * UNIT
    }
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
/// The stack space of the functions of a level and their callees, in bytes. Without optimization a
/// level of [`walk`](crate::any) takes 3 KiB.
const RESERVE: usize = 16 << 10;
/// The bytes of a level for addresses and counters.
const LEVEL: usize = 1 << 10;
/// The bytes that room is counted in.
const UNIT: usize = 256;
/// The greatest room, in units.
const MOST: u16 = u16::MAX;
/// The values of a level that may be on the stack at once: in the frames of functions that return
/// them, and as parts of each other.
const COPIES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_asked_for_above_the_limit() {
        let limit = StackLimit::at(here() - RESERVE - 4096);
        assert_eq!(limit.check(Room::NONE), Ok(()));
        assert_eq!(
            limit.check(Room::of::<[u8; 4096]>()),
            Err(CdrError::TooDeep)
        );
        assert_eq!(
            StackLimit::at(here()).check(Room::NONE),
            Err(CdrError::TooDeep)
        );
    }

    #[test]
    fn room_for_levels_is_counted_up_and_down() {
        let one = Room::of::<[u8; 1000]>();
        assert!(one.bytes() >= LEVEL + COPIES * 1000);
        let two = one.with::<u8>().expect("16 MiB are more");
        assert_eq!(two.bytes(), one.bytes() + Room::of::<u8>().bytes());
        assert_eq!(two.without::<u8>(), one);
        let greatest = Room::of::<[u8; 1 << 22]>();
        assert_eq!(greatest.with::<u8>(), None);
        assert_eq!(greatest.without::<[u8; 1 << 22]>(), Room::NONE);
    }

    #[test]
    fn a_stack_below_its_limit_has_no_room() {
        let limit = StackLimit::at(here() + (1 << 20));
        assert_eq!(limit.check(Room::NONE), Err(CdrError::TooDeep));
    }
}
