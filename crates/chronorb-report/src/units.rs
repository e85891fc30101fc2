//! Quantities as people read them: three significant digits and a fitting unit.

use std::time::Duration;

/// The kind of a quantity, which decides its format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// A time in µs.
    Time,
    /// A number of things, rounded to a whole one.
    Count,
    /// A number of bytes.
    Bytes,
    /// A percentage.
    Percent,
    /// A ratio or another number without a unit.
    Number,
    /// A number with the unit that is written behind it.
    Of(&'static str),
}

impl Unit {
    /// Formats a quantity as it stands in tables: `87.2 µs`, `16 204`, `1.25`.
    #[must_use]
    pub fn format(self, value: f64) -> String {
        match self {
            Self::Time => time(value),
            Self::Count if value < 0.0 => format!("-{}", Self::Count.format(-value)),
            // The cast saturates.
            Self::Count => count(value.round() as u64),
            Self::Bytes => bytes(value),
            Self::Percent => format!("{} %", digits(value)),
            Self::Number => digits(value),
            Self::Of(unit) => format!("{} {unit}", digits(value)),
        }
    }

    /// Formats a mark of an axis, without needless zeros: `10 µs`, `0.5`.
    #[must_use]
    pub fn mark(self, value: f64) -> String {
        let text = self.format(value);
        let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
        let number = if number.contains('.') {
            number.trim_end_matches('0').trim_end_matches('.')
        } else {
            number
        };
        format!("{number} {unit}").trim_end().to_owned()
    }

    /// Returns the unit that the end of a figure's name stands for, as `_us` for times, and the
    /// factor that converts its values: microseconds for times, bytes for sizes.
    #[must_use]
    pub fn of_figure(name: &str) -> (Self, f64) {
        let units = [
            ("_us", Self::Time, 1.0),
            ("_ns", Self::Time, 1e-3),
            ("_ms", Self::Time, 1e3),
            ("mib_per_s", Self::Of("MiB/s"), 1.0),
            ("_per_s", Self::Number, 1.0),
            ("_s", Self::Time, 1e6),
            ("_percent", Self::Percent, 1.0),
            ("_octets", Self::Bytes, 1.0),
            ("_bytes", Self::Bytes, 1.0),
            ("_kib", Self::Bytes, 1024.0),
        ];
        let mut units = units.into_iter();
        let found = units.find(|(end, ..)| name.ends_with(end));
        // Units also stand before a "per": `cpu_us_per_request`.
        let per = || {
            let (before, _) = name.split_once("_per_")?;
            (!before.is_empty()).then(|| Self::of_figure(before))
        };
        match found {
            Some((_, unit, factor)) => (unit, factor),
            None => per().unwrap_or((Self::Number, 1.0)),
        }
    }
}

/// Formats a time given in µs: `87.2 µs`, `9.81 ms`, `250 ns`.
#[must_use]
pub fn time(us: f64) -> String {
    if us < 0.0 {
        return format!("-{}", time(-us));
    }
    let (value, unit) = match us {
        ..0.9995 => (us * 1e3, "ns"),
        ..999.5 => (us, "µs"),
        ..999_500.0 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    };
    if us == 0.0 {
        "0 µs".to_owned()
    } else {
        format!("{} {unit}", digits(value))
    }
}

/// Formats a time that was chosen, without needless digits: `20 µs`, `1.5 ms`, `10 s`.
#[must_use]
pub fn setting(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let (unit_ns, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", ns as f64 / unit_ns)
}

/// Formats the approximate length of work: `less than 1 s`, `12 s`, `4 min`, `1 min 30 s`.
#[must_use]
pub fn span(length: Duration) -> String {
    let seconds = length.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, 0) => "less than 1 s".to_owned(),
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Formats a ratio, with one decimal below ten and none above: `3.4`, `109`.
#[must_use]
pub fn factor(ratio: f64) -> String {
    if ratio < 9.95 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.0}")
    }
}

/// Formats a number with its thousands apart: `16 204`, with no-break spaces.
#[must_use]
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

/// Formats a number of bytes: `108 B`, `64.0 KiB`, `1.50 MiB`.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    match bytes.abs() {
        ..10_000.0 => format!("{} B", Unit::Count.format(bytes)),
        ..1_048_064.0 => format!("{} KiB", digits(bytes / 1024.0)),
        ..1_073_217_536.0 => format!("{} MiB", digits(bytes / 1_048_576.0)),
        _ => format!("{} GiB", digits(bytes / 1_073_741_824.0)),
    }
}

/// Formats a number with three significant digits, and all digits before the point.
#[must_use]
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        ..0.009_995 => format!("{value:.4}"),
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        ..999.5 => format!("{value:.0}"),
        _ => Unit::Count.format(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        let times = [
            (0.0, "0 µs"),
            (0.00025, "0.25 ns"),
            (0.3, "300 ns"),
            (9.999, "10.0 µs"),
            (87.23, "87.2 µs"),
            (999.4, "999 µs"),
            (999.6, "1.00 ms"),
            (9_812.0, "9.81 ms"),
            (1_200_000.0, "1.20 s"),
            (-4.0, "-4.00 µs"),
        ];
        for (us, text) in times {
            assert_eq!(time(us), text);
        }
    }

    #[test]
    fn settings_have_no_needless_digits() {
        let texts =
            [300, 20_000, 1_500_000, 10_000_000_000].map(|ns| setting(Duration::from_nanos(ns)));
        assert_eq!(texts, ["300 ns", "20 µs", "1.5 ms", "10 s"]);
    }

    #[test]
    fn spans_are_whole_seconds() {
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

    #[test]
    fn marks_have_no_needless_zeros() {
        let marks = [
            Unit::Time.mark(10.0),
            Unit::Time.mark(1_500.0),
            Unit::Percent.mark(20.0),
            Unit::Number.mark(0.5),
            Unit::Count.mark(1_000.0),
        ];
        assert_eq!(marks, ["10 µs", "1.5 ms", "20 %", "0.5", "1\u{a0}000"]);
    }

    #[test]
    fn the_name_of_a_figure_tells_its_unit() {
        let format = |name, value| {
            let (unit, factor) = Unit::of_figure(name);
            unit.format(value * factor)
        };
        assert_eq!(format("p99_us", 150.0), "150 µs");
        assert_eq!(format("p50_ns", 12.5), "12.5 ns");
        assert_eq!(format("cpu_us_per_request", 3.0), "3.00 µs");
        assert_eq!(format("calls_per_s", 2_000.0), "2\u{a0}000");
        assert_eq!(format("calls_per_s", 1.5), "1.50");
        assert_eq!(format("mib_per_s", 812.0), "812 MiB/s");
        assert_eq!(format("resident_octets", 2_097_152.0), "2.00 MiB");
        assert_eq!(format("counted_by_expected", 1.0), "1.00");
    }
}
