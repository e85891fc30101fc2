//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::Value;

use super::outcome::{FailoverOutcome, FailoverRow};
use super::plan::Plug;
use super::{Failover, claims};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{Column, begin, end, table_of};

impl Findings for FailoverOutcome {
    fn headline(&self) -> String {
        let violations: u64 = self.rows.iter().map(|row| row.violations).sum();
        let correct = match violations {
            0 => "every call was executed as its policy says".to_owned(),
            some => format!("{} calls were not executed as told", units::count(some)),
        };
        let p99 = |plug| {
            let record = self.recovery(plug);
            record.map_or_else(|| "none".to_owned(), |r| units::time(r.quantile_us(0.99)))
        };
        format!(
            "{} deaths: {correct}; the next reply comes within {} (p99; {} of a stopped server)",
            units::count(self.trials()),
            p99(Plug::Kill),
            p99(Plug::Stop),
        )
    }

    fn caveats(&self) -> Vec<String> {
        self.environment.stolen_caveat().into_iter().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Failover::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let times = table(self, "From the death to the next reply", &time_columns());
        let calls = table(self, "Results and executions", &call_columns());
        let heading = "From the death of the server to the next reply";
        let document = begin(self, LEAD)
            .part(heading, [by_time(self)], [times])
            .part("All calls", [], [calls]);
        let command = "cargo run --release -- lab failover";
        end(document, notes(self), &self.environment, command)
    }
}

/// Returns the distribution of the times, with the bound.
fn by_time(outcome: &FailoverOutcome) -> Chart {
    let bound = outcome.bound_us();
    let caption = format!(
        "The shares of threads by the time from the death of the server to the first reply of the \
         backup. The bound of the heartbeats and one call is {}.",
        units::time(bound)
    );
    let series = Plug::ALL.into_iter().enumerate().filter_map(|(at, plug)| {
        let record = outcome.recovery(plug)?;
        let points = record.distribution(bound / STEPS, 1.0).into_iter();
        let points = points.map(|(us, share)| (us, share * 100.0));
        Some(Series::new(Mark::Line, plug.title(), points).colour(at))
    });
    let time = Axis::linear("time", Unit::Time);
    Chart::new(caption, time, Axis::linear("threads, %", Unit::Count)).series(series)
}

/// Returns the columns of the times.
fn time_columns<'a>() -> [Column<&'a FailoverRow>; 6] {
    [
        ("deaths", |row| units::count(row.trials)),
        ("threads", |row| units::count(row.recovery.calls)),
        ("had left", |row| units::count(row.left_early)),
        ("p50", |row| units::time(row.recovery.p50_us)),
        ("p99", |row| units::time(row.recovery.p99_us)),
        ("longest", |row| units::time(row.recovery.max_us)),
    ]
}

/// Returns the columns of the results.
fn call_columns<'a>() -> [Column<&'a FailoverRow>; 5] {
    [
        ("calls", |row| units::count(row.all_calls)),
        ("NO", |row| units::count(row.not_executed)),
        ("MAYBE", |row| units::count(row.uncertain)),
        ("executed twice", |row| units::count(row.executed_twice)),
        ("wrong", |row| units::count(row.violations)),
    ]
}

/// Returns a table with a line for each case.
fn table<'a>(
    outcome: &'a FailoverOutcome,
    heading: &str,
    columns: &[Column<&'a FailoverRow>],
) -> Table {
    let lines = outcome.rows.iter().map(|row| (row.case.title(), Some(row)));
    table_of(heading, columns, lines)
}

/// Returns the notes on how to read the figures.
fn notes(outcome: &FailoverOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let [latest, heartbeat, time_out] =
        [plan.latest, plan.heartbeat, plan.heartbeat_timeout].map(units::setting);
    vec![
        format!(
            "{} threads call back to back by a reference to a server and a backup, each on a \
             connection of its own, with a stand-by connection. The server is killed or stopped at \
             a random moment of the first {latest}. Its heartbeats come every {heartbeat}, and \
             must be answered within {time_out}. The time of a call alone would be over after {}.",
            plan.threads,
            units::setting(plan.timeout),
        ),
        "Servers record the number of each call in a file before they reply. A stopped server \
         continues after the last call of its trial, and executes what it had received. Calls are \
         wrong if they were executed more or less often than their policy and their result say. \
         Threads that had left the server because a heartbeat was late have no time."
            .to_owned(),
        format!(
            "One call is the p99 of the calls that the servers answered before their deaths: {}.",
            units::time(outcome.answered.p99_us)
        ),
    ]
}

/// The steps of the distribution up to the bound.
const STEPS: f64 = 60.0;
const LEAD: &str = "Calls whose server dies under load: the number of their executions, and the \
     time to the next reply, which a backup gives.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("failover", &outcome());
    }
}
