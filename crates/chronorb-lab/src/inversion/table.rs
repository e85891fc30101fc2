//! The figures as text.

use std::fmt::Write;
use std::time::Duration;

use super::architecture::Architecture;
use super::claims::STEADY_MEAN;
use super::outcome::{Class, Outcome, Row};
use super::plan::{MOST_CLIENTS, Mode};
use crate::claim;
use crate::experiment::Findings;
use crate::units;

/// The figures in tables for a terminal, with what is claimed of them.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = format!("{}\n\n{LEAD}\n", outcome.headline());
    for caveat in caveats(outcome) {
        let _ = writeln!(text, "{caveat}");
    }
    for mode in outcome.modes() {
        let _ = writeln!(text, "\n{}", heading(mode));
        for table in [LATENCIES, FROM_THE_CALL, PROCESSORS] {
            text.push('\n');
            plain(&mut text, outcome, mode, &table);
        }
    }
    text.push('\n');
    text.push_str(&claim::text(&outcome.claims()));
    text.push('\n');
    for architecture in outcome.architectures() {
        let _ = writeln!(text, "{}: {}", architecture.title(), meaning(architecture));
    }
    text.push('\n');
    for note in notes(outcome) {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// A table of one mode: its columns, and the cells of a trial.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) columns: &'static [&'static str],
    cells: fn(&Row) -> Vec<String>,
    /// Whether both classes have the same cells.
    is_of_trial: bool,
}

/// A line of a table: the architecture, how many clients, the class, and what stands in the columns.
pub(super) struct Cells {
    pub(super) architecture: Architecture,
    pub(super) low_clients: u32,
    pub(super) class: &'static str,
    pub(super) cells: Vec<String>,
}

impl Table {
    /// The lines, one architecture after the other.
    pub(super) fn lines(&self, outcome: &Outcome, mode: Mode) -> Vec<Cells> {
        let mut lines = Vec::new();
        for architecture in outcome.architectures() {
            for (high, low) in outcome.pairs(architecture, mode) {
                let classes: &[(&Row, &'static str)] = match self.is_of_trial {
                    true => &[(high, "")],
                    false => &[(high, "high"), (low, "low")],
                };
                lines.extend(classes.iter().map(|(row, class)| Cells {
                    architecture,
                    low_clients: row.low_clients,
                    class,
                    cells: (self.cells)(row),
                }));
            }
        }
        lines
    }
}

fn plain(text: &mut String, outcome: &Outcome, mode: Mode, table: &Table) {
    let _ = write!(text, "{:35}{:>8} {:4}", table.title, "clients", "");
    for column in table.columns {
        let _ = write!(text, "{column:>WIDTH$}");
    }
    text.push('\n');
    for line in table.lines(outcome, mode) {
        let _ = write!(
            text,
            "  {:33}{:>8} {:4}",
            line.architecture.title(),
            line.low_clients,
            line.class
        );
        for cell in line.cells {
            let _ = write!(text, "{cell:>WIDTH$}");
        }
        text.push('\n');
    }
}

/// What calls took from when they were due.
pub(super) const LATENCIES: Table = Table {
    title: "From when a call is due",
    columns: &["calls", "mean", "jitter", "p50", "p99", "p99.9", "longest"],
    cells: |row| {
        let latency = row.latency;
        let times = [
            latency.mean_us,
            latency.jitter_us,
            latency.p50_us,
            latency.p99_us,
            latency.p999_us,
            latency.max_us,
        ];
        let calls = units::count(latency.calls);
        std::iter::once(calls)
            .chain(times.map(units::time))
            .collect()
    },
    is_of_trial: false,
};

/// What they took from when they were made.
pub(super) const FROM_THE_CALL: Table = Table {
    title: "From when it is made",
    columns: &["mean", "jitter", "p99", "longest"],
    cells: |row| {
        [
            row.call_mean_us,
            row.call_jitter_us,
            row.call_p99_us,
            row.call_max_us,
        ]
        .map(units::time)
        .to_vec()
    },
    is_of_trial: false,
};

/// How busy the processors were.
pub(super) const PROCESSORS: Table = Table {
    title: "Processors",
    columns: &["server", "client", "stolen"],
    cells: |row| {
        vec![
            format!("{:.0} %", row.server_cpu_percent),
            format!("{:.0} %", row.client_cpu_percent),
            format!("{:.1} %", row.stolen_percent),
        ]
    },
    is_of_trial: true,
};

/// What a mode is, as a heading.
pub(super) const fn heading(mode: Mode) -> &'static str {
    match mode {
        Mode::Paper => "paper: the rates and the number of calls of the paper",
        Mode::Short => "short: the rates of the paper, for some seconds",
        Mode::Loaded => "loaded: rates at which fifty low-priority clients keep the server busy",
        Mode::OneCpu => "one-cpu: client and server on one processor, as busy as in loaded",
        Mode::Saturated => "saturated: low-priority clients call back to back",
    }
}

/// What an architecture is, and which ORB had it.
pub(super) fn meaning(architecture: Architecture) -> String {
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
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
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

pub(super) const LEAD: &str = "One client of high priority and many of low priority call the same server. In a \
     real-time ORB the one does not feel the others; where requests share connections, queues or threads, it waits \
     for them.";
const WIDTH: usize = 10;
