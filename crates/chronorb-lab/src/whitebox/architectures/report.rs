//! The architectures' part of the report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::super::outcome::Side;
use super::super::report::{LOCKS, Sides, by_name_for_each, number, published, sides};
use super::CLIENTS;
use super::outcome::{ArchitectureRow, Use};

/// Adds the charts and tables of the architectures.
pub(in super::super) fn sections(document: Document, rows: &[ArchitectureRow]) -> Document {
    let charts = [locks(rows), futexes(rows), shares(rows)];
    let calls = rows.iter().map(|row| {
        let name = format!("{}, {}", row.configuration.title, row.side.name());
        let calls = row.system_calls.as_deref();
        (
            name,
            by_name_for_each(calls, |calls| row.each_traced(calls)),
        )
    });
    if rows.is_empty() {
        return document;
    }
    let document = document
        .section("Ten clients, by architecture")
        .notes([lead(rows)]);
    let document = charts.into_iter().fold(document, Document::chart);
    document.tables([counts(rows), times(rows)]).facts(calls)
}

/// What the figures are of.
fn lead(rows: &[ArchitectureRow]) -> String {
    let requests = rows.first().map_or(0, |row| row.requests);
    format!(
        "By architecture: one client of high priority and {} of low call back to back, {} calls each. \
         For one call:",
        CLIENTS - 1,
        units::count(requests / u64::from(CLIENTS)),
    )
}

/// Lock operations of client and server for each request, ours beside those of the papers.
fn locks(rows: &[ArchitectureRow]) -> Chart {
    let caption = "User-level lock operations (lock and unlock) for each request, at client and server, \
                   beside those of the ORBs of 1998 (figure 13 of the paper).";
    let ours = groups(rows, |row| Some(row.locks_as_in_papers()));
    let across = "architectures of chronorb; and the ORBs of 1998";
    sides(caption, across, LOCKS, ours.chain(published()))
}

/// Futex calls of client and server for each request.
fn futexes(rows: &[ArchitectureRow]) -> Chart {
    let caption = "Calls of the kernel for locks, waits and wake-ups between threads (futex) for each \
                   request (figure 14 of the paper, which gives no numbers).";
    let each = |row: &ArchitectureRow| row.futex_calls().map(|calls| row.each_traced(calls));
    sides(caption, "architecture", "futex calls", groups(rows, each))
}

/// The uses of processor time on both sides of each architecture.
fn shares(rows: &[ArchitectureRow]) -> Chart {
    let caption = "The uses of processor time (figures 9 to 12 of the paper).";
    let names = rows.iter().map(|row| {
        let name = row.configuration.short;
        format!("{name} {}", row.side.name())
    });
    let parts = Use::ALL.map(|on| {
        let shares = rows.iter().map(|row| Some(row.shares.percent(on)));
        Series::of_groups(Mark::Bars, on.name(), shares)
    });
    let names = Axis::groups("architecture and side", names);
    Chart::new(
        caption,
        names,
        Axis::linear("share of the processor time", Unit::Percent),
    )
    .stacked()
    .series(parts)
}

/// A figure of each architecture, on client and server.
fn groups<'a>(
    rows: &'a [ArchitectureRow],
    figure: impl Fn(&ArchitectureRow) -> Option<f64> + 'a,
) -> impl Iterator<Item = Sides> + 'a {
    by_architecture(rows).map(move |sides| {
        let of = |side| sides.iter().find(|row| row.side == side).and_then(&figure);
        let name = sides[0].configuration.short.to_owned();
        (name, [of(Side::Client), of(Side::Server)])
    })
}

/// The architectures, each with its sides.
fn by_architecture(rows: &[ArchitectureRow]) -> impl Iterator<Item = &[ArchitectureRow]> {
    rows.chunk_by(|a, b| a.configuration.architecture == b.configuration.architecture)
}

fn counts(rows: &[ArchitectureRow]) -> Table {
    let columns = ["locks", "futexes", "allocations", "switches", "preempted"];
    table("Counts of one call", columns, rows, |row| {
        let counts = &row.counts;
        let each = |count| number(row.each(count));
        let futexes = row
            .futex_calls()
            .map(|calls| number(row.each_traced(calls)));
        vec![
            each(counts.lock_operations),
            futexes.unwrap_or_else(|| "?".to_owned()),
            each(counts.allocations),
            each(counts.voluntary_switches),
            each(counts.involuntary_switches),
        ]
    })
}

fn times(rows: &[ArchitectureRow]) -> Table {
    let columns = ["synchronisation", "I/O", "protocol", "application", "CPU"];
    table("Processor time of one call", columns, rows, |row| {
        let shares = Use::ALL.map(|of| format!("{:.1} %", row.shares.percent(of)));
        let time = units::time(row.processor_us());
        shares.into_iter().chain([time]).collect()
    })
}

fn table(
    heading: &str,
    columns: [&str; 5],
    rows: &[ArchitectureRow],
    cells: impl Fn(&ArchitectureRow) -> Vec<String>,
) -> Table {
    let mut lines = Vec::new();
    for sides in by_architecture(rows) {
        lines.push((sides[0].configuration.long_title(), Vec::new()));
        lines.extend(
            sides
                .iter()
                .map(|row| (row.side.name().to_owned(), cells(row))),
        );
    }
    Table::new(heading, columns, lines)
}

/// How the figures are to be understood, in sentences.
pub(in super::super) fn notes() -> Vec<String> {
    vec![
        "By architecture, the server has two servants, of high and of low priority, and a thread for each of them (in \
         lanes, or in one pool for both); reader and filter threads come on top. All clients are threads of one \
         process, at the priorities of their servants. Counts, times and system calls are of runs of their own. The \
         threads that call are started and ended by octets in pipes, which are taken off the system calls; their \
         waits for that are among the switches, ten in a run."
            .to_owned(),
        "Shares are of the processor time of all threads of a side, by their own clocks (CLOCK_THREAD_CPUTIME_ID), which \
         each of them reads when it turns to something else; in each call they do nothing once, which tells what that costs and is taken off. \
         Synchronisation is to lock and unlock, to wait for another thread, and to wake it (futexes, event descriptors, \
         signals); a wait is what it takes to fall asleep and to go on, since who sleeps takes no time. I/O is to \
         accept, send, receive and wait at the epoll set, with the kernel's TCP. Application is the servant's own code \
         and the loop that calls. Protocol is all the rest: GIOP, marshalling, to find the target, to change a thread's \
         priority, and atomic operations that are no lock, which take less time than a look at the clock."
            .to_owned(),
        "System calls are those of fewer calls, 250 by each client at most. Where they are traced, threads are so slow that they meet less or more often than they do \
         otherwise, and futex calls of an architecture that has any are those of that pace."
            .to_owned(),
    ]
}
