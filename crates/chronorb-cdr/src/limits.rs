//! The bound of the processor time that a received message takes.
//!
//! Some work is not in proportion to the octets that it reads: an indirection of eight octets
//! repeats a type code, and a value without octets still has a type. Decoders charge such work in
//! steps, and a message has a budget of them.

use std::num::NonZeroUsize;

use crate::{Arena, CdrError, StackLimit};

/// The limits of a message, each of which is found out when it is asked for first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The octets of the message.
    octets: usize,
    stack: Option<StackLimit>,
    work: Option<WorkLimit>,
}

impl Limits {
    #[inline]
    pub(crate) const fn of_message(octets: usize) -> Self {
        Self {
            octets,
            stack: None,
            work: None,
        }
    }

    /// The limit of the stack.
    #[inline]
    pub(crate) fn stack(&mut self) -> StackLimit {
        *self.stack.get_or_insert_with(StackLimit::of_this_thread)
    }

    /// The budget of work, whose steps are counted in the arena.
    #[inline]
    pub(crate) fn work(&mut self, arena: &Arena) -> WorkLimit {
        let octets = self.octets;
        *self
            .work
            .get_or_insert_with(|| WorkLimit::of_message(octets, arena))
    }
}

/// The budget of a message, as the count of steps in its arena at which the budget is spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkLimit(NonZeroUsize);

impl WorkLimit {
    /// The budget of a message of so many octets, of which nothing is spent yet.
    #[inline]
    fn of_message(octets: usize, arena: &Arena) -> Self {
        // Saturates where no message gets.
        let steps = NonZeroUsize::MIN.saturating_add(STEPS_PER_OCTET.saturating_mul(octets));
        Self(
            steps
                .saturating_add(FREE_STEPS)
                .saturating_add(arena.work()),
        )
    }

    /// Charges steps.
    ///
    /// # Errors
    /// [`CdrError::TooMuchWork`]
    #[inline]
    pub(crate) fn charge(self, steps: usize, arena: &Arena) -> Result<(), CdrError> {
        if arena.add_work(steps) > self.0.get() {
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
