//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::Value;

use super::Overtake;
use super::case::{CallSeries, OvertakeCase, OvertakeLoad, OvertakePool, OvertakeTrial, Strategy};
use super::claims::{self, AWAKE, BORROWING, EXHAUSTED, FULL, IDLE, NO_LANES, SATURATED, p99};
use super::outcome::OvertakeOutcome;
use super::plan::HIGH_THREADS;
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, curve, end, in_time, latency, rights};

impl Findings for OvertakeOutcome {
    fn headline(&self) -> String {
        let ratios = |to| {
            let ratio = |strategy| self.ratio(periodic(strategy, SATURATED), to);
            let [first, second] = Strategy::ALL.map(ratio);
            Some(format!("{:.2} and {:.2}", first?, second?))
        };
        match ratios(OvertakeLoad::Idle).zip(ratios(OvertakeLoad::Awake)) {
            Some((idle, awake)) => format!(
                "With all lower lanes saturated, calls of the high lane have {idle} of the p99 of \
                 an idle machine (Leader/Followers and Half-Sync/Half-Async), and {awake} of one \
                 kept awake"
            ),
            None => Overtake::TITLE.to_owned(),
        }
    }

    fn caveats(&self) -> Vec<String> {
        rights::caveats(self.real_time, false, &self.environment)
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Overtake::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let mut document = begin(self, LEAD);
        for strategy in Strategy::ALL {
            let p99 = |case| p99(self, periodic(strategy, case));
            let heading = format!(
                "{}: p99 {} idle, {} awake, {} with the lower lanes saturated, {} with their \
                 buffers full",
                strategy.title(),
                p99(IDLE),
                p99(AWAKE),
                p99(SATURATED),
                p99(FULL),
            );
            document = document.part(heading, [by_percentile(self, strategy)], []);
        }
        for series in CallSeries::ALL {
            document = document.part(steady(self, series), [by_case(self, series)], []);
        }
        for strategy in Strategy::ALL {
            let p99 = |case| p99(self, periodic(strategy, case));
            let heading = format!(
                "{}, high lane exhausted: p99 {} with borrowing, {} without, where {} of its own \
                 lane's work are to be waited for",
                strategy.title(),
                p99(BORROWING),
                p99(EXHAUSTED),
                units::setting(self.plan.work_before()),
            );
            document = document.part(heading, [over_time(self, strategy)], []);
        }
        let trials = Strategy::ALL.into_iter();
        let trials = trials.flat_map(|strategy| CallSeries::ALL.map(|series| (strategy, series)));
        let tables = trials.map(|(strategy, series)| table(self, strategy, series));
        let document = document.part("The figures", [], tables);
        let command = "cargo run --release -- lab overtake";
        end(document, notes(self), &self.environment, command)
    }
}

const fn periodic(strategy: Strategy, case: OvertakeCase) -> OvertakeTrial {
    OvertakeTrial::new(strategy, case, CallSeries::Periodic)
}

/// Returns the heading of the chart of the rounds.
fn steady(outcome: &OvertakeOutcome, series: CallSeries) -> String {
    let ratios = Strategy::ALL
        .into_iter()
        .flat_map(|of| [SATURATED, FULL].map(|case| OvertakeTrial::new(of, case, series)))
        .filter_map(|trial| outcome.ratio(trial, OvertakeLoad::Idle));
    let calls = match series {
        CallSeries::Periodic => "Calls at fixed times",
        CallSeries::BackToBack => "Calls back to back",
    };
    match ratios.reduce(f64::max) {
        Some(most) => format!(
            "{calls}: with lower lanes saturated p99 is at most {most:.2} of idle, by either \
             strategy, also with full buffers"
        ),
        None => format!("{calls} were not measured"),
    }
}

/// Returns the latencies by percentile of one strategy, idle and under the loads.
fn by_percentile(outcome: &OvertakeOutcome, strategy: Strategy) -> Chart {
    let caption = "Latency by percentile of the calls at fixed times, all rounds together. To the \
                   right each step is ten times rarer; a line ends at the longest call.";
    let curves = CASES.into_iter().filter_map(|(name, case, style)| {
        let record = outcome.pooled.get(periodic(strategy, case))?;
        let (mark, colour) = style?;
        Some(curve(mark, name, record).colour(colour))
    });
    let percentiles = Axis::percentiles("percentile of the calls");
    Chart::new(caption, percentiles, latency()).series(curves)
}

/// Returns the p99 of each round by case, both strategies side by side.
fn by_case(outcome: &OvertakeOutcome, series: CallSeries) -> Chart {
    let caption = "A dot is the p99 of one round, a line the median of the rounds. Where a load \
                   has no dot, no call was answered in its time.";
    let curves = Strategy::ALL.into_iter().flat_map(|strategy| {
        let cases = || {
            let trials = CASES.into_iter().enumerate();
            trials.map(|(at, (_, case, _))| (at as f64, OvertakeTrial::new(strategy, case, series)))
        };
        let rounds = cases().flat_map(|(at, trial)| {
            let rounds = outcome.rounds(trial);
            rounds.map(move |round| (at, round.latency.p99_us))
        });
        let medians = cases().filter_map(|(at, trial)| Some((at, outcome.p99(trial)?)));
        [
            Series::new(Mark::Dots, strategy.title(), rounds),
            Series::new(Mark::Strokes, "", medians),
        ]
    });
    let cases = Axis::groups("the load, and the pool", CASES.map(|(name, ..)| name));
    Chart::new(caption, cases, Axis::log("p99", Unit::Time)).series(curves)
}

/// Returns the latency of each call over time in an exhausted high lane.
fn over_time(outcome: &OvertakeOutcome, strategy: Strategy) -> Chart {
    let caption = "Each call at its time within its round, while the high lane's thread is busy \
                   with slow calls.";
    let courses = [
        ("no borrowing, the others saturated", EXHAUSTED, 1),
        ("borrowing", BORROWING, 0),
    ];
    let courses = courses.into_iter().filter_map(|(name, case, colour)| {
        let calls = outcome.pooled.get(periodic(strategy, case))?;
        Some(Series::new(Mark::Dots, name, in_time(calls)).colour(colour))
    });
    let courses: Vec<_> = courses.collect();
    let time = Axis::linear("time in the round", Unit::Of("s"));
    let work = outcome.plan.work_before().as_secs_f64() * 1e6;
    let line = [0.0, outcome.plan.periodic.as_secs_f64()].map(|at| (at, work));
    let line = Series::new(Mark::Dashes, "the slow calls' work", line).colour(NEUTRAL);
    let line = (!courses.is_empty()).then_some(line);
    Chart::new(caption, time, latency()).series(courses.into_iter().chain(line))
}

/// A case in charts: its name, and the style of its curve by percentile.
type ChartCase = (&'static str, OvertakeCase, Option<(Mark, usize)>);

const CASES: [ChartCase; 7] = [
    ("idle", IDLE, Some((Mark::Dashes, 2))),
    ("idle, awake", AWAKE, Some((Mark::Dashes, 4))),
    ("saturated", SATURATED, Some((Mark::Line, 0))),
    ("buffers full", FULL, Some((Mark::Line, 5))),
    ("borrowing", BORROWING, None),
    ("exhausted", EXHAUSTED, None),
    ("no lanes", NO_LANES, Some((Mark::Line, 1))),
];

/// Returns a table with a line for each case.
fn table(outcome: &OvertakeOutcome, strategy: Strategy, series: CallSeries) -> Table {
    let how = match series {
        CallSeries::Periodic => format!("a call every {}", units::setting(outcome.plan.period)),
        CallSeries::BackToBack => "calls back to back".to_owned(),
    };
    let lines = OvertakeCase::ALL.into_iter().map(|case| {
        let trial = OvertakeTrial::new(strategy, case, series);
        let by = |load| {
            let ratio = outcome.ratio(trial, load);
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
        };
        let Some(figure) = outcome.figure(trial) else {
            return (case.name(), vec!["none".to_owned()]);
        };
        let latency = figure.latency;
        let [p50, p99, max] = [latency.p50_us, latency.p99_us, latency.max_us].map(units::time);
        let (least, greatest) = figure.p99_range_us;
        let range = format!("{}–{}", units::time(least), units::time(greatest));
        let (by_idle, by_awake) = (by(OvertakeLoad::Idle), by(OvertakeLoad::Awake));
        let busy = format!("{:.0} %", figure.cpu_busy_percent);
        let calls = units::count(latency.calls);
        (
            case.name(),
            vec![calls, p50, p99, range, max, by_idle, by_awake, busy],
        )
    });
    Table::new(format!("{}, {how}", strategy.title()), COLUMNS, lines)
}

/// Returns the notes on how to read the figures.
fn notes(outcome: &OvertakeOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "All cases took turns in each of {} rounds: {} of calls at fixed times, and {} back to \
             back. p50 and p99 are medians of the rounds, the longest call is that of all. By idle \
             and by awake are p99 by that of the same pool without load, asleep and kept awake.",
            plan.rounds,
            units::setting(plan.periodic),
            units::setting(plan.back_to_back),
        ),
        format!(
            "A pool has {} threads for each of the low and the middle lane, and {HIGH_THREADS} for \
             the high lane; the pool without lanes has the {} together. A call of high priority \
             computes for {}. A latency counts from when the call was due.",
            plan.lower_threads,
            plan.threads(),
            units::setting(plan.high_work),
        ),
        format!(
            "Saturated: {} client threads ask the low lane, and as many the middle lane, for work \
             that ends with the measurement. The others wait or, where buffers of {} requests for \
             each lane are full, are refused and try again after 5 ms.",
            plan.saturating_callers(),
            plan.buffered(),
        ),
        format!(
            "Exhausted: {} threads of another client call the high lane again and again; each call \
             keeps a thread for {}, but no processor, as one that waits for a device.",
            plan.slow_callers,
            units::setting(plan.slow_work),
        ),
        "To wake a processor takes time, in a virtual machine a lot, so calls may be quicker under \
         load. Awake, where another process keeps the processors at ordinary work, is the harder \
         comparison."
            .to_owned(),
        throttling(outcome),
    ];
    let no_lanes = OvertakeTrial::new(Strategy::LeaderFollowers, NO_LANES, CallSeries::BackToBack);
    let no_lanes = outcome.figure(no_lanes);
    if no_lanes.is_none_or(|figure| figure.latency.calls < 100) {
        notes.push(
            "Without lanes all threads are at the endless work, and calls wait for its end, \
             whatever their priority. That is the purpose of lanes."
                .to_owned(),
        );
    }
    if plan.rounds == 1 {
        notes.push("This was a short run: one round, and few calls of each kind.".to_owned());
    }
    let processes = "the servers and of the measuring client";
    notes.push(rights::memory(processes, outcome.memory_locked));
    notes
}

/// Returns the note on the effect of real-time throttling.
fn throttling(outcome: &OvertakeOutcome) -> String {
    if !outcome.real_time {
        return "No thread was real-time, so that the kernel's real-time throttling had nothing to \
                stop."
            .to_owned();
    }
    let plan = &outcome.plan;
    let cycle = plan.middle_compute + plan.middle_rest;
    let share = plan.middle_compute.as_secs_f64() / cycle.as_secs_f64() * 100.0;
    let stops = [
        ("pools with lanes", false),
        ("the pool without lanes", true),
    ];
    let stops = stops.into_iter().filter_map(|(pools, no_lanes)| {
        let rows = outcome.rows.iter();
        let rows = rows.filter(|row| (row.trial.case.pool == OvertakePool::NoLanes) == no_lanes);
        let stops = rows.filter_map(|row| row.middle_longest_stop_us.map(f64::from));
        let stops: Vec<f64> = stops.collect();
        let longest = stops.iter().copied().reduce(f64::max)?;
        let throttled = stops.iter().filter(|stop| **stop >= THROTTLED_US).count();
        Some(format!(
            " In {pools} it was stopped for at most {}, and in {throttled} of {} trials for {} or \
             more, as by the kernel's throttling or the host.",
            units::time(longest),
            stops.len(),
            units::time(THROTTLED_US),
        ))
    });
    format!(
        "The low lane has ordinary scheduling (CORBA priority 0), and computes without a rest. The \
         middle lane is real-time: it computes for {} and rests for {}, {share:.0} % of each \
         processor. Without its rests the kernel's throttling would stop all real-time threads for \
         the rest of each second ({}).{}",
        units::setting(plan.middle_compute),
        units::setting(plan.middle_rest),
        outcome.environment.real_time_throttling,
        stops.collect::<String>(),
    )
}

const LEAD: &str = "Calls of high priority while others keep the server busy: a high-priority \
     client, and the latency of its calls.";
const COLUMNS: [&str; 8] = [
    "calls",
    "p50",
    "p99",
    "p99 of the rounds",
    "longest",
    "by idle",
    "by awake",
    "CPU busy",
];
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
