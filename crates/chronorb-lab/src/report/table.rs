//! The table of figures.

use std::fmt::Write;

use crate::comparison::{Comparison, Setup};
use crate::stats::Summary;
use crate::units;

/// The table of figures as text, one line for each class in each phase.
#[must_use]
pub fn text_table(comparison: &Comparison) -> String {
    let mut text = format!("{:24}", "");
    for column in COLUMNS {
        let _ = write!(text, "{column:>10}");
    }
    text.push('\n');
    for (phase, classes) in rows(comparison) {
        let _ = writeln!(text, "{phase}");
        for (class, cells) in classes {
            let _ = write!(text, "  {class:22}");
            for cell in cells {
                let _ = write!(text, "{cell:>10}");
            }
            text.push('\n');
        }
    }
    text
}

/// The figures of one class: its name and a cell for each of the [`COLUMNS`].
pub(super) type ClassRow = (String, [String; 6]);

/// Both phases, each with its name and its classes.
pub(super) fn rows(comparison: &Comparison) -> [(&'static str, [ClassRow; 2]); 2] {
    let setup = &comparison.setup;
    [
        ("without priorities", &comparison.without_priorities),
        ("with priorities", &comparison.with_priorities),
    ]
    .map(|(name, phase)| {
        let classes = [
            (high_class(setup), cells(&phase.high.summary())),
            (low_class(setup), cells(&phase.low.summary())),
        ];
        (name, classes)
    })
}

/// The headings of the figures.
pub(super) const COLUMNS: [&str; 6] = ["calls", "p50", "p99", "p99.9", "max", "jitter"];

fn cells(summary: &Summary) -> [String; 6] {
    [
        units::count(summary.calls),
        units::time(summary.p50_us),
        units::time(summary.p99_us),
        units::time(summary.p999_us),
        units::time(summary.max_us),
        units::time(summary.jitter_us),
    ]
}

fn high_class(setup: &Setup) -> String {
    format!("high, {:.0} Hz", 1.0 / setup.period.as_secs_f64())
}

fn low_class(setup: &Setup) -> String {
    format!(
        "low, {} threads",
        setup.low_clients * setup.threads_per_low_client
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::comparison;

    #[test]
    fn the_table_has_a_line_for_each_class_of_each_phase() {
        let table = text_table(&comparison(10_000, 100));
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 7);
        let words: Vec<Vec<_>> = lines
            .iter()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words[0], ["calls", "p50", "p99", "p99.9", "max", "jitter"]);
        assert_eq!(lines[1], "without priorities");
        assert_eq!(words[2][..6], ["high,", "20", "Hz", "200", "11.5", "ms"]);
        assert_eq!(words[3][..3], ["low,", "32", "threads"]);
        assert_eq!(lines[4], "with priorities");
        assert_eq!(words[5][..6], ["high,", "20", "Hz", "200", "115", "µs"]);
    }

    #[test]
    fn columns_line_up() {
        let table = text_table(&comparison(10_000, 100));
        let widths: Vec<_> = table
            .lines()
            .map(|line| line.chars().count())
            .filter(|width| *width > 30)
            .collect();
        assert_eq!(widths.len(), 5);
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    }
}
