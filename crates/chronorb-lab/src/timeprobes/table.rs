//! The figures as text.

use super::outcome::{Outcome, Row};
use super::path::PARTS;
use crate::bench::Placement;
use crate::experiment::Findings;
use crate::report::{Table, Telling};
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
        commands: "cargo run --release -- lab timeprobes".to_owned(),
    }
}

/// For each transport in each place, its layers and its parts.
pub(super) fn tables(outcome: &Outcome) -> Vec<Table> {
    let cases = outcome.cases().into_iter();
    cases.map(|case| of_case(outcome, case)).collect()
}

fn of_case(outcome: &Outcome, case: (&'static str, Placement)) -> Table {
    let (transport, placement) = case;
    let rows = outcome.of(case);
    Table {
        heading: format!("A call by {transport}, {}", placement.name()),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        lines: rows.map(|row| (name(row), cells(row))).collect(),
    }
}

/// What is done, and where.
pub(super) fn name(row: &Row) -> String {
    match row.side {
        None if row.layer.is_none() => row.what.to_owned(),
        None => format!("all {}", row.what),
        Some(side) => format!("{}: {}", side.name(), row.what),
    }
}

fn cells(row: &Row) -> Vec<String> {
    let layer = match row.part {
        Some(at) => PARTS[at].layer.name(),
        None => "",
    };
    let percent = format!("{:.1} %", row.percent);
    let time = row.time;
    let times = [row.usual_us, time.p50_us, time.p99_us, time.max_us].map(units::time);
    [layer.to_owned(), percent]
        .into_iter()
        .chain(times)
        .collect()
}

/// How the figures are to be understood, in sentences.
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
    let (plan, cost, stamps) = (&outcome.plan, &outcome.cost, outcome.stamps_of_a_call);
    vec![
        format!(
            "Of each transport {} calls one after the other (the cube of an octet), after {} that warm up; client and \
             server are processes with one thread at work each, by the real-time architecture, and block while they wait.",
            units::count(plan.calls.into()),
            units::count(plan.warm_up.into()),
        ),
        format!(
            "A stamp is taken from {} and costs {:.2} ns; every part has about one in it, which is not taken off.",
            cost.clock, cost.stamp_ns
        ),
        format!(
            "Where nobody wants stamps, a stage of the ORB costs {:.2} ns and a turn to the kernel and back {:.2} ns, \
             with the loop that measures it. A call has at most {stamps} points, which are {} together when they are off. \
             All other experiments measure calls with the points built in and off; so do the rows that say so here, \
             in processes of their own.",
            cost.stage_off_ns,
            cost.turn_off_ns,
            units::time(f64::from(stamps) * cost.dearest_off_ns() / 1e3),
        ),
        "What is usual is the mean of all calls but the slowest hundredth, in which something else had the processor; shares \
         are of that, and so are the plots."
            .to_owned(),
        "Parts follow each other and add up to the call as the client sees it. The operating system's are from when \
         one side goes into the kernel to send, until the other comes out of it with what it has received."
            .to_owned(),
        "What cannot be told apart: within the operating system's parts, the protocol stack, the scheduler, and the \
         wake-up between processors; the sender's system call is told beside, since it goes on while the receiver \
         is woken. Within the transport's parts, the ORB's code for connections and the transport's own. What \
         either side does beside the way of the call, as to go back to wait, is in no part."
            .to_owned(),
        "MIOP is not among them: what goes to a group has no answer, so that there is no two-way call to follow; \
         `lab protocols` measures its messages one way."
            .to_owned(),
    ]
}

pub(super) const LEAD: &str = "Where the time of a two-way call goes: stamps of all stages of a request and of all \
                               system calls, in both processes, by one clock.";

pub(super) const COLUMNS: [&str; 6] = ["layer", "share", "usual", "p50", "p99", "max"];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn a_table_has_the_whole_its_layers_and_its_parts() {
        let outcome = outcome();
        let tables = tables(&outcome);
        assert_eq!(tables.len(), 4);
        assert_eq!(tables[0].lines.len(), 2 + 4 + PARTS.len() + 2);
        let text = outcome.text();
        for part in [
            "A call by uiop, same CPU",
            "whole call",
            "whole call, points off",
            "all operating system",
            "server: skeleton: demarshal",
            "21.50 ns",
            "0.50 ns",
            "ssliop takes no part: no openssl",
            "MIOP",
            "cannot be told apart",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn shares_of_layers_are_all_there_is() {
        let outcome = outcome();
        for case in outcome.cases() {
            let parts = outcome.of(case).filter(|row| row.part.is_some());
            let percent: f64 = parts.map(|row| row.percent).sum();
            assert!((percent - 100.0).abs() < 0.2, "{percent}");
        }
    }
}
