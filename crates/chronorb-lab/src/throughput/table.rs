//! The figures as text.

use super::outcome::{Outcome, Row};
use super::trial::{System, Trial, lane_threads};
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
        commands: "cargo run --release -- lab throughput".to_owned(),
    }
}

/// A table for each trial in each place.
pub(super) fn tables(outcome: &Outcome) -> Vec<Table> {
    let places = Trial::ALL
        .into_iter()
        .flat_map(|trial| trial.placements().iter().map(move |place| (trial, *place)));
    places
        .map(|(trial, placement)| table(outcome, trial, placement))
        .filter(|table| !table.lines.is_empty())
        .collect()
}

fn table(outcome: &Outcome, trial: Trial, placement: Placement) -> Table {
    let lines = System::ALL.into_iter().filter_map(|system| {
        let median = outcome.rate(trial, placement, system)?;
        let rates = || {
            outcome
                .rounds(trial, placement, system)
                .map(|row: &Row| row.calls_per_s)
        };
        let by = |to| {
            let ratio = outcome.ratio(trial, placement, system, to);
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
        };
        let cells = [
            rate(trial, median),
            rate(trial, rates().reduce(f64::min)?),
            rate(trial, rates().reduce(f64::max)?),
            units::time(f64::from(trial.clients()) / median * 1e6),
            by(raw(trial)),
            by(System::OmniOrb),
        ];
        Some((system.name(), cells.to_vec()))
    });
    Table {
        heading: format!("{}, {}", trial.name(), placement.name()),
        columns: [
            "median",
            "least",
            "most",
            "a call takes",
            "by raw",
            "by omniORB",
        ]
        .map(str::to_owned)
        .to_vec(),
        lines: lines.collect(),
    }
}

/// A number of calls in a second, or the data that goes each way with them.
pub(super) fn rate(trial: Trial, calls_per_s: f64) -> String {
    match trial {
        // The cast saturates.
        Trial::Clients(_) => format!("{}/s", units::count(calls_per_s.round() as u64)),
        Trial::Data(_) => {
            let mib = calls_per_s * f64::from(trial.octets()) / f64::from(1 << 20);
            format!("{} MiB/s", units::count(mib.round() as u64))
        }
    }
}

/// Which raw server others are measured by.
pub(super) const fn raw(trial: Trial) -> System {
    match trial {
        Trial::Clients(_) => System::EpollOne,
        Trial::Data(_) => System::RawTcp,
    }
}

/// How the figures are to be understood, in sentences.
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "In each of {} rounds everyone had a turn: {} calls, or {} MiB of data each way, after a \
             {}th of that which does not count. Figures are medians of the rounds; by raw and by omniORB \
             are ratios within a round. By raw is by the epoll server with one thread, or by raw \
             TCP. Factors of claims are such ratios, too.",
            plan.rounds,
            units::count(plan.calls.into()),
            plan.mebioctets,
            plan.warm_up_part,
        ),
        format!(
            "A client is a thread with a connection of its own, which calls again when it has its answer. \
             All are in one process, and the server in another. The lane of chronorb has {} threads, and \
             the raw servers wait on epoll sets with one and with as many threads.",
            lane_threads(),
        ),
        "Data is sent and comes back in one call, and figures are what goes each way. A struct has a \
         long, a short, an octet, a double and a float: 24 octets with the padding. Raw TCP reads \
         all that comes and writes all of it, from plain buffers."
            .to_owned(),
    ];
    let sizes = outcome.messages.iter().map(|message| {
        let octets = message.octets;
        format!(
            "{} {} and {}",
            message.trial.name(),
            octets.request,
            octets.reply
        )
    });
    let sizes: Vec<_> = sizes.collect();
    notes.push(format!(
        "Octets of a call of chronorb and of its reply, of which raw sockets move as many: {}.",
        sizes.join(", ")
    ));
    if outcome.omniorb.version.is_some() {
        notes.push(outcome.omniorb.sentence());
    }
    notes
}

pub(super) const LEAD: &str =
    "How many calls, and how much data, in a second, on several systems by turns.";
