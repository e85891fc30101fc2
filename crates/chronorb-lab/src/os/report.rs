//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::{Value, json};

use super::class::SchedulingClass::{self, Fifo, Other};
use super::class::{HIGH, LOW, PATIENT, URGENT};
use super::load::CompetingLoad;
use super::outcome::{
    ClassRefusal, ClassRow, ClientPriority, CpuOwner, OsOutcome, RateMode, RequestRow, ScavengerRow,
};
use super::plan::{OsPlan, SCALE};
use super::published::{IN_PAPERS, PUBLISHED, PaperTime, SOURCE};
use super::{OperatingSystem, claims, thousandths};
use crate::Claim;
use crate::bench::Placement;
use crate::experiment::{Experiment, Findings, figures, plain_data};
use crate::report::columns::by_columns;
use crate::report::{begin, largest, latency};
use crate::stats::Summary;

impl Findings for OsOutcome {
    fn headline(&self) -> String {
        let times = |class| {
            let p99 = |load| {
                let row = self.free(class, load, ClientPriority::High)?;
                Some(units::time(row.p99_of_rounds_us))
            };
            let [idle, busy] = [CompetingLoad::Idle, CompetingLoad::Mixed].map(p99);
            Some(format!("from {} to {}", idle?, busy?))
        };
        match (times(Other), times(Fifo)) {
            (Some(other), Some(fifo)) => format!(
                "Computing and I/O of others take the p99 of the high class {other} with \
                 SCHED_OTHER, {fifo} with SCHED_FIFO"
            ),
            _ => "The ORB and the operating system".to_owned(),
        }
    }

    fn caveats(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|ClassRefusal { class, why }| {
            let class = class.name();
            format!("{class} and all parts that need it were not measured: {why}.")
        });
        let stolen = self.environment.stolen_caveat();
        let others = [busy_caveat(self), scavenger_caveat(self), stolen];
        refused.chain(others.into_iter().flatten()).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        let parts = [
            plain_data(&self.classes),
            plain_data(&self.throttling),
            plain_data(&self.switches),
            plain_data(&self.requests),
            plain_data(&self.scavengers),
            plain_data(&self.rates),
        ];
        let rows: Vec<_> = parts.iter().filter_map(Value::as_array).flatten().collect();
        figures(OperatingSystem::NAME, self, json!({"rows": rows}))
    }

    fn document(&self) -> Document {
        let parts = [
            class_part,
            throttling_part,
            switch_part,
            request_part,
            scavenger_part,
            rate_part,
        ];
        let document = parts.iter().fold(begin(self, LEAD), |document, part| {
            let (heading, chart, tables) = part(self);
            document.part(heading, chart, tables)
        });
        let rows = self.environment.rows().into_iter();
        document
            .section("How it was measured")
            .notes(notes(self))
            .environment(rows.chain(self.kernel.rows()))
            .commands(COMMANDS)
    }
}

/// Warns of programs that used the CPUs in idle cases.
fn busy_caveat(outcome: &OsOutcome) -> Option<String> {
    let idle = outcome.classes.iter();
    let idle = idle.filter(|row| row.case.load == CompetingLoad::Idle);
    let least = idle.map(|row| row.cpu_busy_percent).reduce(f64::min)?;
    (least >= BUSY_PERCENT).then(|| {
        format!(
            "Other programs ran meanwhile: the CPUs were busy for {least:.0} % of the time in \
             idle cases."
        )
    })
}

/// Warns of programs that took time from scavengers. The server does nothing while the client
/// only wakes up.
fn scavenger_caveat(outcome: &OsOutcome) -> Option<String> {
    let servers = outcome.scavengers.iter();
    let servers = servers.filter(|row| row.side == CpuOwner::Server);
    let off = servers.map(|row| (row.left_by_waking_percent - 100.0).abs());
    let most = off.reduce(f64::max)?;
    (most >= OFF_PERCENT).then(|| {
        format!(
            "Other programs changed the counts of scavengers by {most:.0} % when no client \
             called: the ORB's processor time is no more precise than that."
        )
    })
}

/// A part of the report: its heading, its chart and its tables.
type Part = (String, Option<Chart>, Vec<Table>);

/// The p99 of urgent calls by class and load, and a table for each placement.
fn class_part(outcome: &OsOutcome) -> Part {
    let caption = "Calls of the high class, client and server free to run on all CPUs: a bar ends \
                   at p99, a ring is the longest call. Latencies count from when a call was due.";
    let series = CompetingLoad::ALL.into_iter().flat_map(|load| {
        let of = |mark, name, figure: fn(&ClassRow) -> f64| {
            let row = |class| outcome.free(class, load, ClientPriority::High);
            Series::of_groups(
                mark,
                name,
                SchedulingClass::ALL.map(|class| row(class).map(figure)),
            )
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
        let place = place(placement);
        by_columns(
            format!("Scheduling class, load, client: {place}{memory}"),
            rows,
            |row| {
                let client = match row.client {
                    ClientPriority::High => "high",
                    ClientPriority::Low => "low",
                };
                let (class, load) = (row.case.class.name(), row.case.load.name());
                format!("{class}, {load}, {client}")
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

fn throttling_part(outcome: &OsOutcome) -> Part {
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
            let thread = if row.contended {
                "an ordinary"
            } else {
                "no other"
            };
            format!("{thread} thread on this CPU")
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

/// The cost of a context switch, here and on the papers' systems.
fn switch_part(outcome: &OsOutcome) -> Part {
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
        Some((mean, Some(deviation))) => format!("{} ({})", short(mean), short(deviation)),
        Some((mean, None)) => short(mean),
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
            format!("{}, {cpus}", row.switching.name())
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

/// The context switches of a request by the number of clients.
fn request_part(outcome: &OsOutcome) -> Part {
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
            Series::new(mark, format!("{side}, {}", place(placement)), points)
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
            format!("{}, {} client{plural}", place(row.placement), row.clients)
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

/// The shares of the CPUs of client and server that calls leave, by their rate.
fn scavenger_part(outcome: &OsOutcome) -> Part {
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
    let calling = |row: &ScavengerRow| row.left_percent;
    let waking = |row: &ScavengerRow| row.left_by_waking_percent;
    let (client, server) = (CpuOwner::Client, CpuOwner::Server);
    let rates = Axis::linear("calls a second", Unit::Count);
    let left = Axis::linear("CPU left to a scavenger", Unit::Percent);
    let chart = Chart::new(caption, rates, left).series([
        series(Mark::Line, "client, calling", client, calling),
        series(Mark::Dashes, "client, only waking up", client, waking),
        series(Mark::Line, "server", server, calling),
    ]);
    let table = by_columns(
        "What a scavenger gets of the CPU of",
        &outcome.scavengers,
        |row| {
            let is_client = row.side == CpuOwner::Client;
            let side = if is_client { "client" } else { "server" };
            format!("{side}, {} Hz", row.rate_hz)
        },
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

/// The means of four clients, with rings at the mean and its jitter together.
fn rate_part(outcome: &OsOutcome) -> Part {
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
                   above it. Loaded is at ten times the rates, with work for each call and the CPU \
                   busy.";
    let shown = [RateMode::Scaled, RateMode::Paper].into_iter();
    let shown = shown.flat_map(|mode| [Fifo, Other].map(|class| (class, mode)));
    let series = shown.flat_map(|(class, mode)| {
        let points = |of: fn(&Summary) -> f64| {
            let four = outcome.four(class, mode).into_iter().flatten();
            four.map(move |row| Some(of(&row.latency)))
        };
        let name = format!("{}, {}", class.name(), mode_name(mode));
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
            let (class, mode) = (row.class.name(), mode_name(row.mode));
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

/// Formats a number with as many digits as it has, at most three of them after the point.
fn short(value: f64) -> String {
    thousandths(value).to_string()
}

const fn mode_name(mode: RateMode) -> &'static str {
    match mode {
        RateMode::Paper => "idle",
        RateMode::Scaled => "loaded",
    }
}

/// Returns explanations of the figures.
fn notes(outcome: &OsOutcome) -> Vec<String> {
    let hz = |period: std::time::Duration| (1.0 / period.as_secs_f64()).round();
    let OsPlan {
        rounds,
        low_clients,
        turns,
        scavenging_rounds,
        ..
    } = outcome.plan;
    let plan = &outcome.plan;
    let (high_hz, low_hz) = (hz(plan.high_period), hz(plan.low_period));
    let [work, case, counting] = [plan.work, plan.case, plan.counting].map(units::setting);
    let [scavenging, scaled_work] = [plan.scavenging, plan.scaled_work].map(units::setting);
    let [at_paper, at_scaled] = [plan.at_paper_rates, plan.at_scaled_rates].map(units::setting);
    let (hogs, mixed) = (CompetingLoad::Hogs.name(), CompetingLoad::Mixed.name());
    let locked = outcome.classes.iter().any(|row| row.case.memory_locked);
    let memory = if locked {
        "The memory of client and server was locked unless a heading says otherwise."
    } else {
        "The memory was not locked, because this process may not lock it."
    };
    let mut notes = vec![
        format!(
            "Scheduling classes: a client of high priority calls at {high_hz} Hz and {low_clients} \
             of low priority at {low_hz} Hz, each on a connection of its own to the lane of its \
             priority (one thread, and two). A call computes for {work}. All threads that call and \
             serve are of the class, at the native priorities {HIGH} and {LOW}. Latencies count \
             from when a call was due. Each case was measured {rounds} times for {case}, all in \
             turn; p99 is the median of these, the other figures are of all calls together."
        ),
        format!(
            "SCHED_DEADLINE: the threads of the high class have {URGENT} each, those of the low \
             class {PATIENT}. The ORB makes no reservations: its threads get them after they have \
             connected. A thread with a reservation has to be free to run on all CPUs of its \
             scheduling domain, so it was not pinned."
        ),
        format!(
            "Loads are ordinary threads, on every CPU: {hogs} is one that computes; {mixed} is one \
             that computes, one that writes a file and waits for its disk, and two that send each \
             other data over the loopback interface. The isolation of CPUs (isolcpus, nohz_full) \
             is reported, and not varied."
        ),
        "Throttling: the setting of the machine stays. Lost is the share of the time in which the \
         thread had no CPU; a host that takes the CPU away does not count as that, but makes gaps."
            .to_owned(),
        format!(
            "Context switches: two threads take {turns} turns. A switch is half of the time from \
             one turn of a thread to its next, with the waking of the other thread, and half a \
             reading of the clock. Suspend–resume is unpark and park; synchronisation is a \
             semaphore on a futex, or a lock with priority inheritance that is handed over. \
             Counted by expected is the number of switches that the kernel has counted, by two for \
             each turn."
        ),
        format!(
            "Context switches of requests: one client of high priority and the others of low call \
             back to back for {counting}, all SCHED_FIFO. The kernel counts the switches of the \
             calling threads and of all threads of the server."
        ),
        format!(
            "Scavengers: an ordinary thread counts on the CPU of the client, one on that of the \
             server, for {scavenging} at a time, {scavenging_rounds} times at each rate, beside a \
             client that rests, that only wakes up as often, and that calls. All threads of the \
             ORB are SCHED_FIFO, so scavengers get the rest. Of ordinary threads they have the \
             greatest weight if that is permitted. The papers show no numbers of this test."
        ),
        format!(
            "Four rates: C1 to C4 call S1 to S4, lanes of one thread each, all on one CPU, at 20, \
             10, 5 and 1 Hz for {at_paper}; then at {SCALE} times these rates for {at_scaled} with \
             {scaled_work} of work for each call while ordinary threads compute on all CPUs."
        ),
        format!("The papers' context switches: {SOURCE}."),
        memory.to_owned(),
    ];
    if rounds == 1 {
        notes.push("This was a short run: one round, and few calls of each kind.".to_owned());
    }
    notes
}

fn place(placement: Placement) -> &'static str {
    match placement {
        Placement::SameCpu => "one CPU",
        Placement::AcrossCpus => "pinned apart",
        Placement::Unpinned => "free",
    }
}

const LEAD: &str = "The papers held the ORB and varied the operating system. Here the ORB is held, \
                    and the scheduling of its threads by one Linux varies.";
/// More than the calls of an idle case take.
const BUSY_PERCENT: f64 = 60.0;
/// More than the difference between counts on a quiet machine.
const OFF_PERCENT: f64 = 3.0;
const COMMANDS: &str = "cargo run --release -- lab os\n\
                        cargo run --release -- lab os --short\n\
                        cargo run --release -- lab os --json";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::claims::tests::outcome;
    use super::*;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("os", &outcome());
    }

    #[test]
    fn parts_without_figures_are_left_out() {
        let mut outcome = outcome();
        outcome.refused = vec![ClassRefusal {
            class: Fifo,
            why: "not permitted <here>".to_owned(),
        }];
        outcome.classes.clear();
        outcome.rates.clear();
        outcome.throttling.clear();
        outcome.switches.clear();
        outcome.requests.clear();
        outcome.scavengers.clear();
        let page = outcome.html();
        assert!(page.contains("not permitted &lt;here&gt;") && !page.contains("<svg"));
        assert!(page.contains("not measured") && !page.contains("<table class=\"figures\""));
    }

    #[test]
    fn other_programs_are_a_caveat() {
        let mut outcome = outcome();
        assert_eq!(outcome.caveats(), [""; 0]);
        for row in &mut outcome.classes {
            row.cpu_busy_percent = 97.0;
        }
        outcome.scavengers[1].left_by_waking_percent = 110.0;
        outcome.environment.stolen_percent = vec![2.5];
        let caveats = outcome.caveats();
        assert_eq!(caveats.len(), 3, "{caveats:?}");
        let parts = ["97 % of the time", "by 10 %", "2.5 %"];
        for (caveat, part) in caveats.iter().zip(parts) {
            assert!(caveat.contains(part), "{caveat}");
        }
    }

    #[test]
    fn rows_name_their_part_and_their_case() {
        let figures = outcome().figures();
        let rows = figures["rows"].as_array().unwrap();
        let parts: BTreeSet<_> = rows.iter().map(|row| row["part"].as_str()).collect();
        assert_eq!(parts.len(), 6);
        let case = [
            ("class", "other"),
            ("load", "idle"),
            ("client", "high"),
            ("placement", "unpinned"),
        ];
        for (name, value) in case {
            assert_eq!(rows[0][name], value, "{}", rows[0]);
        }
        assert!(rows[0]["p99_us"].is_number() && rows[0]["memory_locked"].is_boolean());
    }
}
