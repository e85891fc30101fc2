//! Bands of priorities, each with connections of its own.

use std::sync::Arc;

use chronorb_giop::PriorityBandValue;
use thiserror::Error;

use crate::order::sort_by_rank;
use crate::rtcorba::Priority;

/// A range of priorities, both ends included.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PriorityBand {
    /// The least urgent priority in it.
    pub low: Priority,
    /// The most urgent one.
    pub high: Priority,
}

/// One or more bands that do not overlap. They need not cover every priority: a call at a
/// priority in none of them is `INV_POLICY` (OMG minor 1).
///
/// A handle: clones share the list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PriorityBands(Arc<[PriorityBand]>);

/// A list of bands cannot be used. The numbers are indices into it, from 0.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum BandsError {
    /// There is no band.
    #[error("there is no band in the list")]
    Empty,
    /// A band ends below its beginning.
    #[error("band {0} ends below its beginning")]
    Reversed(usize),
    /// A priority is in two bands.
    #[error("bands {0} and {1} overlap")]
    Overlap(usize, usize),
}

impl PriorityBand {
    /// The band from `low` to `high`.
    pub const fn new(low: Priority, high: Priority) -> Self {
        Self { low, high }
    }

    /// Whether the priority is in it.
    pub fn contains(&self, priority: Priority) -> bool {
        (self.low..=self.high).contains(&priority)
    }
}

impl PriorityBands {
    /// A list of bands, in any order.
    ///
    /// # Errors
    /// [`BandsError`] names the band at fault; the first of several.
    pub fn new(bands: &[PriorityBand]) -> Result<Self, BandsError> {
        if bands.is_empty() {
            return Err(BandsError::Empty);
        }
        if let Some(index) = bands.iter().position(|band| band.low > band.high) {
            return Err(BandsError::Reversed(index));
        }
        let mut order: Vec<usize> = (0..bands.len()).collect();
        sort_by_rank(&mut order, |index| bands[*index].low);
        let overlap = order
            .windows(2)
            .find(|pair| bands[pair[1]].low <= bands[pair[0]].high);
        match overlap {
            Some(pair) => Err(BandsError::Overlap(
                pair[0].min(pair[1]),
                pair[0].max(pair[1]),
            )),
            None => Ok(Self(bands.into())),
        }
    }

    /// The bands, in the order in which they were given.
    pub fn as_slice(&self) -> &[PriorityBand] {
        &self.0
    }

    /// The band that a priority is in.
    pub fn band_of(&self, priority: Priority) -> Option<PriorityBand> {
        let mut bands = self.0.iter();
        bands.find(|band| band.contains(priority)).copied()
    }

    pub(crate) fn to_values(&self) -> Vec<PriorityBandValue> {
        let value = |band: &PriorityBand| PriorityBandValue {
            low: band.low.value(),
            high: band.high.value(),
        };
        self.0.iter().map(value).collect()
    }

    /// The bands that a reference says; `None` where they make no sense.
    pub(crate) fn from_values(values: &[PriorityBandValue]) -> Option<Self> {
        let band = |value: &PriorityBandValue| {
            Some(PriorityBand::new(
                Priority::new(value.low)?,
                Priority::new(value.high)?,
            ))
        };
        let bands = values.iter().map(band).collect::<Option<Vec<_>>>()?;
        Self::new(&bands).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(ranges: &[(i16, i16)]) -> Result<PriorityBands, BandsError> {
        let priority = |value| Priority::new(value).expect("not negative");
        let band = |(low, high): &(i16, i16)| PriorityBand::new(priority(*low), priority(*high));
        PriorityBands::new(&ranges.iter().map(band).collect::<Vec<_>>())
    }

    #[test]
    fn bands_are_ranges_that_do_not_overlap() {
        for (ranges, expected) in [
            (&[][..], Err(BandsError::Empty)),
            (&[(0, 0)], Ok(())),
            (&[(0, i16::MAX)], Ok(())),
            (&[(20, 30), (0, 10)], Ok(())),
            (&[(0, 10), (20, 19)], Err(BandsError::Reversed(1))),
            (&[(0, 10), (10, 20)], Err(BandsError::Overlap(0, 1))),
            (&[(5, 5), (20, 30), (0, 10)], Err(BandsError::Overlap(0, 2))),
            (&[(7, 7), (7, 7)], Err(BandsError::Overlap(0, 1))),
        ] {
            assert_eq!(bands(ranges).map(drop), expected, "{ranges:?}");
        }
    }

    #[test]
    fn both_ends_of_a_band_are_in_it() {
        let bands = bands(&[(10, 20), (30, 30)]).expect("they do not overlap");
        for (value, low) in [
            (9, None),
            (10, Some(10)),
            (20, Some(10)),
            (21, None),
            (30, Some(30)),
        ] {
            let band = bands.band_of(Priority::new(value).expect("not negative"));
            assert_eq!(band.map(|band| band.low.value()), low, "{value}");
        }
    }

    #[test]
    fn bands_of_a_reference_that_make_no_sense_are_none() {
        let value = |low, high| PriorityBandValue { low, high };
        for values in [&[][..], &[value(-1, 3)], &[value(3, 2)]] {
            assert_eq!(PriorityBands::from_values(values), None);
        }
        let sound = bands(&[(1, 2), (4, 4)]).expect("they do not overlap");
        assert_eq!(PriorityBands::from_values(&sound.to_values()), Some(sound));
    }
}
