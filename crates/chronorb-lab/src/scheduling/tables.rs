//! Tables and findings of distributable threads and the scheduling services.

use chronorb_report::stats::{median, quantile};
use chronorb_report::{Table, units};

use super::recompute::RecomputeRow;
use super::static_service::StaticServiceRow;
use super::threads::SegmentFigures;

pub(super) fn recompute_finding(rows: &[RecomputeRow]) -> Option<String> {
    let most = rows.last()?;
    Some(format!(
        "the scheduling service computes {} operations in {}",
        units::count(most.operations.into()),
        nanos(most.longest_ns as f64),
    ))
}

pub(super) fn recompute_table(rows: &[RecomputeRow]) -> Table {
    let lines = rows.iter().map(|row| {
        let cells = vec![
            units::count(row.dependencies.into()),
            units::count(row.rates.into()),
            nanos(row.least_ns as f64),
            nanos(row.longest_ns as f64),
        ];
        (units::count(row.operations.into()), cells)
    });
    let columns = ["calls between them", "rates", "shortest", "longest"];
    Table::new("Computations by the number of operations", columns, lines)
}

pub(super) fn segment_finding(segments: &SegmentFigures) -> Option<String> {
    let extra = segments.costs.iter().find_map(|row| row.extra_ns)?;
    let far = segments.cancellations.iter().filter(|row| row.hops == 3);
    let half = median(far.map(|row| row.latency_ns as f64))?;
    Some(format!(
        "a call within a scheduling segment takes {extra:.0} ns longer, and a cancellation is \
         three calls away after {}",
        nanos(half),
    ))
}

pub(super) fn segment_table(segments: &SegmentFigures) -> Table {
    let rows = segments.costs.iter();
    let lines = rows.map(|row| cost(&row.what, row.median_ns, row.extra_ns));
    Table::new(
        "Costs of segments, the median of batches",
        COST_COLUMNS,
        lines,
    )
}

pub(super) fn cancellation_table(segments: &SegmentFigures) -> Table {
    let lines = [1, 3].into_iter().map(|hops| {
        let rows = segments.cancellations.iter().filter(|row| row.hops == hops);
        let mut times: Vec<_> = rows.map(|row| row.latency_ns as f64).collect();
        let mut cells = vec![units::count(times.len() as u64)];
        cells.extend([0.5, 0.99, 1.0].map(|of| {
            if times.is_empty() {
                "–".to_owned()
            } else {
                nanos(quantile(&mut times, of))
            }
        }));
        let calls = if hops == 1 { "1 call" } else { "3 calls" };
        (calls.to_owned(), cells)
    });
    let columns = ["cancellations", "p50", "p99", "longest"];
    Table::new(
        "From the cancellation at the root to its head",
        columns,
        lines,
    )
}

pub(super) fn static_finding(rows: &[StaticServiceRow]) -> Option<String> {
    let extra = rows.iter().find_map(|row| row.extra_ns)?;
    let activity = rows.iter().filter(|row| row.extra_ns.is_none()).nth(1)?;
    Some(format!(
        "an activity of the static scheduling service takes {:.0} ns, and a call of a scheduled \
         object {extra:.0} ns longer",
        activity.median_ns,
    ))
}

pub(super) fn static_table(rows: &[StaticServiceRow]) -> Table {
    let lines = rows
        .iter()
        .map(|row| cost(&row.what, row.median_ns, row.extra_ns));
    let title = "Costs of the static scheduling service, the median of batches";
    Table::new(title, COST_COLUMNS, lines)
}

fn cost(what: &str, median_ns: f64, extra_ns: Option<f64>) -> (String, Vec<String>) {
    let extra = extra_ns.map_or_else(String::new, |extra| format!("{extra:.0} ns"));
    (what.to_owned(), vec![nanos(median_ns), extra])
}

fn nanos(time: f64) -> String {
    units::time(time / 1e3)
}

const COST_COLUMNS: [&str; 2] = ["time", "above a call without it"];
