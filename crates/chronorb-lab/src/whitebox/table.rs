//! The figures as text.

use std::fmt::Write;

use super::architectures;
use super::case::MIRRORED;
use super::client::RUNS;
use super::outcome::{Outcome, Row, Side, SystemCall};
use super::published::{PUBLISHED, SOURCE};
use crate::claim;
use crate::experiment::Findings;
use crate::units;

/// The figures in tables for a terminal, with what the budgets say of them.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = format!("{LEAD}\n\n{:36}", "");
    for (column, width) in COLUMNS.into_iter().zip(WIDTHS) {
        let _ = write!(text, "{column:>width$}");
    }
    text.push_str("  system calls\n");
    for (title, rows) in by_case(outcome) {
        let _ = writeln!(text, "{title}");
        for row in rows {
            let _ = write!(text, "  {:34}", row.side.name());
            for (cell, width) in cells(row).into_iter().zip(WIDTHS) {
                let _ = write!(text, "{cell:>width$}");
            }
            let _ = writeln!(text, "  {}", per_call(row));
        }
    }
    text.push_str("\nLock operations for each two-way request (lock and unlock)\n");
    for (orb, [client, server]) in lock_operations(outcome) {
        let _ = writeln!(text, "  {orb:44}client {client:>6}   server {server:>6}");
    }
    text.push('\n');
    text.push_str(&architectures::text(&outcome.architectures));
    text.push('\n');
    text.push_str(&claim::text(&outcome.claims()));
    text.push('\n');
    let notes = notes(outcome).into_iter().chain(architectures::notes());
    for note in notes.chain(outcome.caveats()) {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// The cases, each with its sides.
pub(super) fn by_case(outcome: &Outcome) -> Vec<(&'static str, Vec<&Row>)> {
    let mut cases: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &outcome.rows {
        match cases.last_mut() {
            Some((title, rows)) if *title == row.case.title => rows.push(row),
            _ => cases.push((row.case.title, vec![row])),
        }
    }
    cases
}

/// What stands in the [`COLUMNS`], for each call.
pub(super) fn cells(row: &Row) -> [String; 8] {
    let counts = &row.counts;
    let each = |count| number(row.each(count));
    [
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

/// Lock operations of client and server as the papers count them, ours first, each with its name.
pub(super) fn lock_operations(outcome: &Outcome) -> Vec<(String, [String; 2])> {
    let ours = beside_the_papers(outcome).map(|(name, [client, server])| {
        let cell = |count: Option<f64>| count.map_or_else(|| "?".to_owned(), number);
        (name.to_owned(), [cell(client), cell(server)])
    });
    let published = PUBLISHED.iter().map(|of| {
        let name = format!("{}, 1998", of.orb);
        (name, [of.client.to_string(), of.server.to_string()])
    });
    ours.into_iter().chain(published).collect()
}

/// Our two strategies: the lock operations of client and server for each call. The papers count
/// that a lock is taken and that it is given back, so these are twice what we count.
pub(super) fn beside_the_papers(outcome: &Outcome) -> [(&'static str, [Option<f64>; 2]); 2] {
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
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
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

pub(super) const COLUMNS: [&str; 8] = [
    "allocations",
    "octets",
    "locks",
    "faults",
    "switches",
    "preempted",
    "copied",
    "by kernel",
];
pub(super) const LEAD: &str =
    "What a call costs inside, on client and server apart, in steady state.";
const WIDTHS: [usize; 8] = [12, 8, 7, 8, 10, 11, 8, 11];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_side_with_its_system_calls_by_name() {
        let text = text(&outcome());
        let line = |title: &str, side: usize| {
            let mut lines = text.lines().skip_while(|line| *line != title);
            lines
                .nth(side)
                .unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let lane = "two-way, Leader/Followers lane";
        assert_eq!(
            line(lane, 1),
            "client 0 0 0 0 0 0 0 200 sendto 1, recvfrom 1"
        );
        assert_eq!(
            line(lane, 2),
            "server 0 0 0 0 0 0 0 300 epoll_pwait2 1, recvfrom 1, sendto 1"
        );
        assert!(line("collocated, direct", 1).ends_with("none"));
        assert!(
            text.contains("PASS            oneway, one at a time, client: 1 send and no other")
        );
    }

    #[test]
    fn the_papers_figures_stand_beside_ours_which_are_counted_their_way() {
        let mut outcome = outcome();
        let half_sync = outcome
            .rows
            .iter_mut()
            .find(|row| row.case.name == "half-sync");
        half_sync.expect("there is one").counts.lock_operations = 3000;
        let text = text(&outcome);
        for line in [
            "  chronorb, Leader/Followers                  client      0   server      0\n",
            "  chronorb, Half-Sync/Half-Async              client      6   server      0\n",
            "  TAO, 1998                                   client     41   server    100\n",
            "  MT-Orbix, 1998                              client    175   server    599\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(text.contains("RTAS 1998"));
    }

    #[test]
    fn what_is_missed_is_told_with_its_counts() {
        let mut outcome = outcome();
        outcome.rows[0].counts.allocations = 2;
        assert!(text(&outcome).contains("2, 0 and 0 in 1000 calls"));
    }

    #[test]
    fn what_could_not_be_traced_is_told_with_the_reason() {
        let mut outcome = outcome();
        outcome.untraced = Some("ptrace is refused".to_owned());
        outcome.rows[0].system_calls = None;
        let text = text(&outcome);
        assert!(text.contains("not counted"), "{text}");
        assert!(text.contains("NOT MEASURED    two-way"), "{text}");
        assert!(text.contains("ptrace is refused"), "{text}");
    }

    #[test]
    fn small_counts_are_not_told_as_none() {
        assert_eq!(
            [0.0, 3.0, 0.001, 0.25, 1.5].map(number),
            ["0", "3", "0.0010", "0.25", "1.50"]
        );
    }
}
