//! The report.

use std::time::Duration;

use chronorb_report::chart::COLOURS;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::{Value, json};

use super::Inversion;
use super::architecture::Architecture;
use super::claims::{self, STEADY_MEAN, in_mode};
use super::outcome::{ClientClass, InversionOutcome, InversionRow};
use super::plan::{MOST_CLIENTS, Mode};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{Column, end, rights, table_of};

impl Findings for InversionOutcome {
    fn headline(&self) -> String {
        finding(self).unwrap_or_else(|| Inversion::TITLE.to_owned())
    }

    fn caveats(&self) -> Vec<String> {
        rights::caveats(self.real_time, self.one_cpu, &self.environment)
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        let architectures = self.architectures().into_iter().map(|of| {
            let description = of.description();
            json!({
                "name": of.to_string(),
                "title": description.title,
                "stands_for": description.stands_for,
                "meaning": description.meaning,
            })
        });
        let more = json!({"architectures": architectures.collect::<Vec<_>>()});
        figures(Inversion::NAME, self, more)
    }

    fn document(&self) -> Document {
        let mut document = Document::new(self.headline())
            .lead(LEAD)
            .caveats(self.caveats());
        for mode in self.modes() {
            document = document.section(mode.settings().heading);
            for figure in FIGURES {
                document = document.chart(by_clients(self, mode, figure));
            }
            document = document
                .claims(in_mode(self, mode))
                .tables(tables(self, mode));
        }
        let architectures = self.architectures().into_iter();
        let document = document
            .section("The architectures")
            .facts(architectures.map(|of| (of.title(), meaning(of))));
        let command = self.plan.command();
        end(document, notes(self), &self.environment, &command)
    }
}

/// A figure of calls: its name, the name of its axis, and its value.
type AxisFigure = (&'static str, &'static str, fn(&InversionRow) -> f64);

const FIGURES: [AxisFigure; 4] = [
    ("mean latency", "mean latency", |row| row.latency.mean_us),
    (
        "jitter, the standard deviation of the latency",
        "jitter",
        |row| row.latency.jitter_us,
    ),
    (
        "99th percentile of the latency",
        "p99 of the latency",
        |row| row.latency.p99_us,
    ),
    ("longest call", "longest latency", |row| row.latency.max_us),
];

/// Returns a figure of all architectures by the number of low-priority clients, as the paper's
/// figures 7 and 8.
fn by_clients(outcome: &InversionOutcome, mode: Mode, (name, axis, of): AxisFigure) -> Chart {
    let caption = format!(
        "{mode}: {name}. Solid lines are the high-priority client, dashed ones of the same colour \
         the low-priority clients of the same ORB.",
    );
    let architectures = outcome.architectures().into_iter();
    let series = architectures.flat_map(|architecture| {
        let points = |class| {
            let rows = outcome.series(architecture, mode, class).into_iter();
            rows.map(|row| (f64::from(row.low_clients), of(row)))
        };
        let colour = architecture as usize % COLOURS;
        let [high, low] = ClientClass::ALL.map(points);
        [
            Series::new(Mark::Line, architecture.title(), high).colour(colour),
            Series::new(Mark::Dashes, "", low).colour(colour),
        ]
    });
    let clients = Axis::linear("low-priority clients", Unit::Count);
    Chart::new(caption, clients, Axis::log(axis, Unit::Time)).series(series)
}

/// Columns of figures of both classes.
const FROM_DUE: [Column<InversionRow>; 7] = [
    ("calls", |row| units::count(row.latency.calls)),
    ("mean", |row| units::time(row.latency.mean_us)),
    ("jitter", |row| units::time(row.latency.jitter_us)),
    ("p50", |row| units::time(row.latency.p50_us)),
    ("p99", |row| units::time(row.latency.p99_us)),
    ("p99.9", |row| units::time(row.latency.p999_us)),
    ("longest", |row| units::time(row.latency.max_us)),
];
const FROM_CALL: [Column<InversionRow>; 4] = [
    ("mean", |row| units::time(row.call_mean_us)),
    ("jitter", |row| units::time(row.call_jitter_us)),
    ("p99", |row| units::time(row.call_p99_us)),
    ("longest", |row| units::time(row.call_max_us)),
];
/// Columns of figures of a trial.
const PROCESSORS: [Column<InversionRow>; 3] = [
    ("server", |row| format!("{:.0} %", row.server_cpu_percent)),
    ("client", |row| format!("{:.0} %", row.client_cpu_percent)),
    ("stolen", |row| format!("{:.1} %", row.stolen_percent)),
];

/// Returns the tables of a mode.
fn tables(outcome: &InversionOutcome, mode: Mode) -> [Table; 3] {
    let by_class =
        |row: &InversionRow| Some(format!("{}, {}", row.class, clients(row.low_clients)));
    let of_trial =
        |row: &InversionRow| (row.class == ClientClass::High).then(|| clients(row.low_clients));
    [
        table_of(
            "From when a call is due",
            &FROM_DUE,
            lines(outcome, mode, by_class),
        ),
        table_of(
            "From when it is made",
            &FROM_CALL,
            lines(outcome, mode, by_class),
        ),
        table_of("Processors", &PROCESSORS, lines(outcome, mode, of_trial)),
    ]
}

/// Returns the classes of the trials of each architecture below its name; a class without a name
/// has no line.
fn lines(
    outcome: &InversionOutcome,
    mode: Mode,
    name: impl Fn(&InversionRow) -> Option<String>,
) -> Vec<(String, Option<&InversionRow>)> {
    let mut lines = Vec::new();
    for architecture in outcome.architectures() {
        let pairs = outcome.pairs(architecture, mode);
        if !pairs.is_empty() {
            lines.push((architecture.title().to_owned(), None));
        }
        for row in pairs.into_iter().flat_map(|(high, low)| [high, low]) {
            lines.extend(name(row).map(|name| (name, Some(row))));
        }
    }
    lines
}

/// Returns the description of an architecture, with the ORB of the paper that had it.
fn meaning(architecture: Architecture) -> String {
    let description = architecture.description();
    match description.stands_for {
        "" => description.meaning.to_owned(),
        orb => format!("{} In the paper this is {orb}.", description.meaning),
    }
}

/// Returns the finding in one line: of the loaded mode if it was run, else of the first mode, which
/// is named.
fn finding(outcome: &InversionOutcome) -> Option<String> {
    let modes = outcome.modes();
    let first = *modes.first()?;
    let (mode, of_mode) = if modes.contains(&Mode::Loaded) {
        (Mode::Loaded, String::new())
    } else {
        (first, format!(" ({first})"))
    };
    let own = outcome.series(Architecture::RealTime, mode, ClientClass::High);
    let (few, many) = (own.first()?, own.last()?);
    if few.low_clients == many.low_clients {
        return None;
    }
    let grown = many.latency.mean_us / few.latency.mean_us;
    let verdict = if grown <= STEADY_MEAN {
        "Priorities hold"
    } else {
        "Priorities do not hold"
    };
    let least = match few.low_clients {
        1 => "one".to_owned(),
        few => few.to_string(),
    };
    let conventional = conventional(outcome, mode, many).map_or_else(String::new, |factors| {
        format!("; in conventional architectures {factors} times as long as that")
    });
    Some(format!(
        "{verdict}{of_mode}: with {} beside it the high-priority client waits {} times as long as \
         with {least}{conventional}",
        clients(many.low_clients),
        units::factor(grown),
    ))
}

/// Returns the range of the time of a call in conventional architectures, by that in the real-time
/// one with as many others.
///
/// The time counts from when a call is made: a client that falls behind for good would make any
/// factor of it.
fn conventional(outcome: &InversionOutcome, mode: Mode, own: &InversionRow) -> Option<String> {
    let architectures = outcome.architectures().into_iter();
    let conventional = architectures.filter(|of| of.is_conventional());
    let factors = conventional.filter_map(|of| {
        let rows = outcome.series(of, mode, ClientClass::High);
        let same = rows.iter().find(|row| row.low_clients == own.low_clients)?;
        Some(same.call_mean_us / own.call_mean_us)
    });
    let factors: Vec<f64> = factors.collect();
    let least = units::factor(factors.iter().copied().reduce(f64::min)?);
    let most = units::factor(factors.iter().copied().reduce(f64::max)?);
    let is_one = least == most;
    Some(if is_one {
        most
    } else {
        format!("{least} to {most}")
    })
}

/// Returns a number of low-priority clients in words.
pub(super) fn clients(low: u32) -> String {
    match low {
        1 => "1 low-priority client".to_owned(),
        low => format!("{low} low-priority clients"),
    }
}

/// Returns the notes on how to read the figures.
fn notes(outcome: &InversionOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "Each trial has its own server and client. The server has a servant of high and one of \
             low priority (threads for each: {}). A client thread of high priority calls the one, \
             the low-priority clients are threads that call the other. All connect, call, and then \
             begin at one instant.",
            plan.threads,
        ),
        "Calls are due at fixed times, from which latencies count: a call that a slow one held up \
         is charged for the wait. A call back to back is due when it is made. Every answer is \
         checked."
            .to_owned(),
        "A client whose calls take longer than its period falls behind for good, and its latencies \
         grow with the trial. Counted from when they are made, they show the time of one call."
            .to_owned(),
        format!(
            "Where real-time threads leave nothing of a processor, the kernel takes it from them \
             for a part of each second: {}. So clients that call back to back rest in between.",
            outcome.environment.real_time_throttling
        ),
    ];
    let settings = [
        (
            plan.awake,
            "A thread of the least urgency kept each processor from sleeping.",
        ),
        (!plan.awake, "Processors slept when they had nothing to do."),
        (
            plan.namespaces,
            "Client and server had network namespaces of their own, with a switch between them.",
        ),
    ];
    let settings = settings.into_iter().filter(|(is_so, _)| *is_so);
    notes.extend(settings.map(|(_, note)| note.to_owned()));
    notes.extend(outcome.modes().into_iter().map(|mode| rates(outcome, mode)));
    if !outcome.omniorb.missing.is_empty() {
        notes.push(outcome.omniorb.sentence());
    }
    notes.push(rights::memory("clients and servers", outcome.memory_locked));
    notes
}

/// Returns the note on the call rates and the work of a mode.
fn rates(outcome: &InversionOutcome, mode: Mode) -> String {
    let plan = &outcome.plan;
    let work = if mode.settings().works {
        let work = units::setting(plan.work);
        format!("a servant computes for {work} in each call")
    } else {
        "a servant does nothing but cube".to_owned()
    };
    let series = plan.series.iter().find(|series| series.mode == mode);
    let length = series.map_or_else(String::new, |series| match series.calls {
        0 => format!(", for {}", units::setting(series.length)),
        calls => format!(", {} calls of each", units::count(calls)),
    });
    let mut calibrations = outcome.calibrations.iter();
    let calibration = calibrations.find(|calibration| calibration.mode == mode);
    let calls = match (mode.periods(), calibration) {
        (Some(periods), _) => {
            let low = match periods.low {
                Duration::ZERO => {
                    "low-priority clients call back to back for 85 ms, and rest for 15 ms"
                        .to_owned()
                }
                low => format!("each low-priority client every {}", units::setting(low)),
            };
            format!("every {}; {low}", units::setting(periods.high))
        }
        (None, Some(rates)) => format!(
            "every {}; each low-priority client every {}, a rate at which {MOST_CLIENTS} of them \
             keep a processor busy for {} % of the time with the real-time architecture, where a \
             request takes {} for the server and {} for the client",
            units::time(rates.high_period_us),
            units::time(rates.low_period_us),
            plan.utilisation_percent,
            units::time(rates.server_cpu_us_per_request),
            units::time(rates.client_cpu_us_per_request),
        ),
        (None, None) => "as often as its processor allows".to_owned(),
    };
    let place = plan.place_in(mode).sentence();
    format!("{mode}: the high-priority client calls {calls}; {work}{length}. {place}")
}

const LEAD: &str = "One client of high priority and many of low priority call the same server. In \
     a real-time ORB the others do not delay it; if requests share connections, queues or threads, \
     it waits for them.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;
    use crate::report::tests::{assert_reads_old_file, assert_snapshot};

    #[test]
    fn files_of_older_versions_are_read() {
        assert_reads_old_file::<InversionOutcome>("inversion");
    }

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("inversion", &outcome());
    }

    #[test]
    fn the_finding_says_where_priorities_do_not_hold_and_of_which_mode_it_is() {
        let mut outcome = outcome();
        outcome.rows.retain(|row| row.mode == Mode::Saturated);
        for row in &mut outcome.rows {
            row.latency.mean_us *= f64::from(row.low_clients);
        }
        let headline = outcome.headline();
        assert!(
            headline.starts_with("Priorities do not hold (saturated): with 50 low-priority"),
            "{headline}"
        );
        outcome.rows.retain(|row| row.low_clients == 1);
        assert_eq!(outcome.headline(), Inversion::TITLE);
    }

    #[test]
    fn programs_read_a_row_for_each_class_of_each_trial() {
        let outcome = outcome();
        let figures = outcome.figures();
        assert_eq!(figures["experiment"], "inversion");
        let rows = figures["rows"].as_array().unwrap();
        assert_eq!(rows.len(), outcome.rows.len());
        assert_eq!(rows[0]["architecture"], "real-time");
        assert_eq!(rows[0]["mode"], "loaded");
        assert_eq!(rows[0]["class"], "high");
        for name in [
            "low_clients",
            "calls",
            "mean_us",
            "jitter_us",
            "p50_us",
            "p99_us",
            "p999_us",
            "max_us",
            "call_mean_us",
            "server_cpu_percent",
            "client_cpu_percent",
            "stolen_percent",
        ] {
            assert!(rows[0][name].is_number(), "{name}: {}", rows[0]);
        }
        assert_eq!(figures["claims"][0]["paper"], "RTAS 1998, figure 7");
    }
}
