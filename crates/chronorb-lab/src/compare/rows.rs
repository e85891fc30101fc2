//! The matching of the rows of two files, and their figures.
//!
//! The rule, for the fields of all rows of both files:
//!
//! 1. Words and truth values identify a row. Lists are ignored.
//! 2. Numbers with a unit at the end of their names (`_us`, `_percent`, `_per_s` …) and fractions
//!    are figures.
//! 3. Other whole numbers are settings, and identify a row, if both files have them in common: more
//!    than half of the values of the file with fewer values are in the other. Otherwise they are
//!    counts, and so figures.
//! 4. `round` is a repetition. Rows that differ by it alone are one, with the median of each
//!    figure.
//! 5. If rows cannot be told apart by all that, whole numbers with a unit identify them, too, if
//!    both files have the same values. Rows that are still the same are one, with the median of
//!    each figure.

use std::collections::{BTreeMap, BTreeSet};

use super::run::{Field, Fields};
use crate::stats::median;

/// The identity of a row: names, and their values as text.
pub(super) type RowKey = Vec<(String, String)>;

/// The figures of a row, by name.
pub(super) type RowFigures = BTreeMap<String, f64>;

/// Returns the rows of both files, each with its figures.
pub(super) fn matched(first: &[Fields], second: &[Fields]) -> [BTreeMap<RowKey, RowFigures>; 2] {
    let mut settings: BTreeSet<String> = BTreeSet::new();
    let mut with_unit = Vec::new();
    for (name, [a, b]) in whole_numbers(first, second) {
        if FigureKind::of(&name) != FigureKind::Other {
            if a == b {
                with_unit.push(name);
            }
        } else if 2 * a.intersection(&b).count() > a.len().min(b.len()) {
            settings.insert(name);
        }
    }
    let ambiguous = |settings: &BTreeSet<String>| {
        [first, second].into_iter().any(|rows| {
            let mut seen = BTreeSet::new();
            rows.iter()
                .any(|row| !seen.insert((key(row, settings), row.get(ROUND).map(Field::shown))))
        })
    };
    for name in with_unit {
        if !ambiguous(&settings) {
            break;
        }
        settings.insert(name);
    }
    [first, second].map(|rows| summarised(rows, &settings))
}

/// The kind of a figure, by the end of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FigureKind {
    /// A time: less is better.
    Time,
    /// An amount of memory: less is better.
    Memory,
    /// A number or an amount in a second: more is better.
    Rate,
    /// A share: neither is better.
    Share,
    /// Any other figure: neither is better.
    Other,
}

impl FigureKind {
    /// Returns the kind of a figure with this name.
    pub(super) fn of(name: &str) -> Self {
        if name.ends_with("_per_s") {
            return Self::Rate;
        }
        match name.rsplit(['_', '.']).next().unwrap_or_default() {
            "ns" | "us" | "ms" | "s" => Self::Time,
            "octets" | "bytes" | "kib" | "mib" => Self::Memory,
            "percent" => Self::Share,
            _ => Self::Other,
        }
    }
}

/// Returns the fields, except `round`, that have only whole numbers, each with its values in both
/// files.
fn whole_numbers(first: &[Fields], second: &[Fields]) -> BTreeMap<String, [BTreeSet<u64>; 2]> {
    let mut columns: BTreeMap<String, [BTreeSet<u64>; 2]> = BTreeMap::new();
    let mut others = BTreeSet::from([ROUND]);
    for (file, rows) in [first, second].into_iter().enumerate() {
        for (name, field) in rows.iter().flatten() {
            match field {
                // The bits suffice to compare for equality.
                Field::Number(number, true) => {
                    columns.entry(name.clone()).or_default()[file].insert(number.to_bits());
                }
                Field::Number(_, false) | Field::Word(_) | Field::List(_) => {
                    others.insert(name);
                }
            }
        }
    }
    columns.retain(|name, _| !others.contains(name.as_str()));
    columns
}

fn key(row: &Fields, settings: &BTreeSet<String>) -> RowKey {
    let identifies = |(name, field): &(&String, &Field)| match field {
        Field::Word(_) => true,
        Field::Number(..) => settings.contains(*name),
        Field::List(_) => false,
    };
    let fields = row.iter().filter(identifies);
    fields
        .map(|(name, field)| (name.clone(), field.shown()))
        .collect()
}

fn summarised(rows: &[Fields], settings: &BTreeSet<String>) -> BTreeMap<RowKey, RowFigures> {
    let mut gathered: BTreeMap<RowKey, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for row in rows {
        let figures = gathered.entry(key(row, settings)).or_default();
        for (name, field) in row {
            if let Field::Number(number, _) = field
                && name != ROUND
                && !settings.contains(name)
            {
                figures.entry(name.clone()).or_default().push(*number);
            }
        }
    }
    let medians = |figures: BTreeMap<String, Vec<f64>>| {
        let medians = figures.into_iter();
        medians
            .filter_map(|(name, values)| Some((name, median(values.into_iter())?)))
            .collect()
    };
    let gathered = gathered.into_iter();
    gathered
        .map(|(key, figures)| (key, medians(figures)))
        .collect()
}

/// The field that tells repetitions apart.
const ROUND: &str = "round";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::run::RecordedRun;
    use super::*;

    fn rows(rows: &Value) -> Vec<Fields> {
        RecordedRun::parse("a.json", &json!({"experiment": "x", "rows": rows}))
            .unwrap()
            .rows
    }

    fn compared(first: &Value, second: &Value) -> [BTreeMap<RowKey, RowFigures>; 2] {
        matched(&rows(first), &rows(second))
    }

    /// The keys of a file, as text.
    fn keys(rows: &BTreeMap<RowKey, RowFigures>) -> Vec<String> {
        let text = |key: &RowKey| {
            key.iter()
                .map(|(n, v)| format!("{n}={v}"))
                .collect::<Vec<_>>()
        };
        rows.keys().map(|key| text(key).join(" ")).collect()
    }

    #[test]
    fn words_and_common_whole_numbers_identify() {
        let first = json!([
            {"class": "high", "loaded": true, "low_clients": 1, "p99_us": 10.5},
            {"class": "high", "loaded": true, "low_clients": 10, "p99_us": 11.5},
            {"class": "high", "loaded": true, "low_clients": 50, "p99_us": 11.5},
        ]);
        let second = json!([
            {"class": "high", "loaded": true, "low_clients": 1, "p99_us": 12.5},
            {"class": "high", "loaded": true, "low_clients": 10, "p99_us": 12.5},
            {"class": "high", "loaded": true, "low_clients": 25, "p99_us": 13.5},
        ]);
        let [first, second] = compared(&first, &second);
        let expected = [1, 10, 50].map(|n| format!("class=high loaded=true low_clients={n}"));
        assert_eq!(keys(&first), expected);
        assert_eq!(keys(&second)[..2], expected[..2]);
        assert_eq!(keys(&second).len(), 3);
    }

    #[test]
    fn counts_do_not_identify() {
        let of = |base: u32| {
            json!([
                {"case": "a", "calls": base, "refused_requests": base + 7, "p50_us": 1.5},
                {"case": "b", "calls": base + 1, "refused_requests": 0, "p50_us": 1.5},
            ])
        };
        let [first, second] = compared(&of(1_000), &of(2_000));
        assert_eq!(keys(&first), ["case=a", "case=b"]);
        assert_eq!(keys(&first), keys(&second));
        let figures: Vec<_> = first.values().next().unwrap().keys().collect();
        assert_eq!(figures, ["calls", "p50_us", "refused_requests"]);
    }

    #[test]
    fn rounds_are_one_row_with_the_medians() {
        let of = |rounds: &[f64]| {
            let row =
                |(round, us): (usize, &f64)| json!({"way": "recv", "round": round, "p50_us": us});
            Value::Array(rounds.iter().enumerate().map(row).collect())
        };
        let [first, second] = compared(&of(&[1.5, 9.5, 2.5]), &of(&[3.5, 4.5]));
        assert_eq!(first.values().next().unwrap()["p50_us"], 2.5);
        assert_eq!(second.values().next().unwrap()["p50_us"], 4.0);
        assert_eq!(keys(&first), keys(&second));
    }

    #[test]
    fn settings_with_a_unit_identify_where_nothing_else_does() {
        let of = |base: f64| {
            json!([
                {"strategy": "lf", "work_us": 0, "elapsed_ms": 100, "calls_per_s": base},
                {"strategy": "lf", "work_us": 100, "elapsed_ms": 900, "calls_per_s": base / 2.0},
            ])
        };
        let [first, second] = compared(&of(100.5), &of(120.5));
        assert_eq!(keys(&first).len(), 2, "{first:?}");
        assert_eq!(keys(&first), keys(&second));
        let alone = json!([{"strategy": "lf", "work_us": 5, "calls_per_s": 1.5}]);
        let [first, _] = compared(&alone, &alone);
        assert_eq!(keys(&first), ["strategy=lf"], "one row needs nothing more");
    }

    #[test]
    fn units_are_told_from_the_ends_of_names() {
        let kinds = [
            "p50_us",
            "mib_per_s",
            "cpu_percent",
            "octets_by_kernel",
            "octets.allocated",
            "rest_octets",
            "us",
        ];
        assert_eq!(
            kinds.map(FigureKind::of),
            [
                FigureKind::Time,
                FigureKind::Rate,
                FigureKind::Share,
                FigureKind::Other,
                FigureKind::Other,
                FigureKind::Memory,
                FigureKind::Time
            ]
        );
    }

    #[test]
    fn nothing_matches_nothing() {
        let [first, second] = compared(&json!([]), &json!([{}]));
        assert!(first.is_empty());
        assert_eq!(second.len(), 1);
    }
}
