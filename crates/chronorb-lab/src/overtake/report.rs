//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series as Curve, Table, Unit, units};

use super::case::{Case, Load, Pool, Series, Strategy};
use super::claims::{BORROWING, EXHAUSTED, FULL, NO_LANES, SATURATED};
use super::outcome::{Outcome, trial};
use super::plan::HIGH_THREADS;
use crate::report::{begin, curve, end, in_time, latency};

pub(super) fn document(outcome: &Outcome) -> Document {
    let mut document = begin(outcome, LEAD);
    for strategy in Strategy::ALL {
        let chart = by_percentile(outcome, strategy);
        document = document.part(overtaking(outcome, strategy), [chart], []);
    }
    for series in Series::ALL {
        let chart = by_case(outcome, series);
        document = document.part(steady(outcome, series), [chart], []);
    }
    for strategy in Strategy::ALL {
        let chart = over_time(outcome, strategy);
        document = document.part(waiting(outcome, strategy), [chart], []);
    }
    let trials = Strategy::ALL.into_iter();
    let trials = trials.flat_map(|strategy| Series::ALL.map(|series| (strategy, series)));
    let tables = trials.map(|(strategy, series)| table(outcome, strategy, series));
    let document = document.part("The figures", [], tables);
    end(
        document,
        notes(outcome),
        &outcome.environment,
        "cargo run --release -- lab overtake",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let ratios = |to| {
        let saturated = |strategy| trial(strategy, SATURATED, Series::Periodic);
        let [first, second] = Strategy::ALL.map(|of| outcome.ratio(saturated(of), to));
        Some(format!("{:.2} and {:.2}", first?, second?))
    };
    match ratios(Load::Idle).zip(ratios(Load::Awake)) {
        Some((idle, awake)) => format!(
            "With all lower lanes saturated, calls of the high lane have {idle} of the p99 of an idle \
             machine (Leader/Followers and Half-Sync/Half-Async), and {awake} of one kept awake"
        ),
        None => "Calls of high priority while endless work saturates all lower lanes".to_owned(),
    }
}

/// What the percentiles of a strategy show.
fn overtaking(outcome: &Outcome, strategy: Strategy) -> String {
    let p99 = |case| {
        let figure = outcome.figure(trial(strategy, case, Series::Periodic));
        figure.map_or_else(|| "not measured".to_owned(), |f| units::time(f.p99_us))
    };
    format!(
        "{}: p99 {} idle, {} awake, {} with the lower lanes saturated, {} with their buffers full",
        strategy.title(),
        p99(SATURATED.under(Load::Idle)),
        p99(SATURATED.under(Load::Awake)),
        p99(SATURATED),
        p99(FULL),
    )
}

/// What the rounds show.
fn steady(outcome: &Outcome, series: Series) -> String {
    let ratios = Strategy::ALL
        .into_iter()
        .flat_map(|strategy| [SATURATED, FULL].map(|case| trial(strategy, case, series)))
        .filter_map(|trial| outcome.ratio(trial, Load::Idle));
    let calls = match series {
        Series::Periodic => "Calls at fixed times",
        Series::BackToBack => "Calls back to back",
    };
    match ratios.reduce(f64::max) {
        Some(most) => format!(
            "{calls}: with lower lanes saturated p99 is at most {most:.2} of idle, by either strategy, \
             also with full buffers"
        ),
        None => format!("{calls} were not measured"),
    }
}

/// What the courses show.
fn waiting(outcome: &Outcome, strategy: Strategy) -> String {
    let p99 = |case: Case| {
        let figure = outcome.figure(trial(strategy, case, Series::Periodic));
        figure.map_or_else(|| "not measured".to_owned(), |f| units::time(f.p99_us))
    };
    format!(
        "{}, high lane exhausted: p99 {} with borrowing, {} without, where {} of its own lane's work \
         are to be waited for",
        strategy.title(),
        p99(BORROWING),
        p99(EXHAUSTED),
        units::setting(outcome.plan.work_before()),
    )
}

/// Latency by percentile of the calls at fixed times: one strategy, idle and under the loads.
fn by_percentile(outcome: &Outcome, strategy: Strategy) -> Chart {
    let caption = "Latency by percentile of the calls at fixed times, all rounds together. To the right \
                   each step is ten times rarer; a line ends at the longest call.";
    let curves = CASES.into_iter().filter_map(|(name, case)| {
        let record = outcome.calls(trial(strategy, case, Series::Periodic))?;
        let (mark, colour) = match case {
            _ if case == SATURATED.under(Load::Idle) => (Mark::Dashes, 2),
            _ if case == SATURATED.under(Load::Awake) => (Mark::Dashes, 4),
            SATURATED => (Mark::Line, 0),
            FULL => (Mark::Line, 5),
            NO_LANES => (Mark::Line, 1),
            _ => return None,
        };
        Some(curve(mark, name, record).colour(colour))
    });
    Chart::new(
        caption,
        Axis::percentiles("percentile of the calls"),
        latency(),
    )
    .series(curves)
}

/// The p99 of each round, by case: both strategies side by side.
fn by_case(outcome: &Outcome, series: Series) -> Chart {
    let caption = "A dot is the p99 of one round, a line the median of the rounds. Where a load has no \
                   dot, no call was answered in its time.";
    let curves = Strategy::ALL.into_iter().flat_map(|strategy| {
        let cases = || {
            let trials = CASES.into_iter().enumerate();
            trials.map(|(at, (_, case))| (at as f64, trial(strategy, case, series)))
        };
        let rounds = cases().flat_map(|(at, trial)| {
            let rounds = outcome.rounds(trial);
            rounds.map(move |round| (at, round.latency.p99_us))
        });
        let medians = cases().filter_map(|(at, trial)| Some((at, outcome.figure(trial)?.p99_us)));
        [
            Curve::new(Mark::Dots, strategy.title(), rounds),
            Curve::new(Mark::Strokes, "", medians),
        ]
    });
    let cases = Axis::groups("the load, and the pool", CASES.map(|(name, _)| name));
    Chart::new(caption, cases, Axis::log("p99", Unit::Time)).series(curves)
}

/// The latency of each call over time in an exhausted high lane, with borrowing and without.
fn over_time(outcome: &Outcome, strategy: Strategy) -> Chart {
    let caption = "Each call at its time within its round, while the high lane's thread is busy with \
                   slow calls.";
    let courses = [
        ("no borrowing, the others saturated", EXHAUSTED, 1),
        ("borrowing", BORROWING, 0),
    ];
    let courses = courses.into_iter().filter_map(|(name, case, colour)| {
        let calls = outcome.calls(trial(strategy, case, Series::Periodic))?;
        Some(Curve::new(Mark::Dots, name, in_time(calls)).colour(colour))
    });
    let courses: Vec<_> = courses.collect();
    let chart = Chart::new(
        caption,
        Axis::linear("time in the round", Unit::Of("s")),
        latency(),
    );
    if courses.is_empty() {
        return chart;
    }
    let seconds = outcome.plan.periodic.as_secs_f64();
    let work = outcome.plan.work_before().as_secs_f64() * 1e6;
    let line = [(0.0, work), (seconds, work)];
    let line = Curve::new(Mark::Dashes, "the slow calls' work", line).colour(NEUTRAL);
    chart.series(courses).series([line])
}

const CASES: [(&str, Case); 7] = [
    ("idle", SATURATED.under(Load::Idle)),
    ("idle, awake", SATURATED.under(Load::Awake)),
    ("saturated", SATURATED),
    ("buffers full", FULL),
    ("borrowing", BORROWING),
    ("exhausted", EXHAUSTED),
    ("no lanes", NO_LANES),
];

/// A line for each case.
fn table(outcome: &Outcome, strategy: Strategy, series: Series) -> Table {
    let how = match series {
        Series::Periodic => format!("a call every {}", units::setting(outcome.plan.period)),
        Series::BackToBack => "calls back to back".to_owned(),
    };
    let by = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    let lines = Case::ALL.into_iter().map(|case| {
        let trial = trial(strategy, case, series);
        let cells = outcome.figure(trial).map(|figure| {
            let (least, greatest) = figure.p99_range_us;
            vec![
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
        (
            case.name(),
            cells.unwrap_or_else(|| vec!["none".to_owned()]),
        )
    });
    let columns = [
        "calls",
        "p50",
        "p99",
        "p99 of the rounds",
        "longest",
        "by idle",
        "by awake",
        "CPU busy",
    ];
    Table::new(format!("{}, {how}", strategy.title()), columns, lines)
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
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
            NO_LANES,
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

const LEAD: &str = "Calls of high priority while others keep the server busy: a high-priority client, and \
     the latency of its calls.";
/// With the usual settings throttling stops real-time threads for 50 ms.
const THROTTLED_US: f64 = 20_000.0;

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("overtake", &outcome());
    }
}
