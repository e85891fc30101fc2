//! One figure in both runs.

use chronorb_report::Unit;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::rows::{Key, Kind};

/// A figure of a row that both runs have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) row: Key,
    pub(super) figure: String,
    /// In the first run.
    pub(super) a: f64,
    /// In the second.
    pub(super) b: f64,
}

impl Change {
    /// The figure of the second run by that of the first; nothing where that says nothing: where only one of them is
    /// zero, or only one is negative.
    pub(super) fn ratio(&self) -> Option<f64> {
        if self.a == self.b {
            return Some(1.0);
        }
        let ratio = self.b / self.a;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }

    /// How much it changed, up or down alike: 0 for nothing, infinite where there is no ratio.
    pub(super) fn size(&self) -> f64 {
        self.ratio().map_or(f64::INFINITY, |ratio| ratio.ln().abs())
    }

    /// Whether it changed by more than so many hundredths, of the lesser of both.
    pub(super) fn exceeds(&self, percent: f64) -> bool {
        self.size() > (1.0 + percent / 100.0).ln()
    }

    /// By how many hundredths it is worse; negative where it is better, and nothing where neither is.
    pub(super) fn worse_by_percent(&self) -> Option<f64> {
        let (from, to) = match Kind::of(&self.figure) {
            Kind::Time | Kind::Memory => (self.a, self.b),
            Kind::Rate => (self.b, self.a),
            Kind::Share | Kind::Other => return None,
        };
        match from == to {
            true => Some(0.0),
            // From zero on, anything is infinitely more.
            false => Some((to / from - 1.0) * 100.0).filter(|percent| !percent.is_nan()),
        }
    }

    /// What identifies the row, for people.
    pub(super) fn row_name(&self) -> String {
        row_name(&self.row)
    }

    /// Both figures, and the second by the first.
    pub(super) fn cells(&self) -> [String; 3] {
        let ratio = self.ratio();
        [
            value(&self.figure, self.a),
            value(&self.figure, self.b),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ]
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let row: std::collections::BTreeMap<_, _> = self.row.iter().cloned().collect();
        map.serialize_entry("row", &row)?;
        map.serialize_entry("figure", &self.figure)?;
        map.serialize_entry("a", &self.a)?;
        map.serialize_entry("b", &self.b)?;
        map.serialize_entry("ratio", &self.ratio())?;
        map.serialize_entry(
            "worse",
            &self.worse_by_percent().map(|percent| percent > 0.0),
        )?;
        map.end()
    }
}

/// What identifies a row: words stand for themselves, numbers with their names.
fn row_name(row: &Key) -> String {
    let told = row.iter().map(|(name, value)| match value.as_str() {
        "true" => name.clone(),
        "false" => format!("not {name}"),
        number if number.parse::<f64>().is_ok() => format!("{name} {number}"),
        word => word.to_owned(),
    });
    match row.is_empty() {
        true => "all".to_owned(),
        false => told.collect::<Vec<_>>().join(", "),
    }
}

/// A figure with its unit.
fn value(name: &str, number: f64) -> String {
    let (unit, factor) = Unit::of_figure(name);
    match number.abs() < MOST {
        true => unit.format(number * factor),
        false => format!("{number:e}"),
    }
}

/// More would be a row of digits.
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
    fn figures_are_told_in_their_units() {
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
