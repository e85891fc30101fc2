//! Latencies of one class of calls: a histogram, exact moments and the course over time.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::course::Course;
pub use crate::course::Point;

/// The latencies of one class of calls.
///
/// A record holds a histogram with three significant digits from 1 ns to 60 s, the exact number,
/// mean, standard deviation and maximum, and a bounded course over time that keeps every peak. Its
/// size does not depend on the number of calls. Records of several clients [`merge`](Self::merge).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "Transcript", into = "Transcript")]
pub struct Record {
    histogram: Histogram<u64>,
    moments: Moments,
    course: Course,
}

impl Record {
    /// An empty record.
    #[must_use]
    pub fn new() -> Self {
        Self {
            // The bounds are constants that the histogram accepts, so this cannot fail.
            histogram: Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
                .expect("the bounds of the histogram are valid"),
            moments: Moments::default(),
            course: Course::default(),
        }
    }

    /// Adds a call that was due `at` after the start of the measurement and took `latency`.
    ///
    /// A latency above 60 s counts as 60 s in the percentiles; mean and maximum stay exact.
    pub fn add(&mut self, at: Duration, latency: Duration) {
        let latency_ns = saturating_ns(latency);
        self.histogram.saturating_record(latency_ns.max(1));
        self.moments.add(latency_ns);
        self.course.add(Point {
            at_ns: saturating_ns(at),
            latency_ns,
        });
    }

    /// Adds all calls of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("all records have the same bounds");
        self.moments.merge(&other.moments);
        self.course.merge(&other.course);
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.moments.calls
    }

    /// Returns the latency in µs that the share `quantile` (0.0 to 1.0) of the calls did not
    /// exceed.
    ///
    /// It is exact to three digits and never above [`max_us`](Self::max_us); 0 without calls.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        let value = self.histogram.value_at_quantile(quantile);
        us(value.min(self.moments.max_ns))
    }

    /// Returns the longest latency in µs, exact; 0 without calls.
    #[must_use]
    pub fn max_us(&self) -> f64 {
        us(self.moments.max_ns)
    }

    /// Counts the calls below 1 µs, from 1 to below 2 µs, from 2 to below 4 µs and so on, up to the
    /// longest.
    #[must_use]
    pub fn by_powers_of_two(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for bucket in self.histogram.iter_recorded() {
            let us = bucket.value_iterated_to() / 1000;
            let power = us.checked_ilog2().map_or(0, |power| power as usize + 1);
            if counts.len() <= power {
                counts.resize(power + 1, 0);
            }
            counts[power] += bucket.count_at_value();
        }
        counts
    }

    /// Returns the shortest latency in µs, exact to three digits; 0 without calls.
    #[must_use]
    pub fn min_us(&self) -> f64 {
        match self.calls() {
            0 => 0.0,
            _ => us(self.histogram.min()),
        }
    }

    /// Returns the shares of the calls by latency, in steps of so many µs from the shortest to the
    /// latency that the share `quantile` did not exceed: the middle of each step, and its share.
    #[must_use]
    pub fn distribution(&self, step_us: f64, quantile: f64) -> Vec<(f64, f64)> {
        let step = (step_us * 1e3).max(1.0);
        let most = self.quantile_us(quantile) * 1e3;
        let step_of = |ns: u64| (ns as f64 / step).floor();
        let mut shares: Vec<(f64, f64)> = Vec::new();
        let buckets = self.histogram.iter_recorded();
        let buckets = buckets.filter(|bucket| bucket.value_iterated_to() as f64 <= most);
        for bucket in buckets {
            let share = bucket.count_at_value() as f64 / self.calls() as f64;
            let at = step_of(bucket.value_iterated_to());
            let mut last = shares.last().map_or(at, |(last, _)| *last);
            while last < at && !shares.is_empty() {
                last += 1.0;
                shares.push((last, 0.0));
            }
            match shares.last_mut() {
                Some(last) => last.1 += share,
                None => shares.push((at, share)),
            }
        }
        let middle = |(at, share): (f64, f64)| ((at + 0.5) * step / 1e3, share);
        shares.into_iter().map(middle).collect()
    }

    /// Returns the course over time: at most a few thousand points, in the order of time.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        self.course.points()
    }

    /// Returns the figures of a table.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            calls: self.calls(),
            p50_us: self.quantile_us(0.5),
            p99_us: self.quantile_us(0.99),
            p999_us: self.quantile_us(0.999),
            max_us: self.max_us(),
            mean_us: to_ns_digits(self.moments.mean_ns / 1e3),
            jitter_us: to_ns_digits(self.moments.deviation_ns() / 1e3),
        }
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

/// The latencies of one class of calls in figures, all in µs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Summary {
    /// The number of calls.
    pub calls: u64,
    /// The median.
    pub p50_us: f64,
    /// 99 % of the calls took at most this long.
    pub p99_us: f64,
    /// 99.9 % of the calls took at most this long; the maximum of fewer than 1000 calls.
    pub p999_us: f64,
    /// The longest call.
    pub max_us: f64,
    /// The arithmetic mean.
    pub mean_us: f64,
    /// The jitter: the standard deviation of the latency.
    pub jitter_us: f64,
}

/// Number, mean, sum of squared deviations and maximum, kept exactly while calls come in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Moments {
    calls: u64,
    mean_ns: f64,
    squares: f64,
    max_ns: u64,
}

impl Moments {
    /// Welford's update.
    fn add(&mut self, latency_ns: u64) {
        self.calls += 1;
        let distance = latency_ns as f64 - self.mean_ns;
        self.mean_ns += distance / self.calls as f64;
        self.squares += distance * (latency_ns as f64 - self.mean_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Chan's formula for two sets.
    fn merge(&mut self, other: &Self) {
        if other.calls == 0 {
            return;
        }
        let (own, others) = (self.calls as f64, other.calls as f64);
        let all = own + others;
        let distance = other.mean_ns - self.mean_ns;
        self.mean_ns += distance * others / all;
        self.squares += other.squares + distance * distance * own * others / all;
        self.calls += other.calls;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn deviation_ns(&self) -> f64 {
        if self.calls < 2 {
            return 0.0;
        }
        (self.squares / self.calls as f64).sqrt()
    }
}

/// A record on its way from one process to another: only the buckets that hold something.
#[derive(Deserialize, Serialize)]
struct Transcript {
    buckets: Vec<(u64, u64)>,
    moments: Moments,
    points: Vec<Point>,
}

impl From<Record> for Transcript {
    fn from(record: Record) -> Self {
        Self {
            buckets: record
                .histogram
                .iter_recorded()
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
                .collect(),
            moments: record.moments,
            points: record.course.points().to_vec(),
        }
    }
}

impl TryFrom<Transcript> for Record {
    type Error = String;

    fn try_from(transcript: Transcript) -> Result<Self, Self::Error> {
        let mut record = Self::new();
        for (value, count) in transcript.buckets {
            record
                .histogram
                .record_n(value, count)
                .map_err(|_| format!("{value} ns is outside the histogram"))?;
        }
        if record.histogram.len() != transcript.moments.calls {
            return Err(format!(
                "{} calls in the histogram, {} in the moments",
                record.histogram.len(),
                transcript.moments.calls
            ));
        }
        record.moments = transcript.moments;
        for point in transcript.points {
            record.course.add(point);
        }
        Ok(record)
    }
}

fn saturating_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Cuts the digits below 1 ns, which no clock here measures.
fn to_ns_digits(us: f64) -> f64 {
    (us * 1e3).round() / 1e3
}

/// Sorts the values, and returns the least one that a share `of` of them does not exceed; 0 without
/// values.
pub fn quantile(values: &mut [f64], of: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * of).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

/// Returns the middle value, or the mean of the two in the middle; nothing without values.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some((values[middle - 1] + values[middle]) / 2.0),
        _ => Some(values[middle]),
    }
}

const LONGEST_NS: u64 = 60_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(latencies_us: impl IntoIterator<Item = u64>) -> Record {
        let mut record = Record::new();
        for (index, latency) in latencies_us.into_iter().enumerate() {
            record.add(
                Duration::from_millis(index as u64),
                Duration::from_micros(latency),
            );
        }
        record
    }

    fn assert_close(left: f64, right: f64) {
        assert!(
            (left - right).abs() <= right.abs() * 1e-3,
            "{left} is not {right}"
        );
    }

    #[test]
    fn summary_of_the_numbers_from_1_to_1000() {
        let summary = record(1..=1000).summary();
        assert_eq!(summary.calls, 1000);
        assert_close(summary.p50_us, 500.0);
        assert_close(summary.p99_us, 990.0);
        assert_close(summary.p999_us, 999.0);
        assert_eq!(summary.max_us, 1000.0);
        assert_eq!(summary.mean_us, 500.5);
        // The standard deviation of 1..n is the root of (n² - 1) / 12.
        assert_close(summary.jitter_us, (999_999.0_f64 / 12.0).sqrt());
    }

    #[test]
    fn powers_of_two_hold_every_call() {
        let record = record([0, 1, 1, 2, 3, 4, 7, 8, 1000]);
        assert_eq!(record.by_powers_of_two(), [1, 2, 2, 2, 1, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_distribution_has_every_step_between_the_shortest_and_the_longest() {
        let record = record([101, 103, 104, 131, 500]);
        let distribution = record.distribution(10.0, 0.9);
        let expected = [(105.0, 0.6), (115.0, 0.0), (125.0, 0.0), (135.0, 0.2)];
        assert_eq!(distribution.len(), 4, "{distribution:?}");
        for ((at, share), (expected_at, expected_share)) in distribution.into_iter().zip(expected) {
            assert_close(at, expected_at);
            assert!((share - expected_share).abs() < 1e-9);
        }
        assert!(Record::new().distribution(10.0, 1.0).is_empty());
    }

    #[test]
    fn an_empty_record_is_all_zero() {
        assert_eq!(Record::new().summary(), Summary::default());
        assert!(Record::new().by_powers_of_two().is_empty());
        assert_eq!(Record::new().min_us(), 0.0);
    }

    #[test]
    fn percentiles_never_exceed_the_maximum() {
        let record = record([1_234_567]);
        assert_eq!(record.quantile_us(1.0), record.max_us());
        assert_eq!(record.max_us(), 1_234_567.0);
    }

    #[test]
    fn latencies_beyond_the_histogram_keep_their_maximum() {
        let mut record = Record::new();
        record.add(Duration::ZERO, Duration::from_secs(90));
        assert_eq!(record.max_us(), 90e6);
        assert!(record.quantile_us(0.5) >= 59.9e6);
    }

    #[test]
    fn merged_records_equal_one_record_of_all_calls() {
        let mut merged = record(1..=300);
        merged.merge(&record(301..=1000));
        merged.merge(&Record::new());
        let whole = record(1..=1000).summary();
        let merged = merged.summary();
        assert_eq!(merged.calls, whole.calls);
        assert_eq!(merged.p99_us, whole.p99_us);
        assert_close(merged.mean_us, whole.mean_us);
        assert_close(merged.jitter_us, whole.jitter_us);
    }

    #[test]
    fn a_record_survives_the_way_to_another_process() {
        let sent = record((1..=5000).map(|n| n * n % 7919 + 1));
        let text = serde_json::to_string(&sent).unwrap();
        let received: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(received.summary(), sent.summary());
        assert_eq!(received.points(), sent.points());
    }

    #[test]
    fn a_record_that_contradicts_itself_is_refused() {
        for (bucket, calls) in [(5, 2), (99_000_000_000_u64, 1)] {
            let moments = json!({"calls": calls, "mean_ns": 5, "squares": 0, "max_ns": 5});
            let record = json!({"buckets": [[bucket, 1]], "moments": moments, "points": []});
            assert!(serde_json::from_value::<Record>(record).is_err());
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median([].into_iter()), None);
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut values, 0.5), 100.0);
        assert_eq!(quantile(&mut values, 0.99), 198.0);
        assert_eq!(quantile(&mut [7.0], 0.99), 7.0);
    }
}
