//! The architectures' part of the report.

use chronorb_probe::Activity;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::super::CLIENTS;
use super::super::outcome::{ACTIVITIES, SideCosts};
use super::super::report::{
    LOCKS, SidesFigures, by_side, number, number_if_known, published, sides, system_calls,
};

/// Adds the charts and tables of the architectures.
pub(in super::super) fn sections(document: Document, rows: &[SideCosts]) -> Document {
    let Some(row) = rows.first() else {
        return document;
    };
    let lead = format!(
        "By architecture: one client of high priority and {} of low call back to back, {} calls \
         each. For one call:",
        CLIENTS - 1,
        units::count(row.calls / u64::from(CLIENTS)),
    );
    let charts = [locks(rows), futexes(rows), shares(rows)];
    let document = document
        .section("Ten clients, by architecture")
        .notes([lead]);
    let document = charts.into_iter().fold(document, Document::chart);
    document
        .tables([counts(rows), times(rows)])
        .facts(system_calls(rows))
}

/// Draws the lock operations for each request, ours beside those of the papers.
fn locks(rows: &[SideCosts]) -> Chart {
    let caption = "User-level lock operations (lock and unlock) for each request, at client and \
                   server, beside those of the ORBs of 1998 (figure 13 of the paper).";
    let ours = groups(rows, |row| Some(row.paper_locks()));
    let across = "architectures of chronorb; and the ORBs of 1998";
    let y = Axis::log(LOCKS, Unit::Number);
    sides(caption, across, y, ours.chain(published("")))
}

/// Draws the futex calls for each request.
fn futexes(rows: &[SideCosts]) -> Chart {
    let caption = "Calls of the kernel for locks, waits and wake-ups between threads (futex) for \
                   each request (figure 14 of the paper, which gives no numbers).";
    let y = Axis::linear("futex calls", Unit::Number);
    let groups = groups(rows, SideCosts::futexes_each);
    sides(caption, "architecture", y, groups)
}

/// Draws the shares of the processor time on both sides of each architecture.
fn shares(rows: &[SideCosts]) -> Chart {
    let caption = "The uses of processor time (figures 9 to 12 of the paper).";
    let names = rows
        .iter()
        .map(|row| format!("{} {}", row.case.short, row.side.name()));
    let parts = ACTIVITIES.map(|(of, name)| {
        let shares = rows.iter().map(|row| Some(row.percent(of)));
        Series::of_groups(Mark::Bars, name, shares)
    });
    let names = Axis::groups("architecture and side", names);
    let y = Axis::linear("share of the processor time", Unit::Percent);
    Chart::new(caption, names, y).stacked().series(parts)
}

/// Returns a figure of each architecture, on client and server.
fn groups<'a>(
    rows: &'a [SideCosts],
    figure: impl Fn(&SideCosts) -> Option<f64> + 'a,
) -> impl Iterator<Item = SidesFigures> + 'a {
    rows.as_chunks::<2>().0.iter().map(move |sides| {
        let name = sides[0].case.short.to_owned();
        (name, sides.each_ref().map(&figure))
    })
}

fn counts(rows: &[SideCosts]) -> Table {
    let columns = "locks|futexes|allocations|switches|preempted";
    by_side("Counts of one call", columns, rows, |row| {
        let each = |count| number(row.each(count));
        vec![
            each(row.counts.lock_operations),
            number_if_known(row.futexes_each()),
            each(row.counts.allocations),
            each(row.counts.voluntary_switches),
            each(row.counts.involuntary_switches),
        ]
    })
}

fn times(rows: &[SideCosts]) -> Table {
    let columns = "synchronisation|I/O|protocol|application|CPU";
    by_side("Processor time of one call", columns, rows, |row| {
        let share = |of: Activity| format!("{:.1} %", row.percent(of));
        let shares = ACTIVITIES.iter().map(|(of, _)| share(*of));
        shares.chain([units::time(row.processor_us())]).collect()
    })
}

/// Explains the figures.
pub(in super::super) fn notes() -> Vec<String> {
    [
        "By architecture, the server has a servant of high and one of low priority, with a thread \
         each (in lanes, or in one pool for both), beside readers and filters. Clients are threads \
         of one process, at the priorities of their servants. Counts, times and system calls are \
         of runs of their own. Octets in pipes start and end the clients; they are taken off the \
         system calls, and their waits are ten switches in a run.",
        "Shares are of the processor time of all threads of a side, which read their own clocks \
         (CLOCK_THREAD_CPUTIME_ID) between activities; the cost of reading is taken off. \
         Synchronisation is to lock and unlock, to fall asleep, and to wake another thread. I/O is \
         to accept, send, receive and wait at the epoll set, with the kernel's TCP. Application is \
         the servant's code and the loop that calls. Protocol is all the rest: GIOP, marshalling, \
         demultiplexing, changes of priority, and atomic operations that are no lock.",
        "System calls are those of at most 250 calls by each client. Traced threads are slow, and \
         meet less or more often than otherwise: futex calls are those of that pace.",
    ]
    .map(str::to_owned)
    .to_vec()
}
