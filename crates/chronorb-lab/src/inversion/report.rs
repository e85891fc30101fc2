//! The report.

use std::time::Duration;

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, counted, units};

use super::architecture::Architecture;
use super::claims::{STEADY_MEAN, in_mode};
use super::outcome::{Class, Outcome, Row};
use super::plan::{MOST_CLIENTS, Mode};
use crate::experiment::Findings;
use crate::report::end;

pub(super) fn document(outcome: &Outcome) -> Document {
    let mut document = Document::new(outcome.headline())
        .lead(LEAD)
        .caveats(outcome.caveats());
    for mode in outcome.modes() {
        let charts = FIGURES.map(|figure| by_clients(outcome, mode, figure));
        document = document.section(heading(mode));
        document = charts.into_iter().fold(document, Document::chart);
        document = document.claims(in_mode(outcome, mode)).tables([
            latencies(outcome, mode),
            from_the_call(outcome, mode),
            processors(outcome, mode),
        ]);
    }
    let architectures = outcome.architectures().into_iter();
    let document = document
        .section("The architectures")
        .facts(architectures.map(|of| (of.title(), meaning(of))));
    end(
        document,
        notes(outcome),
        &outcome.environment,
        &outcome.plan.command(),
    )
}

/// A figure of calls: its name, the name of its axis, and its value.
type Figure = (&'static str, &'static str, fn(&Row) -> f64);

const FIGURES: [Figure; 4] = [
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

/// A figure of all architectures by the number of low-priority clients, as the paper's figures 7
/// and 8.
fn by_clients(outcome: &Outcome, mode: Mode, (name, axis, of): Figure) -> Chart {
    let caption = format!(
        "{}: {name}. Solid lines are the high-priority client, dashed ones of the same colour the \
         low-priority clients of the same ORB.",
        mode.name(),
    );
    let series = outcome
        .architectures()
        .into_iter()
        .flat_map(|architecture| {
            let points = |class| {
                let rows = outcome.series(architecture, mode, class).into_iter();
                rows.map(|row| (f64::from(row.low_clients), of(row)))
            };
            [
                Series::new(Mark::Line, architecture.title(), points(Class::High)),
                Series::new(Mark::Dashes, "", points(Class::Low)),
            ]
            .map(|series| series.colour(architecture as usize % chronorb_report::chart::COLOURS))
        });
    let clients = Axis::linear("low-priority clients", Unit::Count);
    Chart::new(caption, clients, Axis::log(axis, Unit::Time)).series(series)
}

/// The latencies from when calls were due.
fn latencies(outcome: &Outcome, mode: Mode) -> Table {
    let columns = ["calls", "mean", "jitter", "p50", "p99", "p99.9", "longest"];
    let cells = |row: &Row| {
        let of = row.latency;
        let times = [
            of.mean_us,
            of.jitter_us,
            of.p50_us,
            of.p99_us,
            of.p999_us,
            of.max_us,
        ];
        counted(of.calls, times)
    };
    Table::new(
        "From when a call is due",
        columns,
        by_class(outcome, mode, cells),
    )
}

/// The latencies from when calls were made.
fn from_the_call(outcome: &Outcome, mode: Mode) -> Table {
    let columns = ["mean", "jitter", "p99", "longest"];
    let cells = |row: &Row| {
        let times = [
            row.call_mean_us,
            row.call_jitter_us,
            row.call_p99_us,
            row.call_max_us,
        ];
        times.map(units::time).to_vec()
    };
    Table::new(
        "From when it is made",
        columns,
        by_class(outcome, mode, cells),
    )
}

fn processors(outcome: &Outcome, mode: Mode) -> Table {
    let cells = |high: &Row, _: &Row| {
        let cells = vec![
            format!("{:.0} %", high.server_cpu_percent),
            format!("{:.0} %", high.client_cpu_percent),
            format!("{:.1} %", high.stolen_percent),
        ];
        vec![(clients(high.low_clients), cells)]
    };
    let columns = ["server", "client", "stolen"];
    Table::new("Processors", columns, by_architecture(outcome, mode, cells))
}

/// Lines of both classes of each trial.
fn by_class(
    outcome: &Outcome,
    mode: Mode,
    cells: impl Fn(&Row) -> Vec<String>,
) -> Vec<(String, Vec<String>)> {
    by_architecture(outcome, mode, |high, low| {
        let line = |class: &str, row: &Row| {
            let clients = clients(row.low_clients);
            (format!("{class}, {clients}"), cells(row))
        };
        vec![line("high", high), line("low", low)]
    })
}

/// The lines of the trials of each architecture, below its name.
fn by_architecture(
    outcome: &Outcome,
    mode: Mode,
    lines: impl Fn(&Row, &Row) -> Vec<(String, Vec<String>)>,
) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for architecture in outcome.architectures() {
        let pairs = outcome.pairs(architecture, mode);
        let mut name = (!pairs.is_empty()).then(|| architecture.title().to_owned());
        for (high, low) in pairs {
            all.extend(name.take().map(|name| (name, Vec::new())));
            all.extend(lines(high, low));
        }
    }
    all
}

/// What a mode is, as a heading.
const fn heading(mode: Mode) -> &'static str {
    match mode {
        Mode::Paper => "Paper: the rates and the number of calls of the paper",
        Mode::Short => "Short: the rates of the paper, for some seconds",
        Mode::Loaded => "Loaded: rates at which fifty low-priority clients keep the server busy",
        Mode::OneCpu => "One-cpu: client and server on one processor, as busy as in loaded",
        Mode::Saturated => "Saturated: low-priority clients call back to back",
    }
}

/// What an architecture is, and which ORB had it.
fn meaning(architecture: Architecture) -> String {
    let description = architecture.description();
    match description.stands_for {
        "" => description.meaning.to_owned(),
        orb => format!("{} In the paper this is {orb}.", description.meaning),
    }
}

/// The finding in one line: of the loaded mode where that was run, else of the first that was, which is said.
pub(super) fn headline(outcome: &Outcome) -> String {
    found(outcome).unwrap_or_else(|| "Priority inversion by the architecture of the ORB".to_owned())
}

fn found(outcome: &Outcome) -> Option<String> {
    let modes = outcome.modes();
    let first = *modes.first()?;
    let (mode, of_mode) = match modes.contains(&Mode::Loaded) {
        true => (Mode::Loaded, String::new()),
        false => (first, format!(" ({first})")),
    };
    let own = outcome.series(Architecture::RealTime, mode, Class::High);
    let (few, many) = (own.first()?, own.last()?);
    if few.low_clients == many.low_clients {
        return None;
    }
    let grown = many.latency.mean_us / few.latency.mean_us;
    let verdict = match grown <= STEADY_MEAN {
        true => "Priorities hold",
        false => "Priorities do not hold",
    };
    let least = match few.low_clients {
        1 => "one".to_owned(),
        few => few.to_string(),
    };
    let conventional = conventional(outcome, mode, many).map_or_else(String::new, |factors| {
        format!("; in conventional architectures {factors} times as long as that")
    });
    Some(format!(
        "{verdict}{of_mode}: with {} beside it the high-priority client waits {} times as long as with {least}{conventional}",
        clients(many.low_clients),
        units::factor(grown),
    ))
}

/// What the high-priority client of conventional architectures takes by what it takes in the real-time one, with as many
/// others: from the least to the most.
fn conventional(outcome: &Outcome, mode: Mode, own: &Row) -> Option<String> {
    let architectures = outcome.architectures().into_iter();
    let factors = architectures
        .filter(|of| of.is_conventional())
        .filter_map(|of| {
            let rows = outcome.series(of, mode, Class::High);
            let same = rows.iter().find(|row| row.low_clients == own.low_clients)?;
            // What one call takes: who falls behind for good would make any factor of it.
            Some(same.call_mean_us / own.call_mean_us)
        });
    let factors: Vec<f64> = factors.collect();
    let least = factors.iter().copied().reduce(f64::min)?;
    let most = factors.iter().copied().reduce(f64::max)?;
    let (least, most) = (units::factor(least), units::factor(most));
    Some(match least == most {
        true => most,
        false => format!("{least} to {most}"),
    })
}

/// So many clients of low priority, in words.
pub(super) fn clients(low: u32) -> String {
    match low {
        1 => "1 low-priority client".to_owned(),
        low => format!("{low} low-priority clients"),
    }
}

/// What has to be known beside the figures.
pub(super) fn caveats(outcome: &Outcome) -> Vec<String> {
    let mut caveats = Vec::new();
    if !outcome.real_time {
        caveats.push(
            "These figures are not real-time: this process may not use real-time priorities, so that all threads ran \
             under the ordinary scheduler."
                .to_owned(),
        );
    }
    if outcome.one_cpu {
        caveats.push(
            "There is but one processor: client and server shared it, whatever was asked for."
                .to_owned(),
        );
    }
    caveats.extend(outcome.environment.stolen_caveat());
    caveats
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "Each trial has a server and a client process of its own. The server has two servants, one of high and one \
             of low priority, and {} for each; the client a thread of high priority, which calls the one, and the \
             low-priority clients, threads of low priority, which call the other. All are connected and have called \
             before; then they begin at one instant.",
            match plan.threads {
                1 => "a thread".to_owned(),
                threads => format!("{threads} threads"),
            }
        ),
        "Calls are due at times that are fixed beforehand, and latencies count from there, for both classes: a call \
         that is late because the one before it was slow is charged for the wait. A call back to back is due when it is \
         made. Every answer is checked."
            .to_owned(),
        "A client whose calls take longer than its period falls behind for good: counted from when its calls are due, they \
         then take longer and longer as long as the trial lasts. Counted from when they are made they do not, and show \
         what one call takes."
            .to_owned(),
        format!(
            "Where real-time threads leave nothing of a processor, the kernel takes it from them for a part of each second: {}. \
             So clients that call back to back rest for a while of each 100 ms.",
            outcome.environment.real_time_throttling
        ),
    ];
    notes.push(match plan.awake {
        true => "On each processor a thread of the least urgency kept it from sleeping: to wake one up can take longer than \
                 a call."
            .to_owned(),
        false => "Processors slept when nobody had anything to do.".to_owned(),
    });
    if plan.namespaces {
        notes.push(
            "Client and server were in network namespaces of their own, with a switch between them."
                .to_owned(),
        );
    }
    notes.extend(outcome.modes().into_iter().map(|mode| rates(outcome, mode)));
    if !outcome.omniorb.missing.is_empty() {
        notes.push(outcome.omniorb.sentence());
    }
    notes.push(match outcome.memory_locked {
        true => "The memory of clients and servers was locked.".to_owned(),
        false => "Memory could not be locked, since this process may not.".to_owned(),
    });
    notes
}

/// How often who calls for what in a mode.
fn rates(outcome: &Outcome, mode: Mode) -> String {
    let plan = &outcome.plan;
    let work = match mode.works() {
        true => format!(
            "a servant computes for {} in each call",
            units::setting(plan.work)
        ),
        false => "a servant does nothing but cube".to_owned(),
    };
    let series = plan.series.iter().find(|series| series.mode == mode);
    let length = series.map_or_else(String::new, |series| match series.calls {
        0 => format!(", for {}", units::setting(series.length)),
        calls => format!(", {} calls of each", units::count(calls)),
    });
    let found = outcome.calibrations.iter().find(|found| found.mode == mode);
    let calls = match (mode.periods(), found) {
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
        (None, Some(found)) => format!(
            "every {}; each low-priority client every {}, a rate at which {MOST_CLIENTS} of them keep a processor busy for \
             {} % of the time with the real-time architecture, where a request takes {} for the server and {} for the client",
            units::time(found.high_period_us),
            units::time(found.low_period_us),
            plan.utilisation_percent,
            units::time(found.server_cpu_us_per_request),
            units::time(found.client_cpu_us_per_request),
        ),
        (None, None) => "as often as its processor allows".to_owned(),
    };
    let place = plan.place_in(mode).sentence();
    format!("{mode}: the high-priority client calls {calls}; {work}{length}. {place}")
}

const LEAD: &str = "One client of high priority and many of low priority call the same server. In a \
     real-time ORB the one does not feel the others; where requests share connections, queues or threads, it waits \
     for them.";

#[cfg(test)]
mod tests {
    use super::super::Inversion;
    use super::super::claims::tests::outcome;
    use super::*;
    use crate::experiment::Experiment;
    use crate::report::tests::{assert_reads_old_file, assert_snapshot};

    #[test]
    fn files_of_older_versions_are_read() {
        assert_reads_old_file::<Outcome>("inversion");
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
        assert_eq!(rows[0]["class"], Class::High.name());
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
