//! The cells of the comparison: numbers of threads by amounts of work.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number of threads and an amount of work, with which both strategies are compared.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PoolCell {
    /// The number of threads that serve. Half-Sync/Half-Async has one more, which reads.
    pub threads: u32,
    /// The computing time of a request in µs.
    pub work_us: u32,
}

impl PoolCell {
    /// Returns the computing time of a request.
    pub(super) fn work(self) -> Duration {
        Duration::from_micros(self.work_us.into())
    }
}

/// Numbers of threads: `1-6`, `1,2,4`, `3`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Threads(pub Vec<u32>);

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            let number = number.filter(|number| (1..=MOST_THREADS).contains(number));
            number.ok_or_else(|| format!("{text:?} is not a number from 1 to {MOST_THREADS}"))
        };
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{part:?} begins after its end"));
            }
            all.extend(first..=last);
        }
        all.sort_unstable();
        all.dedup();
        Ok(Self(all))
    }
}

/// The bound of the number of threads, for the sake of readable charts.
const MOST_THREADS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_single_ones_and_ranges() {
        let threads = |text: &str| text.parse().map(|Threads(all)| all);
        assert_eq!(threads("1-6"), Ok(vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(threads("4,1, 2-2,4"), Ok(vec![1, 2, 4]));
        for wrong in ["", "0", "65", "3-1", "1-", "two"] {
            assert!(threads(wrong).is_err(), "{wrong}");
        }
    }
}
