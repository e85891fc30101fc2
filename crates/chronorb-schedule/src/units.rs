//! Times as people write them, in integers of nanoseconds.

use chronorb_sched::Time;

/// The form of a time, for messages.
pub(crate) const A_TIME: &str = "a time such as \"50 us\", \"2.5 ms\" or \"1 s\"";
/// The form of a period, for messages.
pub(crate) const A_PERIOD: &str = "a period such as \"50 ms\", or a rate such as \"20 Hz\"";
/// The form of a data rate, for messages.
pub(crate) const A_RATE: &str = "a rate such as \"100 Mbit\" or \"2.5 Gbit\"";

/// Returns the nanoseconds of a text such as `2 ms`; fractions of a nanosecond are rounded up.
/// `None` if it is no time, or exceeds 64 bits.
///
/// # Example
/// ```
/// use chronorb_schedule::parse_time;
///
/// assert_eq!(parse_time("2.5 ms"), Some(2_500_000));
/// assert_eq!(parse_time("soon"), None);
/// ```
pub fn parse_time(text: &str) -> Option<Time> {
    let (number, unit) = number_and_unit(text)?;
    let nanos = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        _ => return None,
    };
    let (count, scale) = decimal(number)?;
    let product = count.checked_mul(nanos)?;
    Time::try_from(product.div_ceil(scale)).ok()
}

/// Returns the nanoseconds of a period such as `50 ms` or `20 Hz`; those of a rate are rounded
/// down, to the safe side.
pub(crate) fn parse_period(text: &str) -> Option<Time> {
    let (number, unit) = number_and_unit(text)?;
    let second = match unit {
        "Hz" => 1_000_000_000_u128,
        "kHz" => 1_000_000,
        _ => return parse_time(text),
    };
    let (count, scale) = decimal(number)?;
    let period = second.checked_mul(scale)?.checked_div(count)?;
    Time::try_from(period).ok()
}

/// Returns the bits per second of a text such as `100 Mbit` or `1 Gbit/s`.
pub(crate) fn parse_rate(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let bits = match unit.strip_suffix("/s").unwrap_or(unit) {
        "bit" => 1,
        "kbit" => 1_000,
        "Mbit" => 1_000_000,
        "Gbit" => 1_000_000_000,
        _ => return None,
    };
    let (count, scale) = decimal(number)?;
    let rate = count.checked_mul(bits)? / scale;
    u64::try_from(rate).ok().filter(|rate| *rate > 0)
}

/// Returns a time as people read it, with at most three decimals; for messages.
///
/// # Example
/// ```
/// use chronorb_schedule::readable_time;
///
/// assert_eq!(readable_time(2_500_000), "2.5 ms");
/// assert_eq!(readable_time(50_000), "50 us");
/// ```
pub fn readable_time(nanos: Time) -> String {
    let (unit, name) = match nanos {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (nanos / unit, nanos % unit);
    // A message never shows a time shorter than it is.
    let thousandths = (u128::from(rest) * 1_000).div_ceil(unit.into());
    let (whole, thousandths) = match thousandths {
        1_000 => (whole + 1, 0),
        less => (whole, less),
    };
    if thousandths == 0 {
        return format!("{whole} {name}");
    }
    let decimals = format!("{thousandths:03}");
    format!("{whole}.{} {name}", decimals.trim_end_matches('0'))
}

/// Returns `2.5` and `ms` of `2.5 ms` or `2.5ms`.
fn number_and_unit(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')?;
    let (number, unit) = text.split_at(at);
    Some((number, unit.trim_start()))
}

/// Returns a decimal number as digits, and the power of ten by which they are divided.
fn decimal(text: &str) -> Option<(u128, u128)> {
    const MOST_DIGITS: usize = 20;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_split = fraction.is_empty() != text.contains('.');
    let digits: String = [whole, fraction].concat();
    let digits = digits.replace('_', "");
    let is_number = !whole.is_empty() && is_split && digits.len() <= MOST_DIGITS;
    if !is_number || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let places = fraction.bytes().filter(u8::is_ascii_digit).count();
    let scale = 10_u128.checked_pow(u32::try_from(places).ok()?)?;
    Some((digits.parse().ok()?, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, nanos) in [
            ("2 ms", 2_000_000),
            ("50us", 50_000),
            ("2.5 ms", 2_500_000),
            ("0.000_000_001 s", 1),
            ("1.5 ns", 2),
            ("7 min", 420_000_000_000),
            ("0 ns", 0),
        ] {
            assert_eq!(parse_time(text), Some(nanos), "{text}");
        }
        for text in [
            "", "2", "ms", "-1 ms", "1e3 ms", "1. ms", ".5 ms", "1.2.3 s", "9 h",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        assert_eq!(parse_time("18446744073709551615 ns"), Some(u64::MAX));
        assert_eq!(parse_time("18446744073709551616 ns"), None);
        assert_eq!(parse_time("99999999999999999999 s"), None);
    }

    #[test]
    fn rates_are_periods() {
        assert_eq!(parse_period("20 Hz"), Some(50_000_000));
        assert_eq!(parse_period("3 Hz"), Some(333_333_333));
        assert_eq!(parse_period("0.5 Hz"), Some(2_000_000_000));
        assert_eq!(parse_period("2 kHz"), Some(500_000));
        assert_eq!(parse_period("50 ms"), Some(50_000_000));
        assert_eq!(parse_period("0 Hz"), None);
        assert_eq!(parse_rate("100 Mbit"), Some(100_000_000));
        assert_eq!(parse_rate("2.5 Gbit/s"), Some(2_500_000_000));
        assert_eq!(parse_rate("0 bit"), None);
    }

    #[test]
    fn times_are_readable() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_001, "1.001 us"),
            (2_000_000_001, "2.001 s"),
            (999_999_999, "1000 ms"),
        ] {
            assert_eq!(readable_time(nanos), text);
        }
    }
}
