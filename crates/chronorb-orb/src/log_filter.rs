//! The selection of events to write.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// `-ORBLog`: a level, and levels for targets beside it, as `warn,rustls=off`.
///
/// Levels are `off`, `error`, `warn`, `info`, `debug` and `trace`. A target is that of events of
/// `tracing`; the ORB's is `chronorb`. The longest target that an event's begins with counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFilter {
    otherwise: LevelFilter,
    targets: Vec<(String, LevelFilter)>,
}

/// A text is no [`LogFilter`].
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "{0:?} is not a level (off, error, warn, info, debug, trace), nor TARGET=LEVEL; an example is \
     warn,chronorb=info"
)]
pub struct FilterError(String);

impl Default for LogFilter {
    fn default() -> Self {
        Self {
            otherwise: LevelFilter::WARN,
            targets: Vec::new(),
        }
    }
}

impl LogFilter {
    pub(crate) fn allows(&self, target: &str, level: &Level) -> bool {
        let matching = self.targets.iter().filter(|(of, _)| is_within(target, of));
        let longest = matching.max_by_key(|(of, _)| of.len());
        longest.map_or(self.otherwise, |(_, level)| *level) >= *level
    }

    /// The greatest level that any target has.
    pub(crate) fn most(&self) -> LevelFilter {
        let levels = self.targets.iter().map(|(_, level)| *level);
        levels.fold(self.otherwise, LevelFilter::max)
    }
}

/// Whether a target is another one, or a module within it.
fn is_within(target: &str, of: &str) -> bool {
    let rest = target.strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl FromStr for LogFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        let mut is_first = true;
        for part in text.split(',').map(str::trim) {
            let wrong = || FilterError(part.to_owned());
            let level = |level: &str| match level.to_ascii_lowercase().as_str() {
                "off" => Ok(LevelFilter::OFF),
                "error" => Ok(LevelFilter::ERROR),
                "warn" => Ok(LevelFilter::WARN),
                "info" => Ok(LevelFilter::INFO),
                "debug" => Ok(LevelFilter::DEBUG),
                "trace" => Ok(LevelFilter::TRACE),
                _ => Err(wrong()),
            };
            match part.split_once('=') {
                None => filter.otherwise = level(part)?,
                Some((target, of)) if !target.trim().is_empty() => {
                    if is_first {
                        // Only the named targets are wanted.
                        filter.otherwise = LevelFilter::OFF;
                    }
                    filter
                        .targets
                        .push((target.trim().to_owned(), level(of.trim())?));
                }
                Some(_) => return Err(wrong()),
            }
            is_first = false;
        }
        Ok(filter)
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.otherwise)?;
        self.targets
            .iter()
            .try_for_each(|(target, level)| write!(f, ",{target}={level}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> LogFilter {
        text.parse().expect(text)
    }

    #[test]
    fn the_longest_target_counts() {
        let filter = filter("warn, chronorb=debug, chronorb::rio=off, rustls=error");
        assert!(filter.allows("chronorb", &Level::DEBUG));
        assert!(!filter.allows("chronorb::rio::plan", &Level::ERROR));
        assert!(filter.allows("chronorbits", &Level::WARN));
        assert!(!filter.allows("chronorbits", &Level::INFO));
        assert!(!filter.allows("rustls::common", &Level::WARN));
        assert_eq!(filter.most(), LevelFilter::DEBUG);
    }

    #[test]
    fn a_target_alone_is_all_that_is_wanted() {
        let filter = filter("chronorb=INFO");
        assert!(filter.allows("chronorb", &Level::INFO));
        assert!(!filter.allows("other", &Level::ERROR));
        assert!(!self::filter("off").allows("chronorb", &Level::ERROR));
    }

    #[test]
    fn what_is_no_filter_is_refused_with_what_is() {
        for text in ["", "loud", "warn,", "=info", "chronorb=loud"] {
            let error = text.parse::<LogFilter>().expect_err(text);
            assert!(error.to_string().contains("warn,chronorb=info"), "{error}");
        }
    }
}
