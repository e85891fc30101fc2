//! Rounds of the same calls: their records, and their figures as one.

use std::time::Duration;

use crate::stats::{Record, Summary, median};

/// Records the calls of a round, one after the other.
pub(crate) fn record(latencies_ns: &[u64]) -> Record {
    let mut record = Record::new();
    let mut at = Duration::ZERO;
    for latency in latencies_ns {
        let latency = Duration::from_nanos(*latency);
        record.add(at, latency);
        at += latency;
    }
    record
}

/// Summarises rounds of the same calls: the number of all calls, the longest of them, and the
/// medians of all other figures. Returns nothing without a round.
pub(crate) fn over_rounds<'a>(
    rounds: impl Iterator<Item = &'a Summary> + Clone,
) -> Option<Summary> {
    let all = |of: fn(&Summary) -> f64| rounds.clone().map(of);
    Some(Summary {
        calls: rounds.clone().map(|round| round.calls).sum(),
        p50_us: median(all(|round| round.p50_us))?,
        p99_us: median(all(|round| round.p99_us))?,
        p999_us: median(all(|round| round.p999_us))?,
        max_us: all(|round| round.max_us).reduce(f64::max)?,
        mean_us: median(all(|round| round.mean_us))?,
        jitter_us: median(all(|round| round.jitter_us))?,
    })
}
