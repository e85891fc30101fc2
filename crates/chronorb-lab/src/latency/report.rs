//! The report of the experiment.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Chart, Document, Mark, Table, counted, units};
use serde_json::{Value, json};

use super::outcome::{LatencyOutcome, LatencyRow, p50, summary};
use super::system::LatencySystem;
use super::{Latency, claims};
use crate::Claim;
use crate::bench::{CallScheduling, Placement};
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, by_percentile, curve, end};

impl Findings for LatencyOutcome {
    fn headline(&self) -> String {
        let mut places = Placement::ALL.into_iter();
        let first = places.find_map(|placement| finding(self, placement));
        first.unwrap_or_else(|| "What a call takes".to_owned())
    }

    fn caveats(&self) -> Vec<String> {
        let idle = self.idle.as_ref().filter(|of| !of.fewer_because.is_empty());
        let fewer = idle.map(|idle| {
            format!(
                "Only {} idle connections of {}: {}.",
                idle.connections, idle.wanted, idle.fewer_because
            )
        });
        let stolen = self.environment.stolen_caveat();
        let caveats = [self.omniorb.absence(), fewer, stolen];
        caveats.into_iter().flatten().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Latency::NAME, self, json!({"ratios": self.ratios()}))
    }

    fn document(&self) -> Document {
        let parts = Placement::ALL.into_iter();
        let parts = parts.filter_map(|place| Some((finding(self, place)?, place)));
        let document = parts.fold(begin(self, LEAD), |document, (finding, place)| {
            document.part(finding, [curves(self, place)], [])
        });
        let tables = Placement::ALL.map(|place| of_place(self, place));
        let tables = tables.into_iter().chain(of_idle_connections(self));
        let command = "cargo run --release -- lab latency";
        let document = document.part("The figures", [], tables);
        end(document, notes(self), &self.environment, command)
    }
}

/// Returns the result in a place; nothing without calls.
fn finding(outcome: &LatencyOutcome, placement: Placement) -> Option<String> {
    let systems = [LatencySystem::Chronorb, LatencySystem::ChronorbSpinning].into_iter();
    let findings = systems.filter_map(|system| {
        let (_, figures) = summary(&outcome.rounds(system, placement))?;
        let by_raw = outcome.ratio(system, system.raw(), placement, p50)?;
        let (name, p50) = (system.name(), units::time(figures.p50_us));
        Some(format!("{name}: p50 {p50}, {by_raw:.2} of raw TCP"))
    });
    let findings: Vec<_> = findings.collect();
    let any = !findings.is_empty();
    any.then(|| format!("A call, {}: {}", placement.name(), findings.join("; ")))
}

/// Returns the latency of all systems in a place by percentile.
fn curves(outcome: &LatencyOutcome, placement: Placement) -> Chart {
    let styles = [
        (Mark::Dashes, NEUTRAL),
        (Mark::Line, 0),
        (Mark::Line, 1),
        (Mark::Dashes, 2),
        (Mark::Line, 2),
    ];
    let curves = LatencySystem::ALL.into_iter().zip(styles);
    let curves = curves.filter_map(|(system, (mark, colour))| {
        let record = outcome.pooled.get((system, placement))?;
        Some(curve(mark, system.name(), record).colour(colour))
    });
    by_percentile("calls", curves)
}

fn of_place(outcome: &LatencyOutcome, placement: Placement) -> Table {
    let lines = LatencySystem::ALL.into_iter().filter_map(|system| {
        let mut cells = cells(&outcome.rounds(system, placement))?;
        let ratio = outcome.ratio(system, system.raw(), placement, p50);
        cells.push(ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")));
        Some((system.name().to_owned(), cells))
    });
    let columns = COLUMNS.into_iter().chain(["by raw"]);
    let (place, scheduled) = (placement.name(), outcome.plan.scheduled.name());
    Table::new(format!("A call, {place}, {scheduled}"), columns, lines)
}

fn of_idle_connections(outcome: &LatencyOutcome) -> Option<Table> {
    let idle = outcome.idle.as_ref()?;
    let with = format!("{} more connections", units::count(idle.connections.into()));
    let lines = [
        ("no other connection".to_owned(), &idle.alone),
        (with, &idle.among_idle),
    ];
    let lines = lines.into_iter().filter_map(|(name, rows)| {
        let rows: Vec<&LatencyRow> = rows.iter().collect();
        Some((name, cells(&rows)?))
    });
    let heading = format!("A call, same CPU, {}", idle.scheduled.name());
    Some(Table::new(heading, COLUMNS, lines))
}

/// Returns the cells of several rounds; nothing without a round.
fn cells(rows: &[&LatencyRow]) -> Option<Vec<String>> {
    let (min_us, figures) = summary(rows)?;
    let times = [
        min_us,
        figures.p50_us,
        figures.p99_us,
        figures.p999_us,
        figures.max_us,
        figures.mean_us,
        figures.jitter_us,
    ];
    Some(counted(figures.calls, times))
}

/// Returns the conditions of the figures, in sentences.
fn notes(outcome: &LatencyOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let [calls, warm_up] = [plan.calls, plan.warm_up].map(|calls| units::count(calls.into()));
    let mut notes = vec![
        format!(
            "In each of {} rounds every system made {calls} calls in every place, by turns, after \
             {warm_up} that do not count. Figures are medians of the rounds, but min and max, \
             which are those of all calls. By raw is p50 by that of raw TCP that waits alike; it \
             and the factors of claims are medians of the ratios within a round. Jitter is the \
             standard deviation.",
            plan.rounds,
        ),
        format!(
            "A call of chronorb has {} octets and its reply {}, and raw TCP moves as many. Client \
             and server are processes with one connection over the loopback. A system that spins \
             polls on both sides, and needs a CPU for each.",
            outcome.messages.request, outcome.messages.reply,
        ),
        "Same CPU is what a call costs in work: client and server take turns. Across CPUs and \
         unpinned, a CPU that sleeps has to be woken, which may take longer than the call."
            .to_owned(),
    ];
    notes.extend(outcome.omniorb.presence());
    if let Some(idle) = &outcome.idle {
        notes.push(format!(
            "Idle connections: {} octets of the server's resident memory each ({} with {} \
             connections, {} without). The kernel's memory for each socket is not counted. Each \
             of them was used once.",
            units::count(idle.octets_each().round() as u64),
            units::bytes(idle.resident_with as f64),
            units::count(idle.connections.into()),
            units::bytes(idle.resident_before as f64),
        ));
        if idle.scheduled == CallScheduling::Other {
            notes.push(
                "The calls beside idle connections have no real-time priority: this process may \
                 not use one."
                    .to_owned(),
            );
        }
    }
    notes
}

const LEAD: &str =
    "What a call takes: an octet, and its cube as the answer, on several systems by turns.";
const COLUMNS: [&str; 8] = [
    "calls", "min", "p50", "p99", "p99.9", "max", "mean", "jitter",
];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("latency", &outcome());
    }
}
