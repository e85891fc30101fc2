//! One figure in both runs.

use std::collections::BTreeMap;

use chronorb_report::Unit;
use serde_json::{Value, json};

use super::rows::{FigureKind, RowKey};

/// A figure of a row that both runs have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) row: RowKey,
    pub(super) figure: String,
    /// The figure in the first run.
    pub(super) a: f64,
    /// The figure in the second run.
    pub(super) b: f64,
}

impl Change {
    /// Returns the ratio of the second figure to the first; nothing if only one of them is zero or
    /// negative.
    pub(super) fn ratio(&self) -> Option<f64> {
        if self.a == self.b {
            return Some(1.0);
        }
        let ratio = self.b / self.a;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }

    /// Returns the size of the change, the same up and down: 0 without a change, and infinite
    /// without a ratio.
    pub(super) fn size(&self) -> f64 {
        self.ratio().map_or(f64::INFINITY, |ratio| ratio.ln().abs())
    }

    /// Whether the change is greater than so many hundredths of the lesser figure.
    pub(super) fn exceeds(&self, percent: f64) -> bool {
        self.size() > (1.0 + percent / 100.0).ln()
    }

    /// Returns the deterioration in hundredths, which is negative for an improvement; nothing for a
    /// figure that has no better direction.
    pub(super) fn worse_by_percent(&self) -> Option<f64> {
        let (from, to) = match FigureKind::of(&self.figure) {
            FigureKind::Time | FigureKind::Memory => (self.a, self.b),
            FigureKind::Rate => (self.b, self.a),
            FigureKind::Share | FigureKind::Other => return None,
        };
        if from == to {
            return Some(0.0);
        }
        // From zero on, anything is infinitely more.
        let percent = (to / from - 1.0) * 100.0;
        (!percent.is_nan()).then_some(percent)
    }

    /// Returns the identity of the row for people: words by themselves, numbers with their names.
    pub(super) fn row_name(&self) -> String {
        let parts = self.row.iter().map(|(name, value)| match value.as_str() {
            "true" => name.clone(),
            "false" => format!("not {name}"),
            number if number.parse::<f64>().is_ok() => format!("{name} {number}"),
            word => word.to_owned(),
        });
        let parts: Vec<_> = parts.collect();
        if parts.is_empty() {
            "all".to_owned()
        } else {
            parts.join(", ")
        }
    }

    /// Returns both figures with their unit, and the ratio of the second to the first.
    pub(super) fn cells(&self) -> [String; 3] {
        let ratio = self.ratio();
        [
            value(&self.figure, self.a),
            value(&self.figure, self.b),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ]
    }

    /// Returns the change for programs.
    pub(super) fn figures(&self) -> Value {
        json!({
            "row": self.row.iter().cloned().collect::<BTreeMap<_, _>>(),
            "figure": self.figure,
            "a": self.a,
            "b": self.b,
            "ratio": self.ratio(),
            "worse": self.worse_by_percent().map(|percent| percent > 0.0),
        })
    }
}

/// Formats a figure with the unit in its name.
fn value(name: &str, number: f64) -> String {
    let (unit, factor) = Unit::of_figure(name);
    if number.abs() < MOST {
        unit.format(number * factor)
    } else {
        format!("{number:e}")
    }
}

/// The limit above which a number has an exponent.
const MOST: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::*;

    fn change(figure: &str, a: f64, b: f64) -> Change {
        Change {
            row: vec![
                ("class".to_owned(), "high".to_owned()),
                ("low_clients".to_owned(), "50".to_owned()),
                ("loaded".to_owned(), "true".to_owned()),
            ],
            figure: figure.to_owned(),
            a,
            b,
        }
    }

    #[test]
    fn times_and_memory_are_worse_when_they_grow_and_rates_when_they_fall() {
        let worse = |figure, a, b| change(figure, a, b).worse_by_percent().map(f64::round);
        assert_eq!(worse("p99_us", 100.0, 120.0), Some(20.0));
        assert_eq!(worse("p99_us", 120.0, 60.0), Some(-50.0));
        assert_eq!(worse("rest_octets", 0.0, 3.0), Some(f64::INFINITY));
        assert_eq!(worse("calls_per_s", 120.0, 100.0), Some(20.0));
        assert_eq!(worse("calls_per_s", 0.0, 0.0), Some(0.0));
        assert_eq!(worse("busy_percent", 1.0, 90.0), None);
        assert_eq!(worse("calls", 1.0, 90.0), None);
    }

    #[test]
    fn a_change_is_as_great_up_as_down_and_greatest_from_nothing() {
        let size = |a, b| change("p99_us", a, b).size();
        assert_eq!(size(1.0, 2.0), size(2.0, 1.0));
        assert_eq!(size(0.0, 0.0), 0.0);
        assert!(size(0.0, 1.0).is_infinite() && size(-1.0, 1.0).is_infinite());
        assert!(!change("p99_us", 100.0, 110.0).exceeds(10.0));
        assert!(change("p99_us", 100.0, 110.1).exceeds(10.0));
        assert!(change("p99_us", 110.1, 100.0).exceeds(10.0));
    }

    #[test]
    fn figures_have_their_units() {
        assert_eq!(
            change("p99_us", 1_500.0, 12.0).cells(),
            ["1.50 ms", "12.0 µs", "0.01"]
        );
        assert_eq!(
            change("p50_ns", 20.0, 0.0).cells()[..2],
            ["20.0 ns", "0 µs"]
        );
        assert_eq!(
            change("busy_percent", 99.5, -1.5).cells()[..2],
            ["99.5 %", "-1.50 %"]
        );
        assert_eq!(
            change("calls", 12_345.0, 1e300).cells()[..2],
            ["12\u{a0}345", "1e300"]
        );
        assert_eq!(
            change("calls", 1.0, 1.0).row_name(),
            "high, low_clients 50, loaded"
        );
    }
}
