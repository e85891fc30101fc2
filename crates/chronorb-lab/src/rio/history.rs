//! The octets of a connection over time.

use std::time::Duration;

use chronorb_rt::Monotonic;
use serde::{Deserialize, Serialize};

/// The octets that a connection received, in slots of time that follow each other.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct OctetHistory {
    /// The beginning of the first slot, by the monotonic clock.
    begun_ns: u64,
    slots: Vec<u32>,
}

impl OctetHistory {
    /// Begins now, with room for a history of this length.
    pub(super) fn begin(room: Duration) -> Self {
        let slots = room.as_nanos() / u128::from(SLOT_NS);
        Self {
            begun_ns: Monotonic::now().as_nanos(),
            slots: Vec::with_capacity(usize::try_from(slots).unwrap_or(0)),
        }
    }

    /// Adds octets that were received at a time.
    pub(super) fn add(&mut self, at: Monotonic, octets: usize) {
        let slot = at.as_nanos().saturating_sub(self.begun_ns) / SLOT_NS;
        let slot = usize::try_from(slot).unwrap_or(usize::MAX);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += u32::try_from(octets).unwrap_or(u32::MAX);
    }

    /// Returns the octets of the slots within this time; slots after the last one have none.
    fn between(&self, from: Monotonic, to: Monotonic) -> Vec<u32> {
        let slot = |at: Monotonic| {
            let ns = at.as_nanos().saturating_sub(self.begun_ns);
            usize::try_from(ns.div_ceil(SLOT_NS)).unwrap_or(usize::MAX)
        };
        let slots = self.slots.iter().copied().chain(std::iter::repeat(0));
        let (from, to) = (slot(from), slot(to));
        slots.skip(from).take(to.saturating_sub(from)).collect()
    }

    /// Returns the rate within this time; none where it is shorter than a slot.
    ///
    /// Least and most are those of any whole second, wherever it begins, or of all of the time if
    /// that is shorter.
    pub(super) fn rate(&self, from: Monotonic, to: Monotonic) -> Option<OctetRate> {
        let slots = self.between(from, to);
        let window = WINDOW_SLOTS.min(slots.len());
        if window == 0 {
            return None;
        }
        let per_second =
            |octets: u64, slots: usize| octets as f64 * 1e9 / (slots as f64 * SLOT_NS as f64);
        let mut octets: u64 = slots[..window].iter().copied().map(u64::from).sum();
        let (mut least, mut most) = (octets, octets);
        for (leaves, comes) in slots.iter().zip(&slots[window..]) {
            octets = octets + u64::from(*comes) - u64::from(*leaves);
            least = least.min(octets);
            most = most.max(octets);
        }
        let all = slots.iter().copied().map(u64::from).sum();
        Some(OctetRate {
            mean: per_second(all, slots.len()),
            least: per_second(least, window),
            most: per_second(most, window),
        })
    }

    /// Returns the points of a curve: seconds since a time, and octets in a second, each over a
    /// span.
    pub(super) fn points(&self, since: Monotonic, each: Duration) -> Vec<(f64, f64)> {
        let slots = (each.as_nanos() as u64 / SLOT_NS).max(1);
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let chunks = self.slots.chunks(slots).enumerate();
        chunks
            .map(|(index, chunk)| {
                let octets: u64 = chunk.iter().copied().map(u64::from).sum();
                let seconds = chunk.len() as f64 * SLOT_NS as f64 / 1e9;
                let begun = self.begun_ns as f64 - since.as_nanos() as f64;
                let middle = (index * slots) as f64 * SLOT_NS as f64 / 1e9 + seconds / 2.0;
                (begun / 1e9 + middle, octets as f64 / seconds)
            })
            .filter(|(at, _)| *at >= 0.0)
            .collect()
    }
}

/// Octets in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OctetRate {
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// The period of the paper's reservations.
const SLOT_NS: u64 = 10_000_000;
/// A second.
const WINDOW_SLOTS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_nanos(SLOT_NS);

    /// A history that begins at 1 s, with so many octets in each slot.
    fn history(slots: impl IntoIterator<Item = u32>) -> OctetHistory {
        OctetHistory {
            begun_ns: 1_000_000_000,
            slots: slots.into_iter().collect(),
        }
    }

    fn at(slot: u32) -> Monotonic {
        Monotonic::from_nanos(1_000_000_000) + SLOT * slot
    }

    #[test]
    fn octets_are_kept_by_when_they_came() {
        let mut history = history([]);
        for (slot, octets) in [(0, 5), (0, 6), (3, 7)] {
            history.add(at(slot) + SLOT / 2, octets);
        }
        assert_eq!(history.slots, [11, 0, 0, 7]);
    }

    #[test]
    fn every_second_counts_wherever_it_begins() {
        // 1 s in which 80 kB come in each slot, but for a gap of half a second after it.
        let steady = std::iter::repeat_n(80_000, 100);
        let history = history(
            steady
                .clone()
                .chain(std::iter::repeat_n(0, 50))
                .chain(steady),
        );
        let rate = history.rate(at(0), at(250)).expect("there is time enough");
        assert_eq!((rate.least, rate.most), (4e6, 8e6));
        assert!((rate.mean - 6.4e6).abs() < 1.0, "{rate:?}");
        let whole = history
            .rate(at(150), at(250))
            .expect("there is time enough");
        assert_eq!((whole.mean, whole.least, whole.most), (8e6, 8e6, 8e6));
    }

    #[test]
    fn slots_that_are_cut_do_not_count() {
        let history = history([1, 2, 4, 8]);
        let late = at(1) + Duration::from_nanos(1);
        let rate = history.rate(late, at(4)).expect("there are two");
        assert_eq!(rate.mean, 12.0 / 0.02);
        assert_eq!(history.rate(late, at(2)), None);
        let silent = history.rate(at(90), at(99)).expect("there is time enough");
        assert_eq!((silent.mean, silent.least, silent.most), (0.0, 0.0, 0.0));
    }

    #[test]
    fn points_of_a_plot_have_their_middle_and_their_rate() {
        let points = history([100, 300, 500]).points(at(0), SLOT * 2);
        assert_eq!(points, [(0.01, 20_000.0), (0.025, 50_000.0)]);
        assert_eq!(history([100, 300, 500]).points(at(2), SLOT).len(), 1);
    }
}
