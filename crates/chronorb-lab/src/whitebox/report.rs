//! The report of the experiment.

use std::cmp::Reverse;

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::{Value, json};

use super::architectures;
use super::case::MIRRORED;
use super::client::RUNS;
use super::counts::Counts;
use super::outcome::{SideCosts, WhiteboxOutcome, WhiteboxSide};
use super::published::{PUBLISHED, SOURCE};
use super::{Whitebox, claims};
use crate::Claim;
use crate::experiment::{Experiment, Findings};
use crate::report::end;

impl Findings for WhiteboxOutcome {
    fn headline(&self) -> String {
        let [Some(client), Some(server)] = WhiteboxSide::ALL.map(|side| self.row("twoway", side))
        else {
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

    fn caveats(&self) -> Vec<String> {
        let reason = self.untraced.as_ref();
        let untraced = reason.map(|reason| format!("System calls were not counted: {reason}."));
        let stolen = self.environment.stolen_caveat();
        untraced.into_iter().chain(stolen).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        let rows = self.rows.iter().chain(&self.architectures);
        json!({
            "experiment": Whitebox::NAME,
            "environment": self.environment,
            "runs": RUNS,
            "rows": rows.map(SideCosts::figures).collect::<Vec<_>>(),
            "not_counted": self.untraced,
            "published_lock_operations": PUBLISHED,
            "claims": self.claims(),
            "plan": self.plan,
        })
    }

    fn document(&self) -> Document {
        let document = Document::new(self.headline())
            .lead(LEAD)
            .caveats(self.caveats());
        let document = architectures::sections(document, &self.architectures)
            .part("One client", [locks_chart(self)], [locks(self)])
            .part("One call", [], [by_case(self)])
            .section("Its system calls")
            .facts(system_calls(&self.rows))
            .section("The budgets, and what the papers say")
            .claims(self.claims());
        end(
            document,
            notes(self).into_iter().chain(architectures::notes()),
            &self.environment,
            "cargo run --release -- lab whitebox\ncargo run --release -- lab whitebox --json",
        )
    }
}

/// Draws the lock operations of client and server for each two-way request of one client.
fn locks_chart(outcome: &WhiteboxOutcome) -> Chart {
    let caption = "User-level lock operations (lock and unlock) for each two-way request, at \
                   client and server.";
    let ours = beside_the_papers(outcome).into_iter();
    let across = "chronorb, by strategy; and the ORBs of 1998";
    let y = Axis::log(LOCKS, Unit::Number);
    sides(caption, across, y, ours.chain(published("")))
}

/// Returns the papers' lock operations of client and server.
pub(super) fn published(year: &str) -> impl Iterator<Item = SidesFigures> {
    PUBLISHED.iter().map(move |of| {
        let counts = [of.client, of.server].map(|count| Some(f64::from(count)));
        (format!("{}{year}", of.orb), counts)
    })
}

/// A name with the figures of client and server, where they are known.
pub(super) type SidesFigures = (String, [Option<f64>; 2]);

/// Draws bars for client and server.
pub(super) fn sides(
    caption: &str,
    across: &str,
    y: Axis,
    groups: impl Iterator<Item = SidesFigures>,
) -> Chart {
    let (names, figures): (Vec<_>, Vec<_>) = groups.unzip();
    let bars = WhiteboxSide::ALL.map(|side| {
        let figures = figures.iter().map(|figures| figures[side as usize]);
        Series::of_groups(Mark::Bars, side.name(), figures)
    });
    Chart::new(caption, Axis::groups(across, names), y).series(bars)
}

/// Tabulates the lock operations of client and server as the papers count them, ours first.
fn locks(outcome: &WhiteboxOutcome) -> Table {
    let ours =
        beside_the_papers(outcome).map(|(name, counts)| (format!("chronorb, {name}"), counts));
    let all = ours.into_iter().chain(published(", 1998"));
    Table::new(
        "Lock operations for each two-way request (lock and unlock)",
        ["client", "server"],
        all.map(|(name, counts)| (name, counts.map(number_if_known).to_vec())),
    )
}

/// Tabulates the counts of one call, by case and side.
fn by_case(outcome: &WhiteboxOutcome) -> Table {
    by_side("Counts of one call", COLUMNS, &outcome.rows, |row| {
        let counts = &row.counts;
        let each = |count| number(row.each(count));
        let octets = row.kernel_octets().map(|octets| row.each_traced(octets));
        vec![
            each(counts.allocations),
            each(counts.allocated_octets),
            each(counts.lock_operations),
            each(counts.minor_faults + counts.major_faults),
            each(counts.voluntary_switches),
            each(counts.involuntary_switches),
            each(counts.octets_copied),
            number_if_known(octets),
        ]
    })
}

/// Tabulates both sides of each subject below its heading.
pub(super) fn by_side(
    heading: &str,
    columns: &str,
    rows: &[SideCosts],
    cells: impl Fn(&SideCosts) -> Vec<String>,
) -> Table {
    let lines = rows.iter().flat_map(|row| {
        let is_first = row.side == WhiteboxSide::Client;
        let heading = is_first.then(|| (row.case.heading(), Vec::new()));
        let line = (row.side.name().to_owned(), cells(row));
        heading.into_iter().chain([line])
    });
    Table::new(heading, columns.split('|'), lines)
}

/// Lists the system calls of each subject and side.
pub(super) fn system_calls(rows: &[SideCosts]) -> impl Iterator<Item = (String, String)> {
    rows.iter().map(|row| {
        let name = format!("{}, {}", row.case.title, row.side.name());
        (name, per_call(row))
    })
}

/// Renders the system calls of one call, the most frequent first.
pub(super) fn per_call(row: &SideCosts) -> String {
    let Some(calls) = &row.system_calls else {
        return "not counted".to_owned();
    };
    if calls.is_empty() {
        return "none".to_owned();
    }
    let mut calls: Vec<_> = calls.iter().collect();
    calls.sort_by_key(|(_, (calls, _))| Reverse(*calls));
    let each = calls
        .iter()
        .map(|(name, (calls, _))| format!("{name} {}", number(row.each_traced(*calls))));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the lock operations of client and server for each call, for two strategies of servers.
fn beside_the_papers(outcome: &WhiteboxOutcome) -> [SidesFigures; 2] {
    [
        ("Leader/Followers", "twoway"),
        ("Half-Sync/Half-Async", "half-sync"),
    ]
    .map(|(name, case)| {
        let locks = |side| outcome.row(case, side).map(SideCosts::paper_locks);
        (name.to_owned(), WhiteboxSide::ALL.map(locks))
    })
}

/// Explains the figures.
fn notes(outcome: &WhiteboxOutcome) -> Vec<String> {
    vec![
        format!(
            "All figures are for one call: the costs of {} calls in steady state by their number. \
             Of {RUNS} runs the most counts for allocations, locks and copies, and the least for \
             page faults, switches and system calls, which the kernel adds to at any time.",
            units::count(outcome.plan.calls.into()),
        ),
        "A row is of all threads of a process; collocated calls have the client's alone. The cost \
         of asking for the counts is taken off. Lock operations are those of the ORB's mutexes; \
         the allocations stand for those of the allocator."
            .to_owned(),
        format!(
            "Copied are octets that are copied in one piece in user space, in and out of frames, \
             at the client by the thread that calls. By kernel are the octets that were sent and \
             received. The octets are {} each way; the struct has three numbers and a string.",
            units::count(MIRRORED as u64),
        ),
        "Oneway calls one at a time are acknowledged by an octet over another socket, whose write \
         and read are taken off the system calls; the client's switches are for waiting for it. \
         Back to back, the server receives many requests at once."
            .to_owned(),
        "Switches are context switches because a thread waited, preempted those because another \
         one was to run. System calls are counted in a run of its own, in which both processes are \
         traced (ptrace)."
            .to_owned(),
        format!(
            "The papers count user-level mutex_lock and mutex_unlock, so our lock operations are \
             doubled beside them. Theirs include the allocator's, which were most of them, and \
             were counted under load. Source: {SOURCE}."
        ),
    ]
}

/// Formats a count of one call: whole where it is, and never 0 where it is not.
pub(super) fn number(count: f64) -> String {
    if count == count.trunc() {
        format!("{count:.0}")
    } else if count < 0.01 {
        format!("{count:.4}")
    } else {
        format!("{count:.2}")
    }
}

/// Formats a count of one call that may be unknown.
pub(super) fn number_if_known(count: Option<f64>) -> String {
    count.map_or_else(|| "?".to_owned(), number)
}

const COLUMNS: &str = "allocations|octets|locks|faults|switches|preempted|copied|by kernel";
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
