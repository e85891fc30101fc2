//! The report of the experiment.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::Value;

use super::outcome::ThroughputOutcome;
use super::trial::{EPOLL_THREADS, ThroughputSystem, ThroughputTrial};
use super::{Throughput, claims};
use crate::Claim;
use crate::bench::{Placement, Sizes};
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, end};

impl Findings for ThroughputOutcome {
    fn headline(&self) -> String {
        finding(self, CALLS)
    }

    fn caveats(&self) -> Vec<String> {
        let caveats = [self.omniorb.absence(), self.environment.stolen_caveat()];
        caveats.into_iter().flatten().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Throughput::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let calls = bars(
            self,
            CALLS,
            "Small calls in a second, of all clients together: medians of the rounds.",
            Axis::linear("calls in a second", Unit::Count),
        );
        let data = bars(
            self,
            DATA,
            "Data that goes each way in a second: medians of the rounds.",
            Axis::linear("data each way", Unit::Of("MiB/s")),
        );
        let tables = ThroughputTrial::in_places().map(|of| table(self, of));
        let document = begin(self, LEAD)
            .part(finding(self, CALLS), [calls], [])
            .part(finding(self, DATA), [data], [])
            .part("The figures", [], tables);
        let command = "cargo run --release -- lab throughput";
        end(document, notes(self), &self.environment, command)
    }
}

/// Returns the result of a trial in one line.
fn finding(outcome: &ThroughputOutcome, trial: ThroughputTrial) -> String {
    let placement = trial.placements()[0];
    let of = (trial, placement);
    let median = outcome.rate(of, ThroughputSystem::Chronorb);
    let ratio = outcome.ratio(of, [ThroughputSystem::Chronorb, trial.raw()]);
    match median.zip(ratio) {
        Some((median, ratio)) => format!(
            "{}, {}: {} on chronorb, {ratio:.2} of {}",
            trial.name(),
            placement.name(),
            rate(trial, median),
            trial.raw().name(),
        ),
        None => format!("{}: not measured", trial.name()),
    }
}

const CALLS: ThroughputTrial = ThroughputTrial::ALL[2];
const DATA: ThroughputTrial = ThroughputTrial::ALL[3];

/// Returns a group of bars for each trial of calls or of data in each place, with a bar for each
/// system.
fn bars(outcome: &ThroughputOutcome, kind: ThroughputTrial, caption: &str, axis: Axis) -> Chart {
    let is_data = |trial: ThroughputTrial| trial.octets() > 0;
    let groups = ThroughputTrial::in_places();
    let groups: Vec<_> = groups
        .filter(|(of, _)| is_data(*of) == is_data(kind))
        .collect();
    let colours = [0, 1, NEUTRAL, 6, NEUTRAL, 6];
    let systems = ThroughputSystem::ALL.into_iter().zip(colours);
    let series = systems.map(|(system, colour)| {
        let rates = groups.iter().map(|of| {
            let rate = outcome.rate(*of, system)?;
            Some(if is_data(of.0) {
                of.0.mebioctets(rate)
            } else {
                rate
            })
        });
        Series::of_groups(Mark::Bars, system.name(), rates).colour(colour)
    });
    let groups = groups.iter().map(|(trial, placement)| {
        let name = match trial.kind() {
            "" => trial.name(),
            kind => kind.to_owned(),
        };
        let place = match placement {
            Placement::SameCpu => "1 CPU",
            Placement::AcrossCpus => "2 CPUs",
            Placement::Unpinned => "unpinned",
        };
        format!("{name}, {place}")
    });
    Chart::new(caption, Axis::groups("", groups), axis).series(series)
}

fn table(outcome: &ThroughputOutcome, of: (ThroughputTrial, Placement)) -> Table {
    let (trial, placement) = of;
    let lines = ThroughputSystem::ALL.into_iter().filter_map(|system| {
        let median = outcome.rate(of, system)?;
        let rates = || outcome.rounds(of, system).map(|row| row.calls_per_s);
        let by = |to| {
            let ratio = outcome.ratio(of, [system, to]);
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
        };
        let cells = vec![
            rate(trial, median),
            rate(trial, rates().reduce(f64::min)?),
            rate(trial, rates().reduce(f64::max)?),
            units::time(f64::from(trial.clients()) / median * 1e6),
            by(trial.raw()),
            by(ThroughputSystem::OmniOrb),
        ];
        Some((system.name(), cells))
    });
    let heading = format!("{}, {}", trial.name(), placement.name());
    Table::new(heading, COLUMNS, lines)
}

/// Formats the calls in a second, or the data that they move each way.
pub(super) fn rate(trial: ThroughputTrial, calls_per_s: f64) -> String {
    match trial {
        // The casts saturate.
        ThroughputTrial::Clients(_) => format!("{}/s", units::count(calls_per_s.round() as u64)),
        ThroughputTrial::Data(_) => {
            let mib = trial.mebioctets(calls_per_s);
            format!("{} MiB/s", units::count(mib.round() as u64))
        }
    }
}

/// Returns the conditions of the figures, in sentences.
fn notes(outcome: &ThroughputOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "In each of {} rounds every system had a turn: {} calls, or {} MiB of data each way, \
             after a {}th of that which does not count. Figures are medians of the rounds; by raw \
             and by omniORB are ratios within a round. By raw is by the epoll server with one \
             thread, or by raw TCP. Factors of claims are such ratios, too.",
            plan.rounds,
            units::count(plan.calls.into()),
            plan.mebioctets,
            plan.warm_up_part,
        ),
        format!(
            "A client is a thread with a connection of its own, which calls again when it has its \
             answer. All are in one process, and the server in another. The pool of chronorb \
             grows with the load, and the raw servers wait on epoll sets with one and with {} \
             threads.",
            EPOLL_THREADS,
        ),
        "Data is sent and comes back in one call, and figures are what goes each way. A struct \
         has a long, a short, an octet, a double and a float: 24 octets with the padding. \
         Unions are by turns a long long, a text and a struct; an any has a struct and its type \
         code, a value a long and a double. Raw TCP reads all that comes and writes all of it, \
         from plain buffers: each side from the one that it receives into. With replies apart, \
         the client has another for what comes back, as one that keeps its arguments has to."
            .to_owned(),
    ];
    let sizes = outcome.messages.iter().map(|message| {
        let Sizes { request, reply } = message.octets;
        format!("{} {request} and {reply}", message.trial.name())
    });
    notes.push(format!(
        "Octets of a call of chronorb and of its reply, of which raw sockets move as many: {}.",
        sizes.collect::<Vec<_>>().join(", ")
    ));
    notes.extend(outcome.omniorb.presence());
    notes
}

const COLUMNS: [&str; 6] = [
    "median",
    "least",
    "most",
    "a call takes",
    "by raw",
    "by omniORB",
];
const LEAD: &str = "How many calls, and how much data, in a second, on several systems by turns.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("throughput", &outcome());
    }
}
