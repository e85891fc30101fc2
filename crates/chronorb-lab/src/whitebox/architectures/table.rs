//! The figures of the architectures as text.

use std::fmt::Write;

use super::super::table::{by_name_for_each, number};
use super::CLIENTS;
use super::outcome::{ArchitectureRow, Use};
use crate::units;

/// The figures in a table for a terminal.
pub(in super::super) fn text(rows: &[ArchitectureRow]) -> String {
    let mut text = format!("{}\n\n{:36}", lead(rows), "");
    for (column, width) in COLUMNS.into_iter().zip(WIDTHS) {
        let _ = write!(text, "{column:>width$}");
    }
    text.push_str("  system calls\n");
    for sides in by_architecture(rows) {
        let _ = writeln!(text, "{}", sides[0].configuration.long_title());
        for row in sides {
            let _ = write!(text, "  {:34}", row.side.name());
            for (cell, width) in cells(row).into_iter().zip(WIDTHS) {
                let _ = write!(text, "{cell:>width$}");
            }
            let _ = writeln!(text, "  {}", per_call(row));
        }
    }
    text
}

/// What the figures are of.
pub(super) fn lead(rows: &[ArchitectureRow]) -> String {
    let requests = rows.first().map_or(0, |row| row.requests);
    format!(
        "By architecture: one client of high priority and {} of low call back to back, {} calls each. \
         For one call:",
        CLIENTS - 1,
        units::count(requests / u64::from(CLIENTS)),
    )
}

/// The architectures, each with its sides.
pub(super) fn by_architecture(
    rows: &[ArchitectureRow],
) -> impl Iterator<Item = &[ArchitectureRow]> {
    rows.chunk_by(|a, b| a.configuration.architecture == b.configuration.architecture)
}

/// What stands in the [`COLUMNS`], for each call.
pub(super) fn cells(row: &ArchitectureRow) -> [String; 10] {
    let counts = &row.counts;
    let each = |count| number(row.each(count));
    let share = |of| format!("{:.1} %", row.shares.percent(of));
    let [synchronisation, io, protocol, application] = Use::ALL.map(share);
    [
        each(counts.lock_operations),
        (row.futex_calls()).map_or_else(|| "?".to_owned(), |calls| number(row.each_traced(calls))),
        each(counts.allocations),
        each(counts.voluntary_switches),
        each(counts.involuntary_switches),
        synchronisation,
        io,
        protocol,
        application,
        units::time(row.processor_us()),
    ]
}

/// The system calls of one call, by name.
pub(super) fn per_call(row: &ArchitectureRow) -> String {
    by_name_for_each(row.system_calls.as_deref(), |calls| row.each_traced(calls))
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

pub(super) const COLUMNS: [&str; 10] = [
    "locks",
    "futexes",
    "allocations",
    "switches",
    "preempted",
    "synchronisation",
    "I/O",
    "protocol",
    "application",
    "CPU",
];
/// How many of them are counts; the others are about time.
pub(super) const COUNTS: usize = 5;
const WIDTHS: [usize; 10] = [8, 9, 13, 10, 11, 17, 9, 10, 13, 10];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::rows;
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_side_of_each_architecture() {
        let mut rows = rows();
        rows[3].system_calls = None;
        let text = text(&rows);
        let line = |title: &str, side: usize| {
            let mut lines = text.lines().skip_while(|line| *line != title);
            let words = lines.nth(side).unwrap().split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line("real-time (as TAO)", 1),
            "client 0 0 0 1 0 0.0 % 62.5 % 25.0 % 12.5 % 8.00 µs sendto 1, recvfrom 1"
        );
        assert_eq!(
            line("worker pool (as CORBAplus)", 2),
            "server 3 2 0 1 0 50.0 % 31.2 % 12.5 % 6.2 % 16.0 µs sendto 1, recvfrom 1, futex 2"
        );
        assert!(line("Half-Sync/Half-Async", 2).starts_with("server 3 ? 0"));
        assert!(text.contains("4\u{a0}000 calls each"), "{text}");
    }
}
