//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Unit, units};
use serde_json::Value;

use super::Endurance;
use super::outcome::{EnduranceOutcome, EnduranceRow};
use super::plan::{GRACE, RECOVERY};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, by_columns, end};

impl Findings for EnduranceOutcome {
    fn headline(&self) -> String {
        let calls: u64 = self.rows.iter().map(|row| row.calls).sum();
        let failures = match self.failures() {
            0 => "no failure".to_owned(),
            1 => "1 failure".to_owned(),
            several => format!("{} failures", units::count(several)),
        };
        format!(
            "{failures} in {} calls, while {} processes were killed and {} stopped",
            units::count(calls),
            units::count(self.kills),
            units::count(self.stops),
        )
    }

    fn caveats(&self) -> Vec<String> {
        self.environment.stolen_caveat().into_iter().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        self.judged()
    }

    fn figures(&self) -> Value {
        figures(Endurance::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let label = |row: &EnduranceRow| row.load.title().to_owned();
        let table = by_columns(
            "Clients",
            &self.rows,
            label,
            [
                ("calls", |row| units::count(row.calls)),
                ("failed while disturbed", |row| units::count(row.explained)),
                ("failed otherwise", |row| units::count(row.unexplained)),
                ("wrong", |row| units::count(row.wrong)),
                ("hung", |row| units::count(row.hung)),
                ("lost", |row| units::count(row.lost)),
                ("out of order", |row| units::count(row.disorder)),
            ],
        );
        let document = begin(self, LEAD).part("The load", [], [table]).part(
            "The memory of the servers",
            [memory(self)],
            [],
        );
        let command = "cargo run --release -- lab endurance";
        end(document, notes(self), &self.environment, command)
    }
}

fn memory(outcome: &EnduranceOutcome) -> Chart {
    let samples = outcome.memory.iter();
    let points = samples.map(|of| (of.at_s, of.octets as f64 / f64::from(1 << 20)));
    let caption = "The resident memory of all servers over time. A server that starts again begins \
                   anew.";
    let time = Axis::linear("time, s", Unit::Count);
    let memory = Axis::linear("memory, MiB", Unit::Count);
    Chart::new(caption, time, memory).series([Series::new(Mark::Line, "all servers", points)])
}

/// Returns the notes on how to read the figures.
fn notes(outcome: &EnduranceOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let [timeout, grace, recovery, stop] =
        [plan.timeout, GRACE, RECOVERY, plan.longest_stop].map(units::setting);
    let mut notes = vec![
        format!(
            "{} clients of each load for {}, with the seed {}. From time to time a server or a \
             client is stopped for up to {stop}, or killed and started again.",
            plan.clients,
            units::setting(plan.length),
            plan.seed,
        ),
        format!(
            "A call has a timeout of {timeout}. It hangs if it takes {grace} longer, less the time \
             for which its client was stopped. An exception has an explanation if its server or \
             its client was disturbed while the call was under way: from the signal until \
             {recovery} after the process went on or had started again. Consumers of events that \
             are stopped disturb the channel. Events may be lost."
        ),
    ];
    let failures = outcome.deaths.iter().chain(&outcome.words);
    notes.extend(failures.filter(|words| !words.is_empty()).cloned());
    notes
}

const LEAD: &str = "Calls at two priorities, asynchronous calls, names and events, while servers \
     and clients are killed and stopped.";

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("endurance", &outcome());
    }
}
