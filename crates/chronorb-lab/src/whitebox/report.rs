//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::architectures;
use super::case::MIRRORED;
use super::client::RUNS;
use super::counts::Counts;
use super::outcome::{Outcome, Row, Side, SystemCall};
use super::published::{PUBLISHED, SOURCE};
use crate::experiment::Findings;
use crate::report::end;

pub(super) fn document(outcome: &Outcome) -> Document {
    let calls = outcome.rows.iter().map(|row| {
        let name = format!("{}, {}", row.case.title, row.side.name());
        (name, per_call(row))
    });
    let document = Document::new(outcome.headline())
        .lead(LEAD)
        .caveats(outcome.caveats());
    let document = architectures::sections(document, &outcome.architectures)
        .part("One client", [locks_chart(outcome)], [locks(outcome)])
        .part("One call", [], [by_case(outcome)])
        .section("Its system calls")
        .facts(calls)
        .section("The budgets, and what the papers say")
        .claims(outcome.claims());
    end(
        document,
        notes(outcome).into_iter().chain(architectures::notes()),
        &outcome.environment,
        "cargo run --release -- lab whitebox\ncargo run --release -- lab whitebox --json",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let sides = [Side::Client, Side::Server].map(|side| outcome.row("twoway", side));
    let [Some(client), Some(server)] = sides else {
        return "What a call costs inside".to_owned();
    };
    let both =
        |of: fn(&Counts) -> u64| number(client.each(of(&client.counts) + of(&server.counts)));
    format!(
        "A two-way call, client and server together: {} heap allocations, {} lock operations",
        both(|counts| counts.allocations),
        both(|counts| counts.lock_operations),
    )
}

/// Lock operations of client and server for each two-way request of one client.
fn locks_chart(outcome: &Outcome) -> Chart {
    let caption = "User-level lock operations (lock and unlock) for each two-way request, at client \
                   and server.";
    let ours = beside_the_papers(outcome).map(|(name, counts)| {
        let name = name.trim_start_matches("chronorb, ");
        (name.to_owned(), counts)
    });
    let across = "chronorb, by strategy; and the ORBs of 1998";
    sides(caption, across, LOCKS, ours.into_iter().chain(published()))
}

/// The papers' lock operations of client and server.
pub(super) fn published() -> impl Iterator<Item = Sides> {
    PUBLISHED.iter().map(|of| {
        let counts = [of.client, of.server].map(|count| Some(f64::from(count)));
        (of.orb.to_owned(), counts)
    })
}

/// A name with the figures of client and server, where they are known.
pub(super) type Sides = (String, [Option<f64>; 2]);

/// A chart of bars for client and server.
pub(super) fn sides(
    caption: &str,
    across: &str,
    upwards: &str,
    groups: impl Iterator<Item = Sides>,
) -> Chart {
    let (names, figures): (Vec<_>, Vec<_>) = groups.unzip();
    let of = |side: usize| figures.iter().map(move |figures| figures[side]);
    let y = match upwards == LOCKS {
        true => Axis::log(upwards, Unit::Number),
        false => Axis::linear(upwards, Unit::Number),
    };
    Chart::new(caption, Axis::groups(across, names), y).series([
        Series::of_groups(Mark::Bars, "client", of(0)),
        Series::of_groups(Mark::Bars, "server", of(1)),
    ])
}

/// Lock operations of client and server as the papers count them, ours first.
fn locks(outcome: &Outcome) -> Table {
    let cell = |count: &Option<f64>| count.map_or_else(|| "?".to_owned(), number);
    let ours = beside_the_papers(outcome).map(|(name, counts)| (name.to_owned(), counts));
    let published = published().map(|(orb, counts)| (format!("{orb}, 1998"), counts));
    let all = ours.into_iter().chain(published);
    Table::new(
        "Lock operations for each two-way request (lock and unlock)",
        ["client", "server"],
        all.map(|(name, counts)| (name, counts.iter().map(cell).collect())),
    )
}

/// The counts of one call, by case and side.
fn by_case(outcome: &Outcome) -> Table {
    let mut lines = Vec::new();
    for rows in outcome.rows.chunk_by(|a, b| a.case.title == b.case.title) {
        lines.push((rows[0].case.title.to_owned(), Vec::new()));
        lines.extend(
            rows.iter()
                .map(|row| (row.side.name().to_owned(), cells(row))),
        );
    }
    Table::new("Counts of one call", COLUMNS, lines)
}

fn cells(row: &Row) -> Vec<String> {
    let counts = &row.counts;
    let each = |count| number(row.each(count));
    vec![
        each(counts.allocations),
        each(counts.allocated_octets),
        each(counts.lock_operations),
        each(counts.minor_faults + counts.major_faults),
        each(counts.voluntary_switches),
        each(counts.involuntary_switches),
        each(counts.octets_copied),
        row.kernel_octets().map_or_else(|| "?".to_owned(), each),
    ]
}

/// The system calls of one call, by name.
pub(super) fn per_call(row: &Row) -> String {
    by_name_for_each(row.system_calls.as_deref(), |calls| row.each(calls))
}

/// System calls by name, each as many as `each` makes of their number.
pub(super) fn by_name_for_each(calls: Option<&[SystemCall]>, each: impl Fn(u64) -> f64) -> String {
    let Some(calls) = calls else {
        return "not counted".to_owned();
    };
    let named = calls
        .iter()
        .map(|of| format!("{} {}", of.name, number(each(of.calls))));
    match calls.is_empty() {
        true => "none".to_owned(),
        false => named.collect::<Vec<_>>().join(", "),
    }
}

/// Our two strategies: the lock operations of client and server for each call. The papers count
/// that a lock is taken and that it is given back, so these are twice what we count.
fn beside_the_papers(outcome: &Outcome) -> [(&'static str, [Option<f64>; 2]); 2] {
    [
        ("chronorb, Leader/Followers", "twoway"),
        ("chronorb, Half-Sync/Half-Async", "half-sync"),
    ]
    .map(|(name, case)| {
        let of = |side| {
            let row = outcome.row(case, side)?;
            Some(2.0 * row.each(row.counts.lock_operations))
        };
        (name, [of(Side::Client), of(Side::Server)])
    })
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    vec![
        format!(
            "All figures are for one call: what {} calls in steady state cost, by their number. Of \
             {RUNS} runs the most counts for allocations, locks and copies, and the least for page \
             faults, switches and system calls, which the kernel adds to at any time.",
            units::count(outcome.plan.calls.into()),
        ),
        "Client and server are processes of their own, but for collocated calls, where the client's \
         row is all there is. A row is of all threads of its process. What it costs to ask for the \
         counts is taken off."
            .to_owned(),
        "Lock operations are those of the ORB's mutexes. An allocator has locks of its own; they are \
         told by the allocations."
            .to_owned(),
        format!(
            "Copied are octets that are copied in one piece in user space, in and out of frames, at the \
             client by the thread that calls; values that are written one by one are not counted. By kernel are the octets that were sent and \
             received. The octets are {} each way; the struct has three numbers and a string.",
            units::count(MIRRORED as u64),
        ),
        "Oneway calls one at a time are acknowledged outside of the ORB, by an octet over another \
         socket, so that the next one is sent when the one before it was served. Its write and read are \
         taken off the system calls; the client's switches are for waiting for it. Back to back, the \
         server finds many requests in what it receives at once."
            .to_owned(),
        "Switches are context switches because a thread waited, preempted those because another one \
         was to run."
            .to_owned(),
        "System calls are counted in a run of its own, in which both processes are traced (ptrace)."
            .to_owned(),
        format!(
            "The papers count user-level mutex_lock and mutex_unlock, so that our lock operations are \
             doubled beside them. Theirs include the allocator's, which were most of them, and were \
             counted under load. Source: {SOURCE}."
        ),
    ]
}

/// A count for each call: whole where it is, and never 0 where it is not.
pub(super) fn number(count: f64) -> String {
    if count == count.trunc() {
        return format!("{count:.0}");
    }
    match count < 0.01 {
        true => format!("{count:.4}"),
        false => format!("{count:.2}"),
    }
}

const COLUMNS: [&str; 8] = [
    "allocations",
    "octets",
    "locks",
    "faults",
    "switches",
    "preempted",
    "copied",
    "by kernel",
];
const LEAD: &str = "What a call costs inside, on client and server apart, in steady state.";
/// The name of an axis of lock operations.
pub(super) const LOCKS: &str = "lock operations";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("whitebox", &outcome());
    }
}
