//! The figures as text.

use std::fmt::Write;

use super::case::{Setting, Way};
use super::order::IoUring;
use super::outcome::Outcome;
use crate::claim;
use crate::experiment::Findings;
use crate::units;

/// The figures in tables for a terminal, with what is claimed of them.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = String::from(
        "What a call took, by how the server's thread waits; p50 by that of blocking recv.\n",
    );
    for setting in outcome.settings() {
        let _ = write!(text, "\n{:40}", setting.name());
        for head in COLUMNS {
            let _ = write!(text, "{head:>10}");
        }
        let _ = writeln!(text, "  {RANGE:>12}");
        for (way, cells) in lines(outcome, setting) {
            let _ = write!(text, "  {:38}", way.name());
            for cell in &cells[..COLUMNS.len()] {
                let _ = write!(text, "{cell:>10}");
            }
            let _ = writeln!(text, "  {:>12}", cells[COLUMNS.len()]);
        }
    }
    text.push('\n');
    for paragraph in outcome.caveats().into_iter().chain(notes(outcome)) {
        let _ = writeln!(text, "{paragraph}");
    }
    text.push('\n');
    text.push_str(&claim::text(&outcome.claims()));
    text
}

/// The ways of a setting, each with its cells under [`COLUMNS`] and [`RANGE`].
pub(super) fn lines(outcome: &Outcome, setting: Setting) -> Vec<(Way, Vec<String>)> {
    let line = |way: Way| {
        let figure = outcome.figure(setting, way)?;
        let mut cells: Vec<String> = [figure.p50_us, figure.p99_us, figure.p999_us, figure.max_us]
            .map(units::time)
            .into();
        let ratio = outcome.by_blocking(setting, way);
        cells.push(ratio.map_or_else(String::new, |ratio| format!("{:.2}", ratio.median)));
        cells.push(ratio.map_or_else(String::new, |ratio| {
            format!("{:.2} – {:.2}", ratio.least, ratio.greatest)
        }));
        Some((way, cells))
    };
    setting.ways().filter_map(line).collect()
}

/// How the figures are to be understood, in sentences.
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "{} rounds; in each all ways take turns in each setting, {} calls each after {} that do \
             not count. Times are medians over the rounds, max is over all of them. The last columns: \
             p50 by that of blocking recv of the same round, the median, and from the least to the \
             greatest.",
            plan.rounds,
            units::count(plan.calls.into()),
            units::count(plan.warm_up.into()),
        ),
        "Client and server are processes with a thread each, pinned, on raw TCP sockets of the \
         loopback: 60 octets there, 28 back. The client blocks in recv. In every set are the listener \
         and the idle connections; a thread that blocks or spins in recv alone leaves them out."
            .to_owned(),
        "Spinning needs a processor for itself, and is not measured on one.".to_owned(),
    ];
    if let IoUring::Permitted(work) = &outcome.io_uring {
        notes.push(format!(
            "io_uring: the kernel's work for completions is {work}; one thread submits; neither \
             descriptors nor buffers are registered."
        ));
    }
    notes
}

pub(super) const COLUMNS: [&str; 5] = ["p50", "p99", "p99.9", "max", "by recv"];
pub(super) const RANGE: &str = "rounds";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn columns_line_up() {
        let outcome = outcome();
        let text = text(&outcome);
        let tables = text
            .lines()
            .skip(2)
            .take_while(|line| !line.contains("rounds;"));
        let widths: Vec<usize> = tables
            .map(|line| line.chars().count())
            .filter(|width| *width > 0)
            .collect();
        let ways = |setting: &Setting| setting.ways().count() + 1;
        let lines: usize = outcome.settings().iter().map(ways).sum();
        assert_eq!(widths.len(), lines, "{text}");
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn what_is_refused_is_said() {
        let mut outcome = outcome();
        assert!(!text(&outcome).contains("refuses"));
        outcome.io_uring = IoUring::Refused("Operation not permitted".to_owned());
        outcome.environment.max_fifo_priority = None;
        outcome.rows.clear();
        let text = text(&outcome);
        for part in [
            "the system refuses it (Operation not permitted)",
            "SCHED_FIFO was not measured",
            "NOT MEASURED    one CPU: io_uring beats",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    }
}
