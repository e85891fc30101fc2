//! The figures as text.

use std::fmt::Write;

use super::case::{Case, Load, Pool, Series, Strategy};
use super::outcome::{Outcome, trial};
use super::plan::HIGH_THREADS;
use crate::claim;
use crate::experiment::Findings;
use crate::units;

/// The figures in tables for a terminal, with what is claimed of them.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = format!("{LEAD}\n");
    for caveat in outcome.caveats() {
        let _ = writeln!(text, "{caveat}");
    }
    for strategy in Strategy::ALL {
        for series in Series::ALL {
            let _ = write!(text, "\n{:48}", heading(outcome, strategy, series));
            for (column, width) in COLUMNS.into_iter().zip(WIDTHS) {
                let _ = write!(text, "{column:>width$}");
            }
            text.push('\n');
            for (name, cells) in lines(outcome, strategy, series) {
                let _ = write!(text, "  {name:46}");
                for (cell, width) in cells.into_iter().zip(WIDTHS) {
                    let _ = write!(text, "{cell:>width$}");
                }
                text.push('\n');
            }
        }
    }
    text.push('\n');
    text.push_str(&claim::text(&outcome.claims()));
    text.push('\n');
    for note in notes(outcome) {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// What a table is of.
pub(super) fn heading(outcome: &Outcome, strategy: Strategy, series: Series) -> String {
    let how = match series {
        Series::Periodic => format!("a call every {}", units::setting(outcome.plan.period)),
        Series::BackToBack => "calls back to back".to_owned(),
    };
    format!("{}, {how}", strategy.title())
}

/// A line for each case: its name, and what stands in the [`COLUMNS`].
pub(super) fn lines(
    outcome: &Outcome,
    strategy: Strategy,
    series: Series,
) -> Vec<(String, [String; 8])> {
    let by = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    Case::ALL
        .into_iter()
        .map(|case| {
            let trial = trial(strategy, case, series);
            let cells = outcome.figure(trial).map(|figure| {
                let (least, greatest) = figure.p99_range_us;
                [
                    units::count(figure.calls),
                    units::time(figure.p50_us),
                    units::time(figure.p99_us),
                    format!("{}–{}", units::time(least), units::time(greatest)),
                    units::time(figure.max_us),
                    by(outcome.ratio(trial, Load::Idle)),
                    by(outcome.ratio(trial, Load::Awake)),
                    format!("{:.0} %", figure.cpu_busy_percent),
                ]
            });
            let none = || {
                let mut cells: [String; 8] = Default::default();
                cells[0] = "none".to_owned();
                cells
            };
            (case.name(), cells.unwrap_or_else(none))
        })
        .collect()
}

/// How the figures are to be understood, in sentences.
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "Every case was measured in each of {} rounds, for {} of calls at fixed times and {} back \
             to back, all in turn. p50 and p99 are the medians of the rounds. The longest call is \
             that of all rounds. By idle and by awake are p99 by that of the same pool when nothing \
             else is done, and when nothing is done but the processors are kept awake.",
            plan.rounds,
            units::setting(plan.periodic),
            units::setting(plan.back_to_back),
        ),
        format!(
            "A pool has {} threads for each of the low and the middle lane, and {HIGH_THREADS} for the \
             high lane; the pool without lanes has the {} together. A call of high priority computes \
             for {}. A latency counts from when the call was due: one that waited for the one before \
             it is charged for it.",
            plan.lower_threads,
            plan.threads(),
            units::setting(plan.high_work),
        ),
        format!(
            "Saturated: {} threads of clients ask the low lane, and as many the middle lane, for work \
             that ends only with the measurement; those that find no thread wait, or, where buffers of \
             {} requests for each lane are full, are refused and try again after 5 ms.",
            plan.saturating_callers(Load::Saturated),
            plan.buffered(),
        ),
        format!(
            "Exhausted: {} threads of another client call the high lane again and again; each call \
             keeps a thread for {}, but no processor, as one does that waits for a device.",
            plan.slow_callers,
            units::setting(plan.slow_work),
        ),
        "An idle processor sleeps, and it takes time to wake it, in a virtual machine a lot. So calls \
         may well be quicker under load. Awake is the harder comparison: another process, that has \
         nothing to do with the server, keeps the processors at work of ordinary scheduling."
            .to_owned(),
        throttling(outcome),
    ];
    if outcome
        .figure(trial(
            Strategy::LeaderFollowers,
            super::claims::NO_LANES,
            Series::BackToBack,
        ))
        .is_none_or(|figure| figure.calls < 100)
    {
        notes.push(
            "Without lanes all threads are at the endless work, and calls wait until it ends with the \
             measurement, whatever their priority. Real-time CORBA promises nothing else: that is what \
             lanes are for."
                .to_owned(),
        );
    }
    if plan.rounds == 1 {
        notes.push("This was a short run: one round, and few calls of each kind.".to_owned());
    }
    notes.push(match outcome.memory_locked {
        true => "The memory of the servers and of the measuring client was locked.".to_owned(),
        false => "Memory could not be locked, since this process may not.".to_owned(),
    });
    notes
}

/// What real-time throttling could do, and did.
fn throttling(outcome: &Outcome) -> String {
    if !outcome.real_time {
        return "No thread was real-time, so that the kernel's real-time throttling had nothing to stop."
            .to_owned();
    }
    let plan = &outcome.plan;
    let cycle = plan.middle_compute + plan.middle_rest;
    let share = plan.middle_compute.as_secs_f64() / cycle.as_secs_f64() * 100.0;
    let did = [
        ("pools with lanes", stops(outcome, |pool| pool != Pool::NoLanes)),
        (
            "the pool without lanes, where that work takes as many threads as it gets",
            stops(outcome, |pool| pool == Pool::NoLanes),
        ),
    ]
    .into_iter()
    .filter_map(|(of, stops)| {
        let longest = stops.iter().copied().reduce(f64::max)?;
        let throttled = stops.iter().filter(|stop| **stop >= THROTTLED_US).count();
        Some(format!(
            " In {of}, the longest time for which it was kept from computing was {}; in {throttled} of \
             {} trials it was {} or more, as when the kernel stops all real-time threads, or a host \
             the machine.",
            units::time(longest),
            stops.len(),
            units::time(THROTTLED_US),
        ))
    });
    let did: String = did.collect();
    format!(
        "The low lane has CORBA priority 0, which is ordinary scheduling, and computes without a rest. \
         The middle lane is real-time: it computes for {} and rests for {}, {share:.0} % of each \
         processor, and the low lane takes what it leaves. Without its rests the kernel's throttling \
         would stop it, and the high lane with it, for the rest of each second ({}).{did}",
        units::setting(plan.middle_compute),
        units::setting(plan.middle_rest),
        outcome.environment.real_time_throttling,
    )
}

/// The longest stops of the middle lane's work, in µs: one of each trial in these pools.
fn stops(outcome: &Outcome, of: impl Fn(Pool) -> bool) -> Vec<f64> {
    let rows = outcome.rows.iter().filter(|row| of(row.trial.case.pool));
    let stops = rows.filter_map(|row| row.middle_longest_stop_us);
    stops.map(f64::from).collect()
}

pub(super) const COLUMNS: [&str; 8] = [
    "calls",
    "p50",
    "p99",
    "p99 of the rounds",
    "longest",
    "by idle",
    "by awake",
    "CPU busy",
];
pub(super) const LEAD: &str = "Calls of high priority while others keep the server busy: a high-priority client, and \
     what its calls take.";
const WIDTHS: [usize; 8] = [9, 9, 9, 19, 9, 9, 10, 10];
/// With the usual settings throttling stops real-time threads for 50 ms.
const THROTTLED_US: f64 = 20_000.0;
