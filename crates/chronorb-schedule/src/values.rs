//! Values of several keys: locations, lengths of messages, priorities.

use crate::error::Mistakes;
use crate::schedule::MessageLength;
use crate::table::{Table, WithSpan, integer, parsed};
use crate::units::{A_TIME, parse_time};

/// The node and the processor of an operation or a lane, as they are named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Location {
    pub(crate) node: Option<WithSpan<String>>,
    pub(crate) processor: Option<WithSpan<String>>,
}

impl Location {
    pub(crate) fn take(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Self {
        Self {
            node: table.text("node", mistakes),
            processor: table.text("processor", mistakes),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.node.is_none() && self.processor.is_none()
    }
}

impl MessageLength {
    pub(crate) fn take(
        table: &Table<'_, '_>,
        key: &'static str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<WithSpan<Self>> {
        let given = table.take(key)?;
        let span = given.span();
        let value = match integer(given) {
            Some(octets) => Self::Octets(octets),
            None => {
                let form = format!("a number of octets, or {A_TIME}");
                let time = parsed(given, key, &form, parse_time, mistakes)?;
                if time == 0 {
                    mistakes.add(&span, format!("{key} is zero"));
                    return None;
                }
                Self::Time(time)
            }
        };
        Some(WithSpan { value, span })
    }
}

/// The greatest CORBA priority.
pub(crate) const MAX_PRIORITY: u64 = i16::MAX as u64;

/// Converts a number from 0 to [`MAX_PRIORITY`].
pub(crate) fn corba_priority(number: u64) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}
/// The threads of a lane or of an activity, at most.
pub(crate) const MAX_THREADS: u64 = 10_000;
