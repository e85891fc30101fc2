//! The pieces of an operation's execution, which its calls divide.

use chronorb_sched::Time;

use crate::schedule::{Call, LockUse, Operation};

/// The places of the calls in the execution of an operation.
pub(crate) struct Pieces {
    /// The execution before a call that states none.
    even: Time,
    /// The least execution of all pieces.
    least: Time,
}

impl Pieces {
    pub(crate) fn new(operation: &Operation) -> Self {
        let calls = operation.calls.iter().map(|call| u64::from(call.count));
        let pieces = calls.fold(1, u64::saturating_add);
        Self {
            even: operation.cost.div_ceil(pieces),
            least: operation.least.min(operation.cost),
        }
    }

    /// Returns the execution that is sure at a point: the least one of the pieces before it, or
    /// that of the whole without the longest time that is left.
    pub(crate) fn sure(&self, before: Time, left: Time) -> Time {
        before.max(self.least.saturating_sub(left))
    }

    /// Returns the execution of the caller before each of these calls, since the call before it.
    pub(crate) fn before(&self, call: &Call) -> Time {
        call.before.unwrap_or(self.even)
    }
}

/// Returns the first lock whose section does not end before its operation waits for a call: the
/// sections of an operation follow each other, and each is within the execution between two waits.
pub(crate) fn lock_over_call(operation: &Operation) -> Option<&LockUse> {
    let pieces = Pieces::new(operation);
    let mut left = operation.cost;
    let mut locks = operation.locks.iter().peekable();
    let mut room = 0;
    let mut fill = |room: Time| {
        let mut room = room;
        while let Some(next) = locks.next_if(|it| it.time <= room) {
            room -= next.time;
        }
    };
    for call in &operation.calls {
        for _ in 0..call.count {
            let more = pieces.before(call).min(left);
            left -= more;
            room += more;
            if !call.oneway {
                fill(std::mem::take(&mut room));
            }
        }
    }
    fill(room + left);
    locks.next()
}
