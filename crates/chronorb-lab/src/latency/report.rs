//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Table, counted, units};

use super::outcome::{Outcome, Row, summary};
use super::system::System;
use crate::bench::{Placement, Scheduled};
use crate::report::{begin, curve, end, latency};
use crate::stats::Summary;

pub(super) fn document(outcome: &Outcome) -> Document {
    let mut document = begin(outcome, LEAD);
    for place in Placement::ALL {
        if let Some(finding) = finding(outcome, place) {
            document = document.part(finding, [by_percentile(outcome, place)], []);
        }
    }
    let tables = Placement::ALL.map(|place| of_place(outcome, place));
    let tables = tables.into_iter().chain(of_idle_connections(outcome));
    let document = document.part("The figures", [], tables);
    end(
        document,
        notes(outcome),
        &outcome.environment,
        "cargo run --release -- lab latency",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    Placement::ALL
        .into_iter()
        .find_map(|placement| finding(outcome, placement))
        .unwrap_or_else(|| "What a call takes".to_owned())
}

/// What the plot of a place shows; nothing where nobody called.
fn finding(outcome: &Outcome, placement: Placement) -> Option<String> {
    let p50 = |row: &Row| row.latency.p50_us;
    let told = [System::Chronorb, System::ChronorbSpinning]
        .into_iter()
        .filter_map(|system| {
            let (_, figures) = summary(&outcome.rounds(system, placement))?;
            let by_raw = outcome.ratio(system, system.raw(), placement, p50)?;
            Some(format!(
                "{}: p50 {}, {by_raw:.2} of raw TCP",
                system.name(),
                units::time(figures.p50_us)
            ))
        })
        .collect::<Vec<_>>();
    (!told.is_empty()).then(|| format!("A call, {}: {}", placement.name(), told.join("; ")))
}

/// Latency by percentile of all systems in a place.
fn by_percentile(outcome: &Outcome, placement: Placement) -> Chart {
    let caption = "Latency by percentile, all rounds together. To the right each step is ten times \
                   rarer; a line ends at the longest call.";
    let curves = System::ALL.into_iter().filter_map(|system| {
        let mut pooled = outcome.pooled.iter();
        let (_, record) = pooled.find(|(of, _)| *of == (system, placement))?;
        let (mark, colour) = match system {
            System::Chronorb => (Mark::Line, 0),
            System::OmniOrb => (Mark::Line, 1),
            System::ChronorbSpinning => (Mark::Line, 2),
            System::RawBlocking => (Mark::Dashes, NEUTRAL),
            System::RawSpinning => (Mark::Dashes, 2),
        };
        Some(curve(mark, system.name(), record).colour(colour))
    });
    Chart::new(
        caption,
        Axis::percentiles("percentile of the calls"),
        latency(),
    )
    .series(curves)
}

fn of_place(outcome: &Outcome, placement: Placement) -> Table {
    let lines = System::ALL.into_iter().filter_map(|system| {
        let (min, figures) = summary(&outcome.rounds(system, placement))?;
        let mut cells = cells(min, &figures);
        let p50 = |row: &Row| row.latency.p50_us;
        let ratio = outcome.ratio(system, system.raw(), placement, p50);
        cells.push(ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")));
        Some((system.name().to_owned(), cells))
    });
    let columns = COLUMNS.into_iter().chain(["by raw"]);
    let (place, scheduled) = (placement.name(), outcome.plan.scheduled.name());
    Table::new(format!("A call, {place}, {scheduled}"), columns, lines)
}

fn of_idle_connections(outcome: &Outcome) -> Option<Table> {
    let idle = outcome.idle.as_ref()?;
    let line = |name: String, rows: &[Row]| {
        let rows: Vec<_> = rows.iter().collect();
        let (min, figures) = summary(&rows)?;
        Some((name, cells(min, &figures)))
    };
    let with = format!("{} more connections", units::count(idle.connections.into()));
    let heading = format!("A call, same CPU, {}", idle.scheduled.name());
    let lines = [
        line("no other connection".to_owned(), &idle.alone),
        line(with, &idle.among_idle),
    ];
    Some(Table::new(heading, COLUMNS, lines.into_iter().flatten()))
}

fn cells(min_us: f64, figures: &Summary) -> Vec<String> {
    let times = [
        min_us,
        figures.p50_us,
        figures.p99_us,
        figures.p999_us,
        figures.max_us,
        figures.mean_us,
        figures.jitter_us,
    ];
    counted(figures.calls, times)
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "In each of {} rounds every system made {} calls in every place, by turns, after {} that \
             do not count. All figures are medians of the rounds, but min and max, which are those of \
             all calls. By raw is p50 by that of raw TCP that waits alike, in the same round. Jitter \
             is the standard deviation. Factors of claims are ratios within a round, too: medians of \
             the rounds.",
            plan.rounds,
            units::count(plan.calls.into()),
            units::count(plan.warm_up.into()),
        ),
        format!(
            "A call of chronorb has {} octets and its reply {}, and raw TCP moves as many. Client and \
             server are processes of their own, on one connection over the loopback. Who spins looks \
             again and again on both sides, and needs a CPU for each.",
            outcome.messages.request, outcome.messages.reply,
        ),
        "Same CPU is what a call costs in work: client and server take turns. Across CPUs and unpinned, \
         a CPU that sleeps has to be woken, which may take longer than the call."
            .to_owned(),
    ];
    if outcome.omniorb.version.is_some() {
        notes.push(outcome.omniorb.sentence());
    }
    if let Some(idle) = &outcome.idle {
        notes.push(format!(
            "Idle connections: {} octets of the server's resident memory each ({} with {} connections, \
             {} without). What the kernel keeps for each socket is not counted. Each of them was \
             used once.",
            units::count(idle.octets_each().round() as u64),
            units::bytes(idle.resident_with as f64),
            units::count(idle.connections.into()),
            units::bytes(idle.resident_before as f64),
        ));
        if idle.scheduled == Scheduled::Other {
            notes.push(
                "The calls beside idle connections have no real-time priority: this process may not \
                 use one."
                    .to_owned(),
            );
        }
    }
    notes
}

const LEAD: &str =
    "What a call takes: an octet, and its cube as the answer, on several systems by turns.";
const COLUMNS: [&str; 8] = [
    "calls", "min", "p50", "p99", "p99.9", "max", "mean", "jitter",
];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("latency", &outcome());
    }
}
