//! The parts of the report: charts and tables.

use chronorb_report::{Axis, Chart, Mark, Series, Table, Unit, units};

use super::class::SchedulingClass::{self, Fifo, Other};
use super::load::CompetingLoad;
use super::outcome::{
    ClassRow, ClientPriority, CpuOwner, OsOutcome, RateMode, RequestRow, ScavengerRow,
};
use super::published::{IN_PAPERS, PUBLISHED, PaperTime};
use super::thousandths;
use crate::bench::Placement;
use crate::named::name_of;
use crate::report::{by_columns, largest, latency};
use crate::stats::Summary;

/// A part of the report: its heading, its chart and its tables.
pub(super) type ReportPart = (String, Option<Chart>, Vec<Table>);

/// Shows the p99 of urgent calls by class and load, with a table for each placement.
pub(super) fn class_part(outcome: &OsOutcome) -> ReportPart {
    let caption = "Calls of the high class, client and server free to run on all CPUs: a bar ends \
                   at p99, a ring is the longest call. Latencies count from when a call was due.";
    let series = CompetingLoad::ALL.into_iter().flat_map(|load| {
        let of = |mark, name, figure: fn(&ClassRow) -> f64| {
            let row = |class| outcome.free(class, load, ClientPriority::High).map(figure);
            Series::of_groups(mark, name, SchedulingClass::ALL.map(row))
        };
        [
            of(Mark::Bars, load.name(), |row| row.p99_of_rounds_us),
            of(Mark::Rings, "", |row| row.latency.max_us),
        ]
    });
    let classes = SchedulingClass::ALL.map(SchedulingClass::name);
    let classes = Axis::groups("scheduling class", classes);
    let chart = Chart::new(caption, classes, latency()).series(series);
    let setting = |row: &ClassRow| (row.case.placement, row.case.memory_locked);
    let rows = outcome.classes.as_slice();
    let tables = rows.chunk_by(|row, next| setting(row) == setting(next));
    let tables = tables.map(|rows| {
        let (placement, locked) = setting(&rows[0]);
        let memory = if locked { "" } else { ", memory not locked" };
        let place = placement.name();
        by_columns(
            format!("Scheduling class, load, client: {place}{memory}"),
            rows,
            |row| {
                let (class, load) = (row.case.class.name(), row.case.load.name());
                format!("{class}, {load}, {}", name_of(&row.client))
            },
            [
                ("calls", |row| units::count(row.latency.calls)),
                ("mean", |row| units::time(row.latency.mean_us)),
                ("jitter", |row| units::time(row.latency.jitter_us)),
                ("p50", |row| units::time(row.latency.p50_us)),
                ("p99", |row| units::time(row.p99_of_rounds_us)),
                ("p99.9", |row| units::time(row.latency.p999_us)),
                ("longest", |row| units::time(row.latency.max_us)),
                ("CPU busy", |row| format!("{:.0} %", row.cpu_busy_percent)),
            ],
        )
    });
    let heading = "The ORB under scheduling classes".to_owned();
    (heading, Some(chart), tables.collect())
}

/// Shows the throttling of a real-time thread.
pub(super) fn throttling_part(outcome: &OsOutcome) -> ReportPart {
    let rows = || outcome.throttling.iter();
    let longest = units::time(largest(rows().map(|row| row.longest_gap_us)));
    let lost = largest(rows().map(|row| row.lost_percent));
    let heading = format!(
        "A real-time thread that computes without end loses {lost:.1} % of the time, and waits \
         {longest} at the longest"
    );
    let table = by_columns(
        "A SCHED_FIFO thread that computes without end",
        rows(),
        |row| {
            let other = if row.contended {
                "an ordinary"
            } else {
                "no other"
            };
            format!("{other} thread on this CPU")
        },
        [
            ("computed", |row| format!("{} s", row.length_s)),
            ("longest gap", |row| units::time(row.longest_gap_us)),
            ("gaps of 1 ms", |row| units::count(row.gaps_of_a_ms)),
            ("lost", |row| format!("{:.2} %", row.lost_percent)),
            ("given to it", |row| format!("{:.2} %", row.given_percent)),
        ],
    );
    (heading, None, vec![table])
}

/// Shows the cost of a context switch, here and on the papers' systems.
pub(super) fn switch_part(outcome: &OsOutcome) -> ReportPart {
    let means = |cpus| {
        let rows = outcome.switches.iter().filter(move |row| row.cpus == cpus);
        rows.map(|row| row.mean_us)
    };
    let least = units::time(means(1).reduce(f64::min).unwrap_or_default());
    let most = units::time(largest(means(1)));
    let across = means(2).map(|mean| format!(", {} across two", units::time(mean)));
    let across: String = across.collect();
    let heading = format!("A context switch takes {least} to {most} on one CPU{across}");
    if outcome.switches.is_empty() {
        return (heading, None, Vec::new());
    }
    let caption = "Means, those of the papers on a Pentium II at 450 MHz. Where a bar is missing, \
                   the papers have no figure.";
    let ways = ["suspend–resume", "yield", "synchronisation"];
    let bars = |(system, times): (&str, [PaperTime; 3])| {
        let means = times.map(|time| time.map(|(mean, _)| mean));
        Series::of_groups(Mark::Bars, system, means)
    };
    let ours = IN_PAPERS.map(|switching| {
        let row = outcome.switch(switching, 1)?;
        Some((row.mean_us, Some(row.deviation_us)))
    });
    let ours = ("this Linux", ours);
    let axis = Axis::groups("how two threads take turns, on one CPU", ways);
    let chart = Chart::new(caption, axis, Axis::log("context switch", Unit::Time))
        .series([bars(ours)])
        .series(PUBLISHED.map(bars));
    let cell = |time: PaperTime| match time {
        Some((mean, Some(deviation))) => {
            format!("{} ({})", thousandths(mean), thousandths(deviation))
        }
        Some((mean, None)) => thousandths(mean).to_string(),
        None => "–".to_owned(),
    };
    let lines = PUBLISHED.into_iter().chain([ours]);
    let papers = Table::new(
        "Context switch in µs: mean (standard deviation)",
        ways,
        lines.map(|(system, times)| (system.to_owned(), times.map(cell).to_vec())),
    );
    let table = by_columns(
        "A context switch between SCHED_FIFO threads of equal priority",
        &outcome.switches,
        |row| {
            let cpus = if row.cpus == 1 { "one CPU" } else { "two CPUs" };
            format!("{}, {cpus}", name_of(&row.switching))
        },
        [
            ("mean", |row| units::time(row.mean_us)),
            ("std. deviation", |row| units::time(row.deviation_us)),
            ("p50", |row| units::time(row.p50_us)),
            ("p99", |row| units::time(row.p99_us)),
            ("longest", |row| units::time(row.max_us)),
            ("counted by expected", |row| {
                hundredths(row.counted_by_expected)
            }),
        ],
    );
    (heading, Some(chart), vec![papers, table])
}

/// Shows the context switches of a request by the number of clients.
pub(super) fn request_part(outcome: &OsOutcome) -> ReportPart {
    let both = || outcome.requests.iter().map(|row| row.switches());
    let least = both().reduce(f64::min).unwrap_or_default();
    let most = largest(both());
    let heading = format!(
        "A request has {least:.2} to {most:.2} context switches, client and server together"
    );
    let caption = "One client of high priority and the others of low, which call back to back, all \
                   SCHED_FIFO.";
    let placements = [Placement::SameCpu, Placement::AcrossCpus].into_iter();
    let series = placements.flat_map(|placement| {
        let series = |mark, side, switches: fn(&RequestRow) -> f64| {
            let rows = outcome.requests.iter();
            let rows = rows.filter(|row| row.placement == placement);
            let points = rows.map(|row| (f64::from(row.clients), switches(row)));
            Series::new(mark, format!("{side}, {}", placement.name()), points)
        };
        [
            series(Mark::Line, "client", |row| row.client_switches_per_request),
            series(Mark::Dashes, "server", |row| {
                row.server_switches_per_request
            }),
        ]
    });
    let clients = Axis::linear("clients that call at once", Unit::Count);
    let switches = Axis::linear("context switches for each request", Unit::Number);
    let chart = Chart::new(caption, clients, switches).series(series);
    let table = by_columns(
        "Context switches for each request, calls back to back",
        &outcome.requests,
        |row| {
            let plural = if row.clients == 1 { "" } else { "s" };
            format!("{}, {} client{plural}", row.placement.name(), row.clients)
        },
        [
            ("requests", |row| units::count(row.requests)),
            ("client", |row| hundredths(row.client_switches_per_request)),
            ("server", |row| hundredths(row.server_switches_per_request)),
            ("both", |row| hundredths(row.switches())),
        ],
    );
    (heading, Some(chart), vec![table])
}

/// Shows the shares of the CPUs of client and server that calls leave, by their rate.
pub(super) fn scavenger_part(outcome: &OsOutcome) -> ReportPart {
    let rows = |side| {
        outcome
            .scavengers
            .iter()
            .filter(move |row| row.side == side)
    };
    let heading = match [CpuOwner::Client, CpuOwner::Server].map(|side| rows(side).next_back()) {
        [Some(client), Some(server)] => format!(
            "{} calls a second leave {:.0} % of the client's CPU and {:.0} % of the server's",
            client.rate_hz, client.left_percent, server.left_percent,
        ),
        _ => "CPU left to a scavenger".to_owned(),
    };
    let caption = "How far an ordinary thread counts on the CPU of client or server, by how far it \
                   counts when nothing is called.";
    let series = |mark, name, side, left: fn(&ScavengerRow) -> f64| {
        let points = rows(side).map(|row| (f64::from(row.rate_hz), left(row)));
        Series::new(mark, name, points)
    };
    let (client, server) = (CpuOwner::Client, CpuOwner::Server);
    let rates = Axis::linear("calls a second", Unit::Count);
    let left = Axis::linear("CPU left to a scavenger", Unit::Percent);
    let chart = Chart::new(caption, rates, left).series([
        series(Mark::Line, "client, calling", client, |row| {
            row.left_percent
        }),
        series(Mark::Dashes, "client, only waking up", client, |row| {
            row.left_by_waking_percent
        }),
        series(Mark::Line, "server", server, |row| row.left_percent),
    ]);
    let table = by_columns(
        "What a scavenger gets of the CPU of",
        &outcome.scavengers,
        |row| format!("{}, {} Hz", name_of(&row.side), row.rate_hz),
        [
            ("requests", |row| units::count(row.requests)),
            ("left by calls", |row| tenths(row.left_percent)),
            ("left by wake-ups alone", |row| {
                tenths(row.left_by_waking_percent)
            }),
            ("CPU a request", |row| units::time(row.cpu_us_per_request)),
            ("without its wake-up", |row| {
                units::time(row.orb_us_per_request)
            }),
        ],
    );
    (heading, Some(chart), vec![table])
}

/// Shows the means of four clients, with rings at the sum of mean and jitter.
pub(super) fn rate_part(outcome: &OsOutcome) -> ReportPart {
    let figures = |class| {
        let [first, ..] = outcome.four(class, RateMode::Scaled)?;
        Some([first.latency.mean_us, first.latency.jitter_us].map(units::time))
    };
    let heading = match (figures(Fifo), figures(Other)) {
        (Some([mean, jitter]), Some([other_mean, other_jitter])) => format!(
            "Under load the most urgent of four clients has a mean of {mean} and jitter of \
             {jitter} with SCHED_FIFO, {other_mean} and {other_jitter} with SCHED_OTHER"
        ),
        _ => "Four clients at four rates".to_owned(),
    };
    let caption = "A bar ends at the mean of a client's calls, a ring is a standard deviation \
                   above it. Scaled is at ten times the rates, with work for each call and the CPU \
                   busy.";
    let shown = [RateMode::Scaled, RateMode::Paper].into_iter();
    let shown = shown.flat_map(|mode| [Fifo, Other].map(|class| (class, mode)));
    let series = shown.flat_map(|(class, mode)| {
        let points = |of: fn(&Summary) -> f64| {
            let four = outcome.four(class, mode).into_iter().flatten();
            four.map(move |row| Some(of(&row.latency)))
        };
        let name = format!("{}, {}", class.name(), name_of(&mode));
        [
            Series::of_groups(Mark::Bars, name, points(|of| of.mean_us)),
            Series::of_groups(Mark::Rings, "", points(|of| of.mean_us + of.jitter_us)),
        ]
    });
    let clients = ["C1", "C2", "C3", "C4"];
    let clients = Axis::groups("the client, the most urgent first", clients);
    let chart = Chart::new(caption, clients, latency()).series(series);
    let table = by_columns(
        "Four clients on one CPU, C1 the most urgent",
        &outcome.rates,
        |row| {
            let (class, mode) = (row.class.name(), name_of(&row.mode));
            format!("{class}, {mode}, C{} at {} Hz", row.client, row.rate_hz)
        },
        [
            ("calls", |row| units::count(row.latency.calls)),
            ("mean", |row| units::time(row.latency.mean_us)),
            ("jitter", |row| units::time(row.latency.jitter_us)),
            ("p50", |row| units::time(row.latency.p50_us)),
            ("p99", |row| units::time(row.latency.p99_us)),
            ("longest", |row| units::time(row.latency.max_us)),
        ],
    );
    (heading, Some(chart), vec![table])
}

fn tenths(percent: f64) -> String {
    format!("{percent:.1} %")
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}")
}
