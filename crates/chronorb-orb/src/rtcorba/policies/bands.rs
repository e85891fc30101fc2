//! Bands of priorities, each with connections of its own.

use std::sync::Arc;

use chronorb_giop::PriorityBandValue;
use thiserror::Error;

use crate::rtcorba::Priority;

/// A range of priorities, both ends included.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PriorityBand {
    /// The least urgent priority in it.
    pub low: Priority,
    /// The most urgent one.
    pub high: Priority,
}

/// One or more bands. A priority that is in several belongs to the first of these. The bands need
/// not cover every priority: a call at a priority in none of them is `INV_POLICY` (OMG minor 1).
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
    /// A list of bands, in the order in which they are searched.
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
        Ok(Self(bands.into()))
    }

    /// The bands, in the order in which they were given.
    pub fn as_slice(&self) -> &[PriorityBand] {
        &self.0
    }

    /// The first band that a priority is in.
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

    /// Converts the bands of a reference; `None` if they are invalid.
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
    fn bands_are_ranges_in_any_order() {
        for (ranges, expected) in [
            (&[][..], Err(BandsError::Empty)),
            (&[(0, 0)], Ok(())),
            (&[(0, i16::MAX)], Ok(())),
            (&[(20, 30), (0, 10)], Ok(())),
            (&[(0, 10), (20, 19)], Err(BandsError::Reversed(1))),
            (&[(0, 10), (10, 20)], Ok(())),
            (&[(5, 5), (20, 30), (0, 10)], Ok(())),
        ] {
            assert_eq!(bands(ranges).map(drop), expected, "{ranges:?}");
        }
    }

    #[test]
    fn the_first_band_that_has_a_priority_is_its_band() {
        let bands = bands(&[(0, 5000), (5000, 10_000), (4000, 20_000)]).expect("they are sound");
        for (value, high) in [
            (4500, Some(5000)),
            (5000, Some(5000)),
            (5001, Some(10_000)),
            (20_000, Some(20_000)),
            (20_001, None),
        ] {
            let band = bands.band_of(Priority::new(value).expect("not negative"));
            assert_eq!(band.map(|band| band.high.value()), high, "{value}");
        }
    }

    #[test]
    fn both_ends_of_a_band_are_in_it() {
        let bands = bands(&[(10, 20), (30, 30)]).expect("they are sound");
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
        let sound = bands(&[(1, 2), (4, 4)]).expect("they are sound");
        assert_eq!(PriorityBands::from_values(&sound.to_values()), Some(sound));
    }
}
