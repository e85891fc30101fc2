//! Texts for a terminal.

use chronorb_rt::visible;

/// Makes a text visible, because ORBs choose their names.
pub(crate) fn plain(text: &str) -> String {
    visible(text).into_owned()
}

/// Returns the beginning of a text, marked if the end is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let begin: String = text.chars().take(width.saturating_sub(1)).collect();
    begin + "…"
}

/// Returns the end of a text, marked if the beginning is missing.
pub(crate) fn cut_front(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let end = text.chars().skip(length - width.saturating_sub(1));
    "…".chars().chain(end).collect()
}

/// Formats a count in at most 5 characters.
pub(crate) fn count(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        _ => number(count as f64),
    }
}

/// Formats a measured number in at most 5 characters.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if v < 0.05 => "0".to_owned(),
        v if v < 9.95 => format!("{v:.1}"),
        v if v < 9_999.5 => format!("{v:.0}"),
        v if v < 999_500.0 => format!("{:.0}k", v / 1e3),
        v if v < 9.95e6 => format!("{:.1}M", v / 1e6),
        v => format!("{:.0}M", v / 1e6),
    }
}

/// Formats a time, given in microseconds, in at most 5 characters.
pub(crate) fn time(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 999.5 => (us, "us"),
        us if us < 999_500.0 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    match value {
        v if v < 9.95 => format!("{v:.1}{unit}"),
        v => format!("{v:.0}{unit}"),
    }
}

/// Formats numbers as ranges: `0-3,6`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let parts = numbers.chunk_by(|a, b| a + 1 == *b);
    let parts = parts.map(|part| match part {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_where_it_matters_less() {
        assert_eq!(cut("monitor", 7), "monitor");
        assert_eq!(cut("monitor", 4), "mon…");
        assert_eq!(cut_front("127.0.0.1:4000", 6), "…:4000");
        assert_eq!(cut_front("h:1", 6), "h:1");
        assert_eq!((cut("ab", 0), cut_front("ab", 0)), ("…".into(), "…".into()));
    }

    #[test]
    fn numbers_and_times_have_five_characters_at_most() {
        for exponent in 0..9 {
            for digits in [1.0, 4.44, 9.94, 9.949, 9.95, 9.9951, 9.9999] {
                let value = digits * 10_f64.powi(exponent - 1);
                assert!(number(value).len() <= 5, "{value}: {}", number(value));
                assert!(time(value).len() <= 5, "{value}: {}", time(value));
            }
        }
        assert_eq!([0, 9, 9_999, 10_000].map(count), ["0", "9", "9999", "10k"]);
        assert_eq!(
            [0.0, 3.21, 250.0, 12_345.0].map(number),
            ["0", "3.2", "250", "12k"]
        );
        assert_eq!(
            [0.8, 42.0, 1_250.0, 3e7].map(time),
            ["0.8us", "42us", "1.2ms", "30s"]
        );
    }

    #[test]
    fn neighbours_are_told_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 4, 6, 7]), "0-2,4,6-7");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[]), "");
    }
}
