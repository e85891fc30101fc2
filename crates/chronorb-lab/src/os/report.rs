//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, counted, units};

use super::case::Case;
use super::claims::free;
use super::class::{Class, HIGH, LOW, PATIENT, URGENT};
use super::load::Load;
use super::outcome::{Client, Mode, Outcome, ScavengerRow, Side};
use super::plan::SCALE;
use super::published::{PUBLISHED, SOURCE, Time};
use super::switch::Switching;
use crate::bench::Placement;
use crate::report::{begin, largest, latency};
use crate::stats::Summary;

pub(super) fn document(outcome: &Outcome) -> Document {
    let heading = "The ORB under scheduling classes";
    let document = begin(outcome, LEAD)
        .part(heading, [by_class(outcome)], classes(outcome))
        .part(throttling_heading(outcome), [], [throttling(outcome)])
        .part(
            switches_heading(outcome),
            [switches_chart(outcome)],
            match outcome.switches.is_empty() {
                true => Vec::new(),
                false => vec![beside_the_papers(outcome), switches(outcome)],
            },
        )
        .part(
            requests_heading(outcome),
            [requests_chart(outcome)],
            [requests(outcome)],
        )
        .part(
            scavengers_heading(outcome),
            [scavengers_chart(outcome)],
            [scavengers(outcome)],
        )
        .part(
            rates_heading(outcome),
            [rates_chart(outcome)],
            [rates(outcome)],
        );
    let commands = "cargo run --release -- lab os\ncargo run --release -- lab os --short\n\
                    cargo run --release -- lab os --json";
    let rows = outcome.environment.rows().into_iter();
    document
        .section("How it was measured")
        .notes(notes(outcome))
        .environment(rows.chain(outcome.kernel.rows()))
        .commands(commands)
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let p99 = |case: Case| Some(outcome.class(case, Client::High)?.p99_of_rounds_us);
    let of = |class| {
        let busy = free(outcome, class, Load::Mixed);
        Some((p99(busy.under(Load::Idle))?, p99(busy)?))
    };
    match (of(Class::Other), of(Class::Fifo)) {
        (Some((other_idle, other)), Some((fifo_idle, fifo))) => format!(
            "Computing and I/O of others take the p99 of the high class from {} to {} with SCHED_OTHER, from {} to {} with \
             SCHED_FIFO",
            units::time(other_idle),
            units::time(other),
            units::time(fifo_idle),
            units::time(fifo),
        ),
        _ => "The ORB and the operating system".to_owned(),
    }
}

/// What throttling takes.
fn throttling_heading(outcome: &Outcome) -> String {
    let rows = || outcome.throttling.iter();
    let longest = largest(rows().map(|row| row.longest_gap_us));
    let lost = largest(rows().map(|row| row.lost_percent));
    format!(
        "A real-time thread that computes without end loses {lost:.1} % of the time, and waits {} at the longest",
        units::time(longest)
    )
}

/// What a context switch costs.
fn switches_heading(outcome: &Outcome) -> String {
    let means = |cpus| {
        let rows = outcome.switches.iter();
        rows.filter(move |row| row.cpus == cpus)
            .map(|row| row.mean_us)
    };
    let least = means(1).reduce(f64::min).unwrap_or_default();
    let across = means(2).next().map_or_else(String::new, |mean| {
        format!(", {} across two", units::time(mean))
    });
    format!(
        "A context switch takes {} to {} on one CPU{across}",
        units::time(least),
        units::time(largest(means(1))),
    )
}

/// How many of them a request has.
fn requests_heading(outcome: &Outcome) -> String {
    let both = outcome
        .requests
        .iter()
        .map(|row| row.client_switches_per_request + row.server_switches_per_request);
    let least = both.clone().reduce(f64::min).unwrap_or_default();
    format!(
        "A request has {least:.2} to {:.2} context switches, client and server together",
        largest(both)
    )
}

/// What is left of processors.
fn scavengers_heading(outcome: &Outcome) -> String {
    let last = |side| {
        let mut rows = outcome.scavengers.iter();
        rows.rfind(|row| row.side == side)
    };
    match (last(Side::Client), last(Side::Server)) {
        (Some(client), Some(server)) => format!(
            "{} calls a second leave {:.0} % of the client's CPU and {:.0} % of the server's",
            client.rate_hz, client.left_percent, server.left_percent,
        ),
        _ => "CPU left to a scavenger".to_owned(),
    }
}

/// Whether four clients are served in their order.
fn rates_heading(outcome: &Outcome) -> String {
    let mean = |class| {
        let [first, ..] = outcome.four(class, Mode::Scaled)?;
        Some(first.latency)
    };
    match (mean(Class::Fifo), mean(Class::Other)) {
        (Some(fifo), Some(other)) => format!(
            "Under load the most urgent of four clients has a mean of {} and jitter of {} with SCHED_FIFO, {} and {} with \
             SCHED_OTHER",
            units::time(fifo.mean_us),
            units::time(fifo.jitter_us),
            units::time(other.mean_us),
            units::time(other.jitter_us),
        ),
        _ => "Four clients at four rates".to_owned(),
    }
}

/// The p99 of the high class by class and load, with a ring at the longest call.
fn by_class(outcome: &Outcome) -> Chart {
    let caption = "Calls of the high class, client and server free to run on all CPUs: a bar ends at \
                   p99, a ring is the longest call. Latencies count from when a call was due.";
    let series = Load::ALL.into_iter().flat_map(|load| {
        let row = |class| outcome.class(free(outcome, class, load), Client::High);
        let rows = Class::ALL.map(row);
        [
            Series::of_groups(
                Mark::Bars,
                load.name(),
                rows.map(|row| Some(row?.p99_of_rounds_us)),
            ),
            Series::of_groups(Mark::Rings, "", rows.map(|row| Some(row?.latency.max_us))),
        ]
    });
    let classes = Axis::groups("scheduling class", Class::ALL.map(Class::name));
    Chart::new(caption, classes, latency()).series(series)
}

/// A table of the ORB under each class, for each setting.
fn classes(outcome: &Outcome) -> Vec<Table> {
    let mut settings: Vec<String> = Vec::new();
    for row in &outcome.classes {
        let setting = row.case.setting();
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    let table = |setting: String| {
        let rows = outcome.classes.iter();
        let rows = rows.filter(|row| row.case.setting() == setting);
        let lines = rows.map(|row| {
            let Case { class, load, .. } = row.case;
            let client = match row.client {
                Client::High => "high",
                Client::Low => "low",
            };
            let latency = row.latency;
            let times = [
                latency.mean_us,
                latency.jitter_us,
                latency.p50_us,
                row.p99_of_rounds_us,
                latency.p999_us,
                latency.max_us,
            ];
            let mut cells = counted(latency.calls, times);
            cells.push(format!("{:.0} %", row.cpu_busy_percent));
            (
                format!("{}, {}, {client}", class.name(), load.name()),
                cells,
            )
        });
        let heading = format!("Scheduling class, load, client: {setting}");
        Table::new(heading, CLASS_COLUMNS, lines)
    };
    settings.into_iter().map(table).collect()
}

fn throttling(outcome: &Outcome) -> Table {
    let lines = outcome.throttling.iter().map(|row| {
        let name = match row.contended {
            true => "an ordinary thread wants the CPU",
            false => "nobody else on this CPU",
        };
        let cells = vec![
            format!("{} s", row.length_s),
            units::time(row.longest_gap_us),
            units::count(row.gaps_of_a_ms),
            format!("{:.2} %", row.lost_percent),
            format!("{:.2} %", row.given_percent),
        ];
        (name.to_owned(), cells)
    });
    Table::new(
        "A SCHED_FIFO thread that computes without end",
        [
            "computed",
            "longest gap",
            "gaps of 1 ms",
            "lost",
            "given to it",
        ],
        lines,
    )
}

/// The mean of a context switch, here and on the papers' systems.
fn switches_chart(outcome: &Outcome) -> Chart {
    let caption = "Means, those of the papers on a Pentium II at 450 MHz. Where a bar is missing, the \
                   papers have no figure.";
    let ours = IN_PAPERS.map(|switching| Some(outcome.switch(switching, 1)?.mean_us));
    let theirs = PUBLISHED.iter().map(|of| {
        let means = IN_PAPERS.map(|switching| of.of(switching).map(|(mean, _)| mean));
        Series::of_groups(Mark::Bars, of.system, means)
    });
    let ours = Series::of_groups(Mark::Bars, "this Linux", ours);
    let ways = IN_PAPERS.map(|switching| match switching {
        Switching::Semaphore | Switching::PiLock => "synchronisation",
        other => other.name(),
    });
    let ways = Axis::groups("how two threads take turns, on one CPU", ways);
    let chart = Chart::new(caption, ways, Axis::log("context switch", Unit::Time));
    match outcome.switches.is_empty() {
        true => chart,
        false => chart.series([ours].into_iter().chain(theirs)),
    }
}

/// The papers' table, with ours as its last line.
fn beside_the_papers(outcome: &Outcome) -> Table {
    let cell = |time: Time| match time {
        Some((mean, Some(deviation))) => format!("{mean} ({deviation})"),
        Some((mean, None)) => format!("{mean}"),
        None => "–".to_owned(),
    };
    let theirs = PUBLISHED.iter().map(|of| {
        let cells = IN_PAPERS.map(|switching| cell(of.of(switching)));
        (of.system.to_owned(), cells.to_vec())
    });
    let ours = IN_PAPERS.map(|switching| {
        outcome.switch(switching, 1).map_or_else(
            || "–".to_owned(),
            |row| format!("{:.2} ({:.2})", row.mean_us, row.deviation_us),
        )
    });
    Table::new(
        "Context switch in µs: mean (standard deviation)",
        ["suspend–resume", "yield", "synchronisation"],
        theirs.chain([("this Linux".to_owned(), ours.to_vec())]),
    )
}

fn switches(outcome: &Outcome) -> Table {
    let lines = outcome.switches.iter().map(|row| {
        let cpus = if row.cpus == 1 { "one CPU" } else { "two CPUs" };
        let times = [
            row.mean_us,
            row.deviation_us,
            row.p50_us,
            row.p99_us,
            row.max_us,
        ];
        let mut cells = times.map(units::time).to_vec();
        cells.push(format!("{:.2}", row.counted_by_expected));
        (format!("{}, {cpus}", row.switching.name()), cells)
    });
    Table::new(
        "A context switch between SCHED_FIFO threads of equal priority",
        [
            "mean",
            "std. deviation",
            "p50",
            "p99",
            "longest",
            "counted by expected",
        ],
        lines,
    )
}

/// Context switches of a request by the number of clients.
fn requests_chart(outcome: &Outcome) -> Chart {
    let caption = "One client of high priority and the others of low, which call back to back, all SCHED_FIFO.";
    let places = [Placement::SameCpu, Placement::AcrossCpus].into_iter();
    let series = places.flat_map(|placement| {
        let rows = move || {
            let rows = outcome.requests.iter();
            rows.filter(move |row| row.placement == placement)
        };
        let name = |side| format!("{side}, {}", place(placement));
        let client = rows().map(|row| (f64::from(row.clients), row.client_switches_per_request));
        let server = rows().map(|row| (f64::from(row.clients), row.server_switches_per_request));
        [
            Series::new(Mark::Line, name("client"), client),
            Series::new(Mark::Dashes, name("server"), server),
        ]
    });
    let clients = Axis::linear("clients that call at once", Unit::Count);
    let switches = Axis::linear("context switches for each request", Unit::Number);
    Chart::new(caption, clients, switches).series(series)
}

fn requests(outcome: &Outcome) -> Table {
    let lines = outcome.requests.iter().map(|row| {
        let both = row.client_switches_per_request + row.server_switches_per_request;
        let clients = match row.clients {
            1 => "1 client".to_owned(),
            clients => format!("{clients} clients"),
        };
        let cells = vec![
            units::count(row.requests),
            format!("{:.2}", row.client_switches_per_request),
            format!("{:.2}", row.server_switches_per_request),
            format!("{both:.2}"),
        ];
        (format!("{}, {clients}", place(row.placement)), cells)
    });
    Table::new(
        "Context switches for each request, calls back to back",
        ["requests", "client", "server", "both"],
        lines,
    )
}

/// What is left of the processors of client and server, by the rate of calls.
fn scavengers_chart(outcome: &Outcome) -> Chart {
    let caption = "How far an ordinary thread counts on the CPU of client or server, by how far it \
                   counts when nothing is called.";
    let series = |mark, name, side, left: fn(&ScavengerRow) -> f64| {
        let rows = outcome
            .scavengers
            .iter()
            .filter(move |row| row.side == side);
        Series::new(
            mark,
            name,
            rows.map(|row| (f64::from(row.rate_hz), left(row))),
        )
    };
    let calling = |row: &ScavengerRow| row.left_percent;
    let waking = |row: &ScavengerRow| row.left_by_waking_percent;
    let rates = Axis::linear("calls a second", Unit::Count);
    Chart::new(
        caption,
        rates,
        Axis::linear("CPU left to a scavenger", Unit::Percent),
    )
    .series([
        series(Mark::Line, "client, calling", Side::Client, calling),
        series(Mark::Dashes, "client, only waking up", Side::Client, waking),
        series(Mark::Line, "server", Side::Server, calling),
    ])
}

fn scavengers(outcome: &Outcome) -> Table {
    let lines = outcome.scavengers.iter().map(|row| {
        let side = match row.side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let cells = vec![
            units::count(row.requests),
            format!("{:.1} %", row.left_percent),
            format!("{:.1} %", row.left_by_waking_percent),
            units::time(row.cpu_us_per_request),
            units::time(row.orb_us_per_request),
        ];
        (format!("{side}, {} Hz", row.rate_hz), cells)
    });
    Table::new(
        "What a scavenger gets of the CPU of",
        [
            "requests",
            "left by calls",
            "left by wake-ups alone",
            "CPU a request",
            "without its wake-up",
        ],
        lines,
    )
}

/// The means of four clients, with rings at the mean and its jitter together.
fn rates_chart(outcome: &Outcome) -> Chart {
    let caption = "A bar ends at the mean of a client's calls, a ring is a standard deviation above \
                   it. Loaded is at ten times the rates, with work for each call and the CPU busy.";
    let shown = [Mode::Scaled, Mode::Paper];
    let shown = shown
        .into_iter()
        .flat_map(|mode| [Class::Fifo, Class::Other].map(|of| (of, mode)));
    let series = shown.flat_map(|(class, mode)| {
        let four = outcome
            .four(class, mode)
            .map(|four| four.map(|row| row.latency));
        let name = format!("{}, {}", class.name(), mode_name(mode));
        let points = |of: fn(&Summary) -> f64| {
            let rows = four.into_iter().flatten();
            let heights: Vec<_> = rows.map(|latency| Some(of(&latency))).collect();
            heights
        };
        [
            Series::of_groups(Mark::Bars, name, points(|of| of.mean_us)),
            Series::of_groups(Mark::Rings, "", points(|of| of.mean_us + of.jitter_us)),
        ]
    });
    let clients = Axis::groups(
        "the client, the most urgent first",
        ["C1", "C2", "C3", "C4"],
    );
    Chart::new(caption, clients, latency()).series(series)
}

fn rates(outcome: &Outcome) -> Table {
    let lines = outcome.rates.iter().map(|row| {
        let (class, mode) = (row.class.name(), mode_name(row.mode));
        let name = format!("{class}, {mode}, C{} at {} Hz", row.client, row.rate_hz);
        let of = row.latency;
        let times = [of.mean_us, of.jitter_us, of.p50_us, of.p99_us, of.max_us];
        (name, counted(of.calls, times))
    });
    Table::new(
        "Four clients on one CPU, C1 the most urgent",
        ["calls", "mean", "jitter", "p50", "p99", "longest"],
        lines,
    )
}

const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Paper => "idle",
        Mode::Scaled => "loaded",
    }
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let hz = |period: std::time::Duration| 1.0 / period.as_secs_f64();
    let mut notes = vec![
        format!(
            "Scheduling classes: a client of high priority calls at {:.0} Hz and {} of low priority at {:.0} Hz, each on \
             a connection of its own to the lane of its priority (one thread, and two). A call computes for {}. \
             All threads that call and serve are of the class, at the native priorities {HIGH} and {LOW}. Latencies \
             of both kinds of clients count from when a call was due. Each case was measured {} times for {}, all in \
             turn; p99 is the median of these, all else of all calls together.",
            hz(plan.high_period),
            plan.low_clients,
            hz(plan.low_period),
            units::setting(plan.work),
            plan.rounds,
            units::setting(plan.case),
        ),
        format!(
            "SCHED_DEADLINE: the threads of the high class have {URGENT} each, those of the low class {PATIENT}. The ORB \
             gives nobody a reservation: they get it from outside, after they have connected. A thread with a \
             reservation has to be free to run on all CPUs of its scheduling domain, so there are no figures of it \
             pinned.",
        ),
        format!(
            "Loads are ordinary threads, on every CPU: {} is one that computes; {} is one that computes, one that \
             writes a file and waits for its disk, and two that send each other data over the loopback interface. \
             Isolation of CPUs (isolcpus, nohz_full) is only told, not measured.",
            Load::Hogs.name(),
            Load::Mixed.name(),
        ),
        "Throttling: the setting of the machine is left as it is. Lost is the share of the time in which the thread had \
         no CPU; a host that takes the CPU away does not count as that, but makes gaps."
            .to_owned(),
        format!(
            "Context switches: two threads take {} turns. A switch is half of the time from one turn of a thread to its \
             next, with what wakes the other one, and half a look at the clock. Suspend–resume is unpark and park; \
             synchronisation is a semaphore on a futex, or a lock with priority inheritance that is handed over. \
             Counted by expected is how many switches the kernel has counted, by two for each turn.",
            plan.turns
        ),
        format!(
            "Context switches of requests: one client of high priority and the others of low call back to back for {}, \
             all SCHED_FIFO. Those of the threads that call and of all threads of the server are counted by the kernel.",
            units::setting(plan.counting),
        ),
        format!(
            "Scavengers: an ordinary thread counts on the CPU of the client, one on that of the server, for {} at a time, \
             {} times at each rate, beside a client that rests, that only wakes up as often, and that calls. All threads \
             of the ORB are SCHED_FIFO, so that scavengers get what is left. Of ordinary threads they have the greatest \
             weight, where that is permitted. The papers show no numbers of this test.",
            units::setting(plan.scavenging),
            plan.scavenging_rounds,
        ),
        format!(
            "Four rates: C1 to C4 call S1 to S4, lanes of one thread each, all on one CPU, at 20, 10, 5 and 1 Hz for {}; then \
             at {SCALE} times these rates for {} with {} of work for each call while ordinary threads compute on all CPUs.",
            units::setting(plan.at_paper_rates),
            units::setting(plan.at_scaled_rates),
            units::setting(plan.scaled_work),
        ),
        format!("The papers' context switches: {SOURCE}."),
    ];
    let locked = outcome.classes.iter().any(|row| row.case.memory_locked);
    notes.push(match locked {
        true => "Memory of client and server was locked, where nothing else is said.".to_owned(),
        false => "Memory could not be locked, since this process may not.".to_owned(),
    });
    if plan.rounds == 1 {
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

/// Those that the papers measured too.
const IN_PAPERS: [Switching; 3] = [
    Switching::SuspendResume,
    Switching::Yield,
    Switching::Semaphore,
];
const LEAD: &str = "The papers held the ORB and varied the operating system. Here the ORB is held, and what varies is \
     how one Linux schedules its threads.";
const CLASS_COLUMNS: [&str; 8] = [
    "calls", "mean", "jitter", "p50", "p99", "p99.9", "longest", "CPU busy",
];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("os", &outcome());
    }

    #[test]
    fn parts_that_were_not_measured_are_left_out() {
        let mut outcome = outcome();
        outcome.refused = vec![(Class::Fifo, "not permitted <here>".to_owned())];
        outcome.classes.clear();
        outcome.rates.clear();
        outcome.throttling.clear();
        outcome.switches.clear();
        outcome.requests.clear();
        outcome.scavengers.clear();
        let page = document(&outcome).html();
        assert!(page.contains("not permitted &lt;here&gt;") && !page.contains("<svg"));
        assert!(page.contains("not measured") && !page.contains("<table class=\"figures\""));
    }
}
