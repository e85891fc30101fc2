//! How deep values may be within each other: who sends them must not say how much of the stack it
//! takes to read them, and the types alone do not bound it.

use super::MAX_VALUE_DEPTH;
use crate::CdrError;

/// Whether one more value may be within `depth` others, of which the outermost began where the
/// stack stood at `start`.
pub(super) fn check(depth: usize, start: usize, here: usize) -> Result<(), CdrError> {
    if depth >= MAX_VALUE_DEPTH as usize || start.abs_diff(here) > STACK {
        return Err(CdrError::TooDeep);
    }
    Ok(())
}

/// Where the stack stands.
#[inline(never)]
pub(super) fn stack_address() -> usize {
    let place = 0_u8;
    std::ptr::from_ref(&place).addr()
}

/// Half of what the thread of a pool has, if nothing else is said.
const STACK: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_the_number_and_the_stack_are_bounded() {
        let start = stack_address();
        assert_eq!(check(63, start, start - STACK), Ok(()));
        assert_eq!(check(64, start, start), Err(CdrError::TooDeep));
        assert_eq!(check(1, start, start - STACK - 1), Err(CdrError::TooDeep));
    }

    #[test]
    fn the_stack_is_where_it_is_used() {
        fn deeper() -> usize {
            let octets = std::hint::black_box([0_u8; 1024]);
            let here = stack_address();
            std::hint::black_box(octets);
            here
        }
        assert!(stack_address().abs_diff(deeper()) >= 1024);
    }
}
