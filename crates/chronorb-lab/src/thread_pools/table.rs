//! The figures as text.

use std::fmt::Write;

use super::Strategy;
use super::case::Cell;
use super::outcome::{Outcome, Row, percent};
use crate::claim;
use crate::experiment::Findings;
use crate::report::Table;
use crate::units;

/// The figures in tables for a terminal, with what is claimed of them.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = format!("{}\n", outcome.headline());
    for caveat in outcome.caveats() {
        let _ = writeln!(text, "{caveat}");
    }
    for table in tables(outcome) {
        let _ = write!(text, "\n{}", table.text());
    }
    let _ = write!(text, "\n{}\n", claim::text(&outcome.claims()));
    for note in notes(outcome) {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// A table for each figure: a line for each number of threads, a column for each amount of work.
pub(super) fn tables(outcome: &Outcome) -> Vec<Table> {
    let improvement = |cell| outcome.improvement(cell).map(percent);
    let both = |of: fn(&Row) -> String| {
        move |cell| {
            let [first, second] = Strategy::ALL.map(|strategy| outcome.row(cell, strategy));
            Some(format!("{} | {}", of(&first?), of(&second?)))
        }
    };
    vec![
        table(
            outcome,
            "By how much Half-Sync/Half-Async took longer",
            improvement,
        ),
        table(
            outcome,
            "Time for all requests, L/F | HS/HA",
            both(|row| units::time(row.elapsed_ms * 1e3)),
        ),
        table(
            outcome,
            "Server's CPU time for a request, L/F | HS/HA",
            both(|row| units::time(row.server_cpu_us_per_request)),
        ),
        table(
            outcome,
            "Server's context switches for a request, L/F | HS/HA",
            both(|row| format!("{:.2}", row.context_switches_per_request)),
        ),
        table(
            outcome,
            "Server busy, of one CPU, L/F | HS/HA",
            both(|row| format!("{:.0} %", row.server_busy_percent)),
        ),
    ]
}

fn table(outcome: &Outcome, heading: &str, figure: impl Fn(Cell) -> Option<String>) -> Table {
    let works = &outcome.plan.work_us;
    let line = |threads: u32| {
        let cells = works.iter().map(|&work_us| {
            let figure = figure(Cell { threads, work_us });
            figure.unwrap_or_else(|| "none".to_owned())
        });
        let name = match threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        (name, cells.collect())
    };
    Table {
        heading: heading.to_owned(),
        columns: works
            .iter()
            .map(|work| format!("{work} µs of work"))
            .collect(),
        lines: outcome.plan.threads.iter().copied().map(line).collect(),
    }
}

/// How the figures are to be understood, in sentences.
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    vec![
        format!(
            "A client of {} threads calls the server, each on a connection of its own, again as soon as it is \
             answered, until {} requests were served; {} more go before them. The time is from the first request to \
             the last reply. Every answer is checked.",
            plan.callers,
            units::count(plan.requests.into()),
            units::count(plan.warm_up.into()),
        ),
        format!(
            "Both strategies are measured in each cell one right after the other, by turns in either order, in each \
             of {} rounds. Figures are medians of the rounds; the improvement is (T(HS/HA) - T(L/F)) / T(L/F).",
            plan.rounds,
        ),
        "The server has one lane of so many threads, without buffering and borrowing. Half-Sync/Half-Async has one \
         thread more, which reads and never serves, as in the paper."
            .to_owned(),
        format!(
            "All threads that call and serve have {}. {}{}",
            match outcome.real_time {
                true => {
                    "the same real-time priority (SCHED_FIFO), so that other programs do not get between, but for what \
                     the kernel's throttling keeps for them"
                }
                false => "ordinary scheduling",
            },
            plan.place.sentence(),
            match outcome.memory_locked {
                true => " The memory of client and server was locked.",
                false => " Memory could not be locked, since this process may not.",
            },
        ),
        "Where the server is not busy all the time, the client was what took it: its CPU makes no more calls. Then \
         the improvement is less than the server's CPU time for a request tells."
            .to_owned(),
        "The paper's amounts of work are 0, 25, 50, 75 and 100 of a unit that it does not tell; here they are µs of \
         computing. Its machine had four CPUs of 400 MHz, Linux 2.2.5 and TAO 1.0."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn columns_line_up() {
        for table in tables(&outcome(|_| 5.0)) {
            let text = table.text();
            let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
            assert_eq!(widths.len(), 7);
            assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        }
    }

    #[test]
    fn the_text_has_figures_of_both_strategies_claims_and_notes() {
        let text = text(&outcome(|_| 5.0));
        for part in [
            "ahead of Half-Sync/Half-Async in 30 of 30 cells",
            "+50 %",
            "1.00 s | 1.50 s",
            "10.0 µs | 15.0 µs",
            "reproduced      Leader/Followers are ahead",
            "reads and never serves",
            "The client had the first processor",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    }
}
