//! An event as a line of text.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chronorb_rt::is_hidden;
use tracing::Event;
use tracing::field::{Field, Visit};

/// The fields of an event.
#[derive(Default)]
struct Fields {
    /// The time of the event, which the ORB's events carry, because they are reported later.
    time: Option<Duration>,
    cause: String,
    message: String,
    rest: String,
}

/// Writes an event to standard error. A failure is ignored, because there is no place to report it.
#[allow(
    clippy::print_stderr,
    reason = "the one place that writes to standard error"
)]
pub(super) fn write(event: &Event<'_>) {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let mut line = String::new();
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    };
    render(
        &mut line,
        fields.time.unwrap_or_else(now),
        (event.metadata().level().as_str(), event.metadata().target()),
        &fields,
    );
    // As one system call, so that lines of several processes do not mix.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn render(line: &mut String, time: Duration, (level, target): (&str, &str), fields: &Fields) {
    let _ = write!(line, "{} {level:5} {target}: ", Utc(time));
    let parts = [&fields.cause, &fields.message];
    let mut parts = parts.into_iter().filter(|part| !part.is_empty());
    if let Some(first) = parts.next() {
        escape(line, first);
    }
    for part in parts {
        line.push_str(": ");
        escape(line, part);
    }
    escape(line, &fields.rest);
    line.push('\n');
}

/// Adds a text, which a peer may have chosen, without characters that are not shown.
fn escape(line: &mut String, text: &str) {
    for c in text.chars() {
        if is_hidden(c) {
            line.extend(c.escape_default())
        } else {
            line.push(c)
        }
    }
}

impl Fields {
    fn add(&mut self, name: &str, value: fmt::Arguments<'_>) {
        let _ = match name {
            "cause" => self.cause.write_fmt(value),
            "message" => self.message.write_fmt(value),
            _ => {
                let _ = write!(self.rest, " {name}=");
                self.rest.write_fmt(value)
            }
        };
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            name @ ("cause" | "message") => self.add(name, format_args!("{value}")),
            _ if value.is_empty() => {}
            name if value.contains([' ', '"', '=']) => self.add(name, format_args!("{value:?}")),
            name => self.add(name, format_args!("{value}")),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if value != 0 || field.name() != "number" {
            self.add(field.name(), format_args!("{value}"));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "time_ns" => self.time = Some(Duration::from_nanos(value)),
            name => self.add(name, format_args!("{value}")),
        }
    }
}

/// A time since 1970 as RFC 3339 has it, in milliseconds.
struct Utc(Duration);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        let millis = self.0.subsec_millis();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

/// Year, month and day of a number of days since 1970: Howard Hinnant's `civil_from_days`, for days
/// that are not before.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the day of a leap year is the last.
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Utc(Duration::from_secs(seconds)).to_string(), text);
        }
    }

    #[test]
    fn what_a_peer_chose_cannot_begin_a_line() {
        let mut line = String::new();
        let fields = Fields {
            cause: "panicked servant".to_owned(),
            message: "a\nb".to_owned(),
            rest: " peer=x".to_owned(),
            time: None,
        };
        render(&mut line, Duration::ZERO, ("WARN", "chronorb"), &fields);
        assert_eq!(
            line,
            "1970-01-01T00:00:00.000Z WARN  chronorb: panicked servant: a\\nb peer=x\n"
        );
    }
}
