//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::Value;

use super::Demux;
use super::claims::{self, SLOT};
use super::outcome::{DemuxOutcome, LookUpRow, Stage, series};
use super::scale::{BulkCost, MemoryUse, SERVANT};
use super::schedule::{BATCH, BATCH_OF_SLOW, WARM_UP};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, end};

impl Findings for DemuxOutcome {
    fn headline(&self) -> String {
        let rows = self.series(Stage::Total, "active");
        let [Some(first), Some(last)] = [rows.first(), rows.last()] else {
            return "From a request's octets to its skeleton".to_owned();
        };
        let [one, many] = [first, last].map(|row| units::count(row.entries.into()));
        let (least, most) = (first.p50_ns, last.p50_ns);
        format!(
            "From a request's octets to its skeleton: {least:.0} ns with {one} object, {most:.0} \
             ns with {many}"
        )
    }

    fn caveats(&self) -> Vec<String> {
        self.environment.stolen_caveat().into_iter().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Demux::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let stages = Stage::ALL.into_iter();
        let document = stages.fold(begin(self, LEAD), |document, stage| {
            let heading = format!("{}, by the number of {}", stage.title(), stage.entries());
            document.part(heading, [by_entries(self, stage)], [table(self, stage)])
        });
        let scale = document
            .section("Very many objects and POAs")
            .notes(scale(self));
        end(scale, notes(self), &self.environment, COMMANDS)
    }
}

/// Returns the times of a stage by every strategy, with the figure of the slides.
fn by_entries(outcome: &DemuxOutcome, stage: Stage) -> Chart {
    let (name, published) = (stage.entries(), stage.published_ns() / 1e3);
    let caption = format!(
        "The median for one by the number of {name}. The slides of 1999 give {}.",
        units::time(published),
    );
    let curve = |rows, strategy, mark, name| {
        let points = series(rows, stage, strategy).into_iter();
        let points = points.map(|row| (f64::from(row.entries), row.p50_ns / 1e3));
        Series::new(mark, name, points).colour(colour(strategy))
    };
    let strategies = STRATEGIES.into_iter();
    let curves = strategies.map(|name| curve(&outcome.rows, name, Mark::Line, name));
    let chart = Chart::new(
        caption,
        Axis::log(name, Unit::Count),
        Axis::log("time for one", Unit::Time),
    );
    let sizes = sizes(outcome, stage);
    let ends = [sizes.first(), sizes.last()].into_iter().flatten();
    let slides = ends.map(|entries| (f64::from(*entries), published));
    chart.series(curves).series([
        curve(&outcome.hot, "active", Mark::Dashes, "active, hot"),
        Series::new(Mark::Dashes, "slides, 1999", slides).colour(NEUTRAL),
    ])
}

/// Returns the colour of a strategy, the same in all charts.
fn colour(strategy: &str) -> usize {
    match strategy {
        "linear" => 1,
        "user-id" | "binary" => 2,
        "no-hint" => 3,
        "hash" => 4,
        "persistent" => 5,
        _ => 0,
    }
}

/// Returns the numbers of entries that a stage was measured with.
fn sizes(outcome: &DemuxOutcome, stage: Stage) -> Vec<u32> {
    let rows = outcome.rows.iter().filter(|row| row.stage == stage);
    let mut sizes: Vec<u32> = rows.map(|row| row.entries).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the table of a stage: a line for each strategy, a column for each number of entries.
fn table(outcome: &DemuxOutcome, stage: Stage) -> Table {
    let sizes = sizes(outcome, stage);
    let line = |rows: &[LookUpRow], strategy, name| {
        let rows = series(rows, stage, strategy);
        let cell = |size: &u32| {
            let row = rows.iter().find(|row| row.entries == *size);
            let times = row.map(|row| [row.p50_ns, row.p99_ns].map(|ns| units::time(ns / 1e3)));
            times.map_or_else(String::new, |[p50, p99]| format!("{p50} · {p99}"))
        };
        (!rows.is_empty()).then(|| (name, sizes.iter().map(cell).collect()))
    };
    let lines = STRATEGIES.into_iter().flat_map(|strategy| {
        let hot = format!("{strategy}, hot");
        [
            line(&outcome.rows, strategy, strategy.to_owned()),
            line(&outcome.hot, strategy, hot),
        ]
    });
    let columns = sizes.iter().map(|size| units::count((*size).into()));
    let columns: Vec<_> = columns.collect();
    Table::new(
        "Median · 99th percentile",
        columns.iter().map(String::as_str),
        lines.flatten(),
    )
}

/// Returns the cost of many objects and POAs in sentences.
fn scale(outcome: &DemuxOutcome) -> Vec<String> {
    let whole = |value: f64| units::count(value.max(0.0).round() as u64);
    let memory = |memory: &MemoryUse| match memory.allocated {
        Some(octets) => format!("{} octets", whole(octets)),
        None => format!("{} octets of resident memory", whole(memory.resident)),
    };
    let cost = |cost: &BulkCost, [things, begin, end, with]: [&str; 4]| {
        format!(
            "{} {things}: {begin} {} ns and {end} {} ns for each; each took {}{with}. After their \
             {end} {} were left of all.",
            units::count(cost.count.into()),
            whole(cost.begin_ns),
            whole(cost.end_ns),
            memory(&cost.octets),
            memory(&cost.rest),
        )
    };
    let (objects, poas) = (&outcome.scale.objects, &outcome.scale.poas);
    let with = format!(", its servant of {SERVANT} octets included");
    let is_counted = objects.octets.allocated.is_some();
    let counted = "Octets are counted when the program asks its allocator for them.";
    let resident = "The requests to the allocator are not counted here, so the octets are those of \
                    the resident memory of the process.";
    vec![
        cost(
            objects,
            ["objects in one POA", "activation", "deactivation", &with],
        ),
        cost(poas, ["POAs", "creation", "destruction", ""]),
        if is_counted { counted } else { resident }.to_owned(),
    ]
}

/// Returns explanations of the figures.
fn notes(outcome: &DemuxOutcome) -> Vec<String> {
    let rounds = outcome.plan.rounds;
    let warm_up = units::count(WARM_UP as u64);
    let mut notes = vec![
        format!(
            "Entries are drawn at random in advance; \"hot\" is always the same entry. The name of \
             the entry (the message, the key, the name) was just written, as by a receive; the \
             table is as warm as look-ups of up to {warm_up} entries make it."
        ),
        "With one entry the processor predicts every branch, with many it does not. That, and not \
         the table, is the first part of any growth."
            .to_owned(),
        format!(
            "The clock is read for {BATCH} look-ups together ({BATCH_OF_SLOW} if one takes over 2 \
             µs), and its own cost is subtracted. So the 99th percentile is one of averages: it \
             shows disturbances by the machine, and evens out a single slow look-up."
        ),
        format!("All cases take turns in {rounds} rounds; a figure is the median of the rounds."),
        "The whole way is all that a lane's thread does from the octets of a message on: header, \
         key, POA, manager, priority, servant, Current, operation, and the release of all that. \
         Code sets and the reply are left out."
            .to_owned(),
        cache(outcome),
    ];
    if !outcome.plan.is_full() {
        notes.push("This was a short run, with fewer rounds, objects and servants.".to_owned());
    }
    notes
}

/// Returns the numbers of entries at which tables exceed the caches, in a sentence.
fn cache(outcome: &DemuxOutcome) -> String {
    let caches = outcome.caches;
    let levels = [("L1", caches.l1d), ("L2", caches.l2), ("L3", caches.l3)];
    let [l1, l2, l3] = levels.map(|(name, size)| match size {
        Some(size) => {
            let [kib, entries] = [size >> 10, size / SLOT].map(units::count);
            format!("{name} ({kib} KiB) up to {entries} entries")
        }
        None => format!("{name} of unknown size"),
    });
    format!(
        "A look-up by `active` reads one cache line of {SLOT} octets of the table for each entry: \
         it fits {l1}, {l2} and {l3}, which other programs use too. Beyond that each look-up waits \
         for memory, and its page for the translation; frequent calls stay fast, as the hot rows \
         show."
    )
}

/// All strategies, the best first.
const STRATEGIES: [&str; 9] = [
    "giop",
    "active",
    "perfect",
    "user-id",
    "persistent",
    "no-hint",
    "hash",
    "binary",
    "linear",
];
const COMMANDS: &str = "cargo run --release -- lab demux\n\
                        cargo run --release -- lab demux --json";
const LEAD: &str = "An ORB has to find, for each request, the POA, the servant and the operation \
                    that it names. Each stage was measured for one entry and for many, by each \
                    strategy: median and 99th percentile for one request.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("demux", &outcome());
    }
}
