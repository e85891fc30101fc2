//! The parts that the reports of experiments share.

mod columns;
pub(crate) mod folder;
mod heading;
mod percentiles;
mod pooled;
pub(crate) mod rights;
pub(crate) mod rounds;

use chronorb_report::{Axis, Document, Mark, Series, Unit};

use crate::environment::Environment;
use crate::experiment::Findings;
use crate::stats::Record;

pub(crate) use columns::{Column, by_columns, table_of};
pub(crate) use heading::capitalised;
pub(crate) use percentiles::by_percentile;
pub(crate) use pooled::PooledRecords;

/// Begins the report of an experiment: the finding, its subject, caveats and claims.
pub(crate) fn begin(findings: &impl Findings, lead: &str) -> Document {
    Document::new(findings.headline())
        .lead(lead)
        .caveats(findings.caveats())
        .claims(findings.claims())
}

/// Ends the report of an experiment: how and where it was measured, and how to repeat it.
pub(crate) fn end(
    document: Document,
    notes: impl IntoIterator<Item = String>,
    environment: &Environment,
    commands: &str,
) -> Document {
    document
        .section("How it was measured")
        .notes(notes)
        .environment(environment.rows())
        .commands(commands)
}

/// The curve of a record for an axis of percentiles: the quantiles that its calls support.
pub(crate) fn curve(mark: Mark, name: impl Into<String>, record: &Record) -> Series {
    let end = (record.calls().max(1) as f64).log10();
    let steps = if record.calls() == 0 { 0 } else { STEPS };
    let points = (0..steps).map(|step| {
        let nines = end * f64::from(step) / f64::from(STEPS);
        (nines, record.quantile_us(1.0 - 10_f64.powf(-nines)))
    });
    let longest = (steps > 0).then(|| (end, record.max_us()));
    Series::new(mark, name, points.chain(longest))
}

/// The steps of a curve.
const STEPS: u32 = 200;

/// The latencies of a record in the order of time, for axes of s and µs.
pub(crate) fn in_time(record: &Record) -> impl Iterator<Item = (f64, f64)> {
    let points = record.points().iter();
    points.map(|point| (point.at_ns as f64 / 1e9, point.latency_ns as f64 / 1e3))
}

/// An axis of latencies.
pub(crate) fn latency() -> Axis {
    Axis::log("latency", Unit::Time)
}

/// The largest of some values, or 0.
pub(crate) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(f64::max).unwrap_or(0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{env, fs};

    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use crate::experiment::Findings;

    /// Reads `tests/outcomes/NAME.json`, which an older version wrote, and sees that the same
    /// figures and claims are written again, and that the report can be rendered.
    pub(crate) fn assert_reads_old_file<F: Findings + DeserializeOwned>(name: &str) {
        let path = format!("{}/tests/outcomes/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        let mut old: Value = serde_json::from_str(&text).unwrap();
        let outcome: F = serde_json::from_value(old.clone()).unwrap();
        let mut new = outcome.figures();
        // The words and bounds of claims may change, but not what is claimed.
        let [old_claims, new_claims] = [&mut old, &mut new].map(|of| of["claims"].take());
        assert_eq!(rounded(new), rounded(old));
        let ids = |claims: &Value| -> Vec<Value> {
            let claims = claims.as_array().unwrap().iter();
            let ids = claims.flat_map(|claim| ["paper", "claim"].map(|id| &claim[id]));
            ids.cloned().collect()
        };
        assert_eq!(ids(&new_claims), ids(&old_claims));
        assert!(outcome.html().contains("<svg") && outcome.text().contains("reproduced"));
    }

    /// Rounds floating-point numbers, because their last digits depend on the order of summation.
    fn rounded(value: Value) -> Value {
        match value {
            Value::Number(number) if number.is_f64() => {
                format!("{:.9e}", number.as_f64().unwrap_or_default()).into()
            }
            Value::Array(all) => all.into_iter().map(rounded).collect(),
            Value::Object(all) => {
                let all = all.into_iter();
                all.map(|(name, value)| (name, rounded(value))).collect()
            }
            other => other,
        }
    }

    /// Compares the report of a test's findings with `tests/snapshots/NAME.txt`, and sees that
    /// its page can be rendered. With `UPDATE_SNAPSHOTS` in the environment, the file is written.
    pub(crate) fn assert_snapshot(name: &str, findings: &impl Findings) {
        let path = format!("{}/tests/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = findings.text();
        if env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&path, &text).unwrap();
            let pages = env::temp_dir().join("chronorb-pages");
            fs::create_dir_all(&pages).unwrap();
            fs::write(pages.join(format!("{name}.html")), findings.html()).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap();
        assert_eq!(text, expected, "{path} differs");
        let page = findings.html();
        for outside in ["src=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
