//! Tests by which most events are rejected for subscriptions with masks.

use std::sync::Arc;

use crate::event::Header;
use crate::program::{Interest, has_bits};

/// A test that an event passes if it passes one of the masks of a program. Its cost has a small
/// bound, whatever the number of masks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// Every event passes.
    Open,
    /// Events with these values below the masks.
    Values { masks: [i32; 2], values: [i32; 2] },
    /// Events with at least one bit of each mask.
    Bits { masks: [i32; 2] },
    /// Events that pass one of several masks.
    Several(Arc<MaskTable>),
}

/// Several masks, of which an event passes one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MaskTable {
    /// For each bit of a source, the bits of types: an event passes if its type has a bit of those
    /// of a bit of its source.
    types: [i32; 32],
    /// The bits of sources that have any.
    sources: i32,
    /// Values by their masks.
    values: Vec<MaskedValues>,
}

/// The values below the same masks, in order.
#[derive(Debug, PartialEq, Eq)]
struct MaskedValues {
    masks: [i32; 2],
    values: Vec<[i32; 2]>,
}

/// The most different masks of values that a guard compares with. A program with more has an open
/// one.
const MOST_MASKS: usize = 4;

impl Guard {
    /// The guard of a program with these interests. `None` if it has no masks, and no interest in
    /// all events.
    pub(super) fn of(interests: &[Interest]) -> Option<Self> {
        let is_wide = |interest: &&Interest| !interest.is_leaf();
        let mut wide = interests.iter().filter(is_wide);
        let (first, second) = (wide.next()?, wide.next());
        if second.is_none() {
            return Some(match *first {
                Interest::Values { masks, values } => Self::Values { masks, values },
                Interest::Bits { masks } => Self::Bits { masks },
                _ => Self::Open,
            });
        }
        let table = MaskTable::of(interests);
        Some(table.map_or(Self::Open, |table| Self::Several(Arc::new(table))))
    }

    #[inline]
    pub(super) fn lets_pass(&self, header: &Header) -> bool {
        match self {
            Self::Open => true,
            Self::Values { masks, values } => masked(header, *masks) == *values,
            Self::Bits { masks } => has_bits(masks[0], masks[1], header),
            Self::Several(table) => table.lets_pass(header),
        }
    }
}

impl MaskTable {
    /// The masks among interests. `None` where every event may pass.
    fn of(interests: &[Interest]) -> Option<Self> {
        let mut table = Self {
            types: [0; 32],
            sources: 0,
            values: Vec::new(),
        };
        for interest in interests {
            match interest {
                Interest::All => return None,
                Interest::Bits { masks } => table.add_bits(*masks),
                Interest::Values { masks, values } => table.add_values(*masks, *values)?,
                Interest::Exact(..) | Interest::Type(_) | Interest::Source(_) => {}
            }
        }
        for values in table.values.iter_mut().map(|of| &mut of.values) {
            values.sort_unstable();
            values.dedup();
        }
        Some(table)
    }

    fn add_bits(&mut self, [source, event_type]: [i32; 2]) {
        if event_type == 0 {
            return;
        }
        self.sources |= source;
        for bit in bits(source) {
            self.types[bit] |= event_type;
        }
    }

    /// Adds values, unless their masks are too many.
    fn add_values(&mut self, masks: [i32; 2], values: [i32; 2]) -> Option<()> {
        if let Some(same) = self.values.iter_mut().find(|of| of.masks == masks) {
            same.values.push(values);
            return Some(());
        }
        if self.values.len() == MOST_MASKS {
            return None;
        }
        let values = vec![values];
        self.values.push(MaskedValues { masks, values });
        Some(())
    }

    // Within a look-up it would cost events of other subscriptions some instructions.
    #[inline(never)]
    fn lets_pass(&self, header: &Header) -> bool {
        bits(header.source & self.sources).any(|bit| self.types[bit] & header.event_type != 0)
            || self.values.iter().any(|of| {
                let masked = masked(header, of.masks);
                of.values.binary_search(&masked).is_ok()
            })
    }
}

fn masked(header: &Header, masks: [i32; 2]) -> [i32; 2] {
    [header.source & masks[0], header.event_type & masks[1]]
}

/// The numbers of the bits that are set.
fn bits(word: i32) -> impl Iterator<Item = usize> {
    let mut rest = word.cast_unsigned();
    std::iter::from_fn(move || {
        let bit = (rest != 0).then_some(rest.trailing_zeros() as usize)?;
        rest &= rest - 1;
        Some(bit)
    })
}
