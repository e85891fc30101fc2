//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::claims::SLOT;
use super::outcome::{Outcome, Row, Stage, series};
use super::scale::{MemoryUse, SERVANT, Scale};
use super::schedule::{BATCH, BATCH_OF_SLOW, WARM_UP};
use crate::report::{begin, end};

pub(super) fn document(outcome: &Outcome) -> Document {
    let stages = Stage::ALL.into_iter();
    let document = stages.fold(begin(outcome, LEAD), |document, stage| {
        let heading = format!("{}, by the number of {}", stage.title(), stage.entries());
        document.part(
            heading,
            [by_entries(outcome, stage)],
            [table(outcome, stage)],
        )
    });
    let document = document
        .section("Very many objects and POAs")
        .notes(scale(outcome));
    end(
        document,
        notes(outcome),
        &outcome.environment,
        "cargo run --release -- lab demux\ncargo run --release -- lab demux --json",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let rows = outcome.series(Stage::Total, "active");
    let ends = rows.first().zip(rows.last());
    let Some((first, last)) = ends else {
        return "From a request's octets to its skeleton".to_owned();
    };
    format!(
        "From a request's octets to its skeleton: {:.0} ns with {} object, {:.0} ns with {}",
        first.p50_ns,
        units::count(first.entries.into()),
        last.p50_ns,
        units::count(last.entries.into()),
    )
}

/// A stage by every strategy, with the slides' figure.
fn by_entries(outcome: &Outcome, stage: Stage) -> Chart {
    let published = stage.published_ns() / 1e3;
    let caption = format!(
        "The median for one by the number of {}. The slides of 1999 give {}.",
        stage.entries(),
        units::time(published),
    );
    let points = |rows: &[Row], strategy| {
        let rows = series(rows, stage, strategy).into_iter();
        let points: Vec<_> = rows
            .map(|row| (f64::from(row.entries), row.p50_ns / 1e3))
            .collect();
        points
    };
    let strategies = outcome.strategies(stage).into_iter();
    let curves = strategies.map(|strategy| {
        let points = points(&outcome.rows, strategy);
        Series::new(Mark::Line, strategy, points).colour(colour(strategy))
    });
    let curves: Vec<_> = curves.collect();
    let entries = Axis::log(stage.entries(), Unit::Count);
    let chart = Chart::new(caption, entries, Axis::log("time for one", Unit::Time));
    let all = || outcome.rows.iter().filter(|row| row.stage == stage);
    let (Some(least), Some(most)) = (
        all().map(|row| row.entries).min(),
        all().map(|row| row.entries).max(),
    ) else {
        return chart;
    };
    let slides = [least, most].map(|entries| (f64::from(entries), published));
    chart.series(curves).series([
        Series::new(Mark::Dashes, "active, hot", points(&outcome.hot, "active")).colour(0),
        Series::new(Mark::Dashes, "slides, 1999", slides).colour(NEUTRAL),
    ])
}

/// The colour of a strategy, the same in all charts.
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

/// A stage: a line for each strategy, a column for each number of entries.
fn table(outcome: &Outcome, stage: Stage) -> Table {
    let mut sizes: Vec<u32> = (outcome.rows.iter())
        .filter(|row| row.stage == stage)
        .map(|row| row.entries)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let columns: Vec<_> = sizes
        .iter()
        .map(|size| units::count((*size).into()))
        .collect();
    let mut lines = Vec::new();
    for strategy in outcome.strategies(stage) {
        for (rows, name) in [
            (&outcome.rows, strategy.to_owned()),
            (&outcome.hot, format!("{strategy}, hot")),
        ] {
            let rows = series(rows, stage, strategy);
            if !rows.is_empty() {
                let at = |size: &u32| rows.iter().find(|row| row.entries == *size);
                let cells = sizes
                    .iter()
                    .map(|size| at(size).map_or_else(String::new, cell));
                lines.push((name, cells.collect()));
            }
        }
    }
    Table::new(
        "Median · 99th percentile",
        columns.iter().map(String::as_str),
        lines,
    )
}

fn cell(row: &Row) -> String {
    let [p50, p99] = [row.p50_ns, row.p99_ns].map(|ns| units::time(ns / 1e3));
    format!("{p50} · {p99}")
}

/// What many objects and POAs take, in sentences.
fn scale(outcome: &Outcome) -> Vec<String> {
    let Scale { objects, poas } = &outcome.scale;
    let room = |room: &MemoryUse| match room.allocated {
        Some(octets) => format!("{} octets", whole(octets)),
        None => format!("{} octets of resident memory", whole(room.resident)),
    };
    vec![
        format!(
            "{} objects in one POA: activation {} ns and deactivation {} ns for each; each took {}, its \
             servant of {SERVANT} octets included. After their deactivation {} were left of all.",
            units::count(objects.count.into()),
            whole(objects.begin_ns),
            whole(objects.end_ns),
            room(&objects.octets),
            room(&objects.rest),
        ),
        format!(
            "{} POAs: creation {} ns and destruction {} ns for each; each took {}. After their \
             destruction {} were left of all.",
            units::count(poas.count.into()),
            whole(poas.begin_ns),
            whole(poas.end_ns),
            room(&poas.octets),
            room(&poas.rest),
        ),
        match objects.octets.allocated {
            Some(_) => "Octets are counted as they were asked of the allocator.".to_owned(),
            None => {
                "Nobody counts what is asked of the allocator here, so that it is the resident \
                     memory of the process."
                    .to_owned()
            }
        },
    ]
}

fn whole(value: f64) -> String {
    units::count(value.max(0.0).round() as u64)
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "Entries are drawn at random, in an order that was shuffled beforehand; \"hot\" is always \
             the same entry. What names the entry (the message, the key, the name) was just written, as \
             by a receive; the table is as warm as look-ups of up to {} entries make it.",
            units::count(WARM_UP as u64)
        ),
        "Among one entry the same is found again and again, and the processor foresees every branch; \
         among many it does not. That, and not the table, is the first part of any growth."
            .to_owned(),
        format!(
            "The clock is read for {BATCH} look-ups together ({BATCH_OF_SLOW} where one takes over 2 µs), \
             and its own cost is taken off. So the 99th percentile is that of averages over such \
             batches: it shows what the machine does to them, and evens out a single slow look-up."
        ),
        format!(
            "All cases take turns in each of {} rounds; a figure is the median over the rounds.",
            plan.rounds
        ),
        "The whole way is everything that a lane's thread does from the octets of a message on: header, \
         key, POA, its manager, priority, servant, Current, and the skeleton's look-up of the operation; and \
         letting go of all that. What needs a connection (code sets) and the reply are left out."
            .to_owned(),
        cache(outcome),
    ];
    if !plan.is_full() {
        notes.push(
            "This was a short run: fewer rounds, fewer objects in one POA, and nothing of 1 000 000 \
             servants."
                .to_owned(),
        );
    }
    notes
}

/// Where tables leave the caches.
fn cache(outcome: &Outcome) -> String {
    let level = |name: &str, size: Option<u64>| match size {
        Some(size) => format!(
            "{name} ({} KiB) up to {} entries",
            units::count(size >> 10),
            units::count(size / SLOT)
        ),
        None => format!("{name} of unknown size"),
    };
    let caches = outcome.caches;
    format!(
        "What a look-up by `active` reads of a table is one cache line of {SLOT} octets for each entry: it \
         fits {}, {} and {}, which other programs use too. Beyond that each look-up waits for memory, and \
         its page for the translation; what is called often stays fast, as the hot rows show.",
        level("L1", caches.l1d),
        level("L2", caches.l2),
        level("L3", caches.l3),
    )
}

const LEAD: &str = "An ORB has to find, for each request, the POA, the servant and the operation that it \
                    names. Each stage was measured for one entry and for many, by each strategy: median \
                    and 99th percentile for one request.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("demux", &outcome());
    }
}
