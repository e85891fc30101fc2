//! The bound of the processor time that a received message takes.
//!
//! Some work is not in proportion to the octets that it reads: an indirection of eight octets
//! repeats a type code, and a value without octets still has a type. Decoders charge such work in
//! steps, and a message has a budget of them.

use crate::{Arena, CdrError, StackLimit};

/// The limits of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The count of steps in the arena at which the budget of work is spent.
    steps: usize,
    /// The limit of the stack, which is found out when it is asked for first.
    stack: Option<StackLimit>,
}

impl Limits {
    /// The limits of a message of so many octets, of whose budget nothing is spent yet.
    #[inline]
    pub(crate) fn of_message(octets: usize, arena: &Arena) -> Self {
        // Saturates where no message gets.
        let steps = STEPS_PER_OCTET.saturating_mul(octets);
        Self {
            steps: steps
                .saturating_add(FREE_STEPS)
                .saturating_add(arena.work()),
            stack: None,
        }
    }

    /// The limit of the stack.
    #[inline]
    pub(crate) fn stack(&mut self) -> StackLimit {
        *self.stack.get_or_insert_with(StackLimit::of_this_thread)
    }

    /// Charges steps of work.
    ///
    /// # Errors
    /// [`CdrError::TooMuchWork`]
    #[inline]
    pub(crate) fn charge(self, steps: usize, arena: &Arena) -> Result<(), CdrError> {
        if arena.add_work(steps) > self.steps {
            return Err(CdrError::TooMuchWork);
        }
        Ok(())
    }
}

/// The steps for looking at a text of so many octets.
#[inline]
pub(crate) fn steps_of_text(octets: usize) -> usize {
    1 + octets / TEXT_PER_STEP
}

/// The steps of any message.
const FREE_STEPS: usize = 4096;
/// The steps for each octet of a message.
const STEPS_PER_OCTET: usize = 16;
/// The octets that are compared, checked or hashed in a step.
const TEXT_PER_STEP: usize = 16;
