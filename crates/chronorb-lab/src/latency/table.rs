//! The figures as text.

use super::outcome::{Outcome, summary};
use super::system::System;
use crate::bench::{Placement, Scheduled};
use crate::experiment::Findings;
use crate::report::{Table, Telling};
use crate::stats::Summary;
use crate::units;

/// What is told of the figures.
pub(super) fn telling(outcome: &Outcome) -> Telling<'_> {
    Telling {
        lead: LEAD,
        caveats: outcome.caveats(),
        claims: outcome.claims(),
        tables: tables(outcome),
        notes: notes(outcome),
        environment: &outcome.environment,
        commands: "cargo run --release -- lab latency".to_owned(),
    }
}

/// A table for each place, and one of idle connections.
pub(super) fn tables(outcome: &Outcome) -> Vec<Table> {
    let places = Placement::ALL
        .into_iter()
        .map(|place| of_place(outcome, place));
    let mut tables: Vec<Table> = places.filter(|table| !table.lines.is_empty()).collect();
    tables.extend(of_idle_connections(outcome));
    tables
}

fn of_place(outcome: &Outcome, placement: Placement) -> Table {
    let lines = System::ALL.into_iter().filter_map(|system| {
        let (min, figures) = summary(&outcome.rounds(system, placement))?;
        let mut cells = cells(min, &figures);
        let p50 = |row: &super::Row| row.latency.p50_us;
        let ratio = outcome.ratio(system, system.raw(), placement, p50);
        cells.push(ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")));
        Some((system.name().to_owned(), cells))
    });
    let columns = COLUMNS.into_iter().chain(["by raw"]);
    Table {
        heading: format!(
            "A call, {}, {}",
            placement.name(),
            outcome.plan.scheduled.name()
        ),
        columns: columns.map(str::to_owned).collect(),
        lines: lines.collect(),
    }
}

fn of_idle_connections(outcome: &Outcome) -> Option<Table> {
    let idle = outcome.idle.as_ref()?;
    let line = |name: String, rows: &[super::Row]| {
        let rows: Vec<_> = rows.iter().collect();
        let (min, figures) = summary(&rows)?;
        Some((name, cells(min, &figures)))
    };
    let with = format!("{} more connections", units::count(idle.connections.into()));
    Some(Table {
        heading: format!("A call, same CPU, {}", idle.scheduled.name()),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        lines: [
            line("no other connection".to_owned(), &idle.alone),
            line(with, &idle.among_idle),
        ]
        .into_iter()
        .flatten()
        .collect(),
    })
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
    let calls = units::count(figures.calls);
    [calls].into_iter().chain(times.map(units::time)).collect()
}

/// How the figures are to be understood, in sentences.
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
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
            mib(idle.resident_with),
            units::count(idle.connections.into()),
            mib(idle.resident_before),
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

fn mib(octets: u64) -> String {
    format!("{:.1} MiB", octets as f64 / f64::from(1 << 20))
}

pub(super) const LEAD: &str =
    "What a call takes: an octet, and its cube as the answer, on several systems by turns.";
const COLUMNS: [&str; 8] = [
    "calls", "min", "p50", "p99", "p99.9", "max", "mean", "jitter",
];
