//! The number of threads of the default thread pool.

use std::fmt;
use std::str::FromStr;

/// The number of threads of a pool, 1 to 1024, which may grow with load: `4`, or `2-128`.
///
/// ```
/// use chronorb_orb::ThreadCount;
///
/// let fixed = ThreadCount::from(4);
/// assert_eq!((fixed.least(), fixed.most()), (4, 4));
/// let growing: ThreadCount = "2-128".parse()?;
/// assert_eq!((growing.least(), growing.most()), (2, 128));
/// # Ok::<(), chronorb_orb::NotThreadCount>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ThreadCount {
    least: u32,
    most: u32,
}

impl ThreadCount {
    /// The default: one thread stays with a busy connection while the other waits for all. 128 are
    /// enough for as many busy connections.
    pub(super) const DEFAULT: Self = Self {
        least: 2,
        most: 128,
    };

    /// Returns a number that grows from `least` to `most`. `None` if `least` is 0 or greater than
    /// `most`, or `most` is greater than 1024.
    pub fn new(least: u32, most: u32) -> Option<Self> {
        (0 < least && least <= most && most <= MOST).then_some(Self { least, most })
    }

    /// The number of threads that the pool always has.
    pub fn least(self) -> u32 {
        self.least
    }

    /// The greatest number of threads.
    pub fn most(self) -> u32 {
        self.most
    }
}

impl From<u32> for ThreadCount {
    /// Returns a fixed number, of at least 1 and at most 1024.
    fn from(threads: u32) -> Self {
        let threads = threads.clamp(1, MOST);
        Self {
            least: threads,
            most: threads,
        }
    }
}

impl FromStr for ThreadCount {
    type Err = NotThreadCount;

    fn from_str(text: &str) -> Result<Self, NotThreadCount> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim_ascii().parse().ok();
        number(least)
            .zip(number(most))
            .and_then(|(least, most)| Self::new(least, most))
            .ok_or_else(|| NotThreadCount(text.to_owned()))
    }
}

/// A text that is no number of threads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotThreadCount(String);

impl fmt::Display for NotThreadCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "{text:?} is not a number from 1 to {MOST}, or two such as 2-128"
        )
    }
}

impl std::error::Error for NotThreadCount {}

const MOST: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_fixed_and_two_are_bounds() {
        let parsed = |text: &str| text.parse::<ThreadCount>().ok();
        assert_eq!(parsed("4"), Some(ThreadCount::from(4)));
        assert_eq!(parsed("2-128"), ThreadCount::new(2, 128));
        assert_eq!(parsed("3 - 3"), Some(ThreadCount::from(3)));
        for text in [
            "", "0", "1025", "4-2", "0-4", "2-1025", "-4", "4-", "2-3-4", "two",
        ] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_of_programs_are_brought_within_the_bounds() {
        assert_eq!(ThreadCount::from(0), ThreadCount::from(1));
        assert_eq!(ThreadCount::from(u32::MAX).most(), 1024);
    }
}
