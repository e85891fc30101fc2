//! The course of a latency over time, in bounded space.

use serde::{Deserialize, Serialize};

/// One point of the course: a call, or the longest of several neighbouring ones.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Point {
    /// The time when the call was due, in ns after the start of the measurement.
    pub at_ns: u64,
    /// The latency of the call, in ns.
    pub latency_ns: u64,
}

/// A course of at most [`CAPACITY`] points.
///
/// When it is full, each two neighbours become one, the longer one, so peaks are never lost.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    points: Vec<Point>,
    /// The number of all calls.
    calls: u64,
    calls_per_point: u64,
    calls_in_last: u64,
}

impl Course {
    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }

    pub(crate) fn add(&mut self, point: Point) {
        self.calls += 1;
        if self.calls_in_last < self.calls_per_point
            && let Some(last) = self.points.last_mut()
        {
            *last = longer(*last, point);
            self.calls_in_last += 1;
            return;
        }
        if self.points.len() == CAPACITY {
            self.halve();
        }
        self.points.push(point);
        self.calls_in_last = 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.points.extend_from_slice(&other.points);
        self.points.sort_by_key(|point| point.at_ns);
        while self.points.len() > CAPACITY {
            self.halve();
        }
        self.calls += other.calls;
        // The courses may overlap, and each may be much shorter than the whole.
        let points = self.points.len().max(1) as u64;
        self.calls_per_point = self.calls.div_ceil(points).max(1);
        // The next call begins a point of its own.
        self.calls_in_last = self.calls_per_point;
    }

    fn halve(&mut self) {
        self.points = self
            .points
            .chunks(2)
            .map(|pair| pair.iter().copied().reduce(longer).unwrap_or(pair[0]))
            .collect();
        self.calls_per_point = self.calls_per_point.saturating_mul(2);
    }
}

impl Default for Course {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            calls: 0,
            calls_per_point: 1,
            calls_in_last: 1,
        }
    }
}

fn longer(left: Point, right: Point) -> Point {
    if right.latency_ns > left.latency_ns {
        right
    } else {
        left
    }
}

/// Enough for one point in each pixel of a plot.
const CAPACITY: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_ns: u64, latency_ns: u64) -> Point {
        Point { at_ns, latency_ns }
    }

    #[test]
    fn few_calls_are_kept_one_by_one() {
        let mut series = Course::default();
        let calls: Vec<_> = (0..200).map(|n| point(n, 1000 - n)).collect();
        for call in &calls {
            series.add(*call);
        }
        assert_eq!(series.points(), calls);
    }

    #[test]
    fn many_calls_stay_within_the_capacity_and_keep_every_peak() {
        let mut series = Course::default();
        for n in 0..1_000_000 {
            series.add(point(n, if n % 100_000 == 77 { 9000 + n } else { 5 }));
        }
        assert!(series.points().len() <= CAPACITY);
        assert!(series.points().is_sorted_by_key(|point| point.at_ns));
        let peaks: Vec<_> = series
            .points()
            .iter()
            .filter(|point| point.latency_ns >= 9000)
            .map(|point| point.at_ns)
            .collect();
        let expected: Vec<_> = (0..10).map(|n| n * 100_000 + 77).collect();
        assert_eq!(peaks, expected);
    }

    #[test]
    fn a_thousand_courses_make_one_that_continues() {
        let mut all = Course::default();
        for round in 0..1000 {
            let mut short = Course::default();
            for n in 0..300 {
                short.add(point(n, round + 1));
            }
            all.merge(&short);
        }
        let before = all.points().len();
        assert!((CAPACITY / 2..=CAPACITY).contains(&before));
        // A point has 150 to 300 calls.
        for n in 0..3_000 {
            all.add(point(1_000 + n, 1));
        }
        let added = all.points().iter().filter(|point| point.at_ns >= 1_000);
        assert!((5..=25).contains(&added.count()));
        assert!(all.points().iter().any(|point| point.latency_ns == 1_000));
    }

    #[test]
    fn merged_courses_are_in_the_order_of_time_and_bounded() {
        let mut left = Course::default();
        let mut right = Course::default();
        for n in 0..3000 {
            left.add(point(2 * n, 10));
            right.add(point(2 * n + 1, 20));
        }
        left.merge(&right);
        assert!(left.points().len() <= CAPACITY);
        assert!(left.points().is_sorted_by_key(|point| point.at_ns));
        assert!(left.points().iter().any(|point| point.latency_ns == 20));
    }
}
