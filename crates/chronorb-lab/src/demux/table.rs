//! The figures as text.

use std::fmt::Write;

use super::claims::SLOT;
use super::outcome::{Outcome, Row, Stage, series};
use super::scale::{MemoryUse, SERVANT, Scale};
use super::schedule::{BATCH, BATCH_OF_SLOW, WARM_UP};
use crate::claim;
use crate::experiment::Findings;
use crate::units;

/// The figures in tables for a terminal, with what is claimed of them.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = String::from("Nanoseconds for one request: median and 99th percentile.\n");
    for stage in Stage::ALL {
        let table = StageTable::new(outcome, stage);
        let _ = writeln!(
            text,
            "\n{}, by the number of {}",
            stage.title(),
            stage.entries()
        );
        let _ = write!(text, "{:18}", "");
        for size in &table.sizes {
            let _ = write!(text, "{:>18}", units::count((*size).into()));
        }
        text.push('\n');
        for (name, cells) in &table.lines {
            let _ = write!(text, "  {name:16}");
            for cell in cells {
                let _ = write!(text, "{:>18}", cell.as_deref().unwrap_or(""));
            }
            text.push('\n');
        }
    }
    text.push('\n');
    for paragraph in scale(outcome)
        .into_iter()
        .chain(notes(outcome))
        .chain(outcome.caveats())
    {
        let _ = writeln!(text, "{paragraph}");
    }
    text.push('\n');
    text.push_str(&claim::text(&outcome.claims()));
    text
}

/// One stage: a line for each strategy, a column for each number of entries.
pub(super) struct StageTable {
    pub(super) sizes: Vec<u32>,
    pub(super) lines: Vec<(String, Vec<Option<String>>)>,
}

impl StageTable {
    pub(super) fn new(outcome: &Outcome, stage: Stage) -> Self {
        let mut sizes: Vec<u32> = (outcome.rows.iter())
            .filter(|row| row.stage == stage)
            .map(|row| row.entries)
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut lines = Vec::new();
        for strategy in outcome.strategies(stage) {
            for (rows, name) in [
                (&outcome.rows, strategy.to_owned()),
                (&outcome.hot, format!("{strategy}, hot")),
            ] {
                let rows = series(rows, stage, strategy);
                if !rows.is_empty() {
                    let at = |size| rows.iter().find(|row| row.entries == size).map(cell);
                    lines.push((name, sizes.iter().copied().map(at).collect()));
                }
            }
        }
        Self { sizes, lines }
    }
}

fn cell(row: &Row) -> String {
    format!("{} · {}", ns(row.p50_ns), ns(row.p99_ns))
}

/// Three or four digits: a decimal where it may mean something.
fn ns(ns: f64) -> String {
    match ns {
        ..99.95 => format!("{ns:.1}"),
        _ => units::count(ns.round() as u64),
    }
}

/// What many objects and POAs take, in sentences.
pub(super) fn scale(outcome: &Outcome) -> Vec<String> {
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
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
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
