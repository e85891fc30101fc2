//! Figures as people read them.

use std::time::Duration;

/// A time given in µs, with three digits and its unit: `87.2 µs`, `9.81 ms`, `1.20 s`.
pub fn time(us: f64) -> String {
    let (value, unit) = if us < 999.5 {
        (us, "µs")
    } else if us < 999_500.0 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    format!("{} {unit}", three_digits(value))
}

/// A time that somebody set, without needless digits: `20 µs`, `1 ms`, `10 s`.
pub fn setting(duration: Duration) -> String {
    let us = duration.as_secs_f64() * 1e6;
    let (value, unit) = if us < 1e3 {
        (us, "µs")
    } else if us < 1e6 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    format!("{value} {unit}")
}

/// How long something takes, about: `less than 1 s`, `12 s`, `4 min`, `1 min 30 s`.
pub fn span(length: Duration) -> String {
    let seconds = length.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, 0) => "less than 1 s".to_owned(),
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// A ratio, with two digits below ten and none above: `3.4`, `109`.
pub fn factor(ratio: f64) -> String {
    if ratio < 9.95 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.0}")
    }
}

/// A number with its thousands apart: `16 204`, with no-break spaces.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        let texts = [0.0, 9.999, 87.23, 999.4, 999.6, 9_812.0, 1_200_000.0].map(time);
        assert_eq!(
            texts,
            [
                "0.00 µs", "10.0 µs", "87.2 µs", "999 µs", "1.00 ms", "9.81 ms", "1.20 s"
            ]
        );
    }

    #[test]
    fn settings_have_no_needless_digits() {
        let texts =
            [20, 1_000, 1_500, 50_000, 10_000_000].map(|us| setting(Duration::from_micros(us)));
        assert_eq!(texts, ["20 µs", "1 ms", "1.5 ms", "50 ms", "10 s"]);
    }

    #[test]
    fn spans_are_told_in_whole_seconds() {
        let texts = [0.2, 12.4, 89.7, 240.0].map(|s| span(Duration::from_secs_f64(s)));
        assert_eq!(texts, ["less than 1 s", "12 s", "1 min 30 s", "4 min"]);
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        let texts = [7, 180, 16_204, 1_000_000].map(count);
        assert_eq!(texts, ["7", "180", "16\u{a0}204", "1\u{a0}000\u{a0}000"]);
    }

    #[test]
    fn factors_have_a_decimal_only_when_small() {
        assert_eq!([1.04, 9.96, 109.3].map(factor), ["1.0", "10", "109"]);
    }
}
