//! The figures as tables, and how they are to be understood.

use std::fmt::Write;

use super::case::Case;
use super::class::{HIGH, LOW, PATIENT, URGENT};
use super::load::Load;
use super::outcome::{Client, Mode, Outcome, Side};
use super::plan::SCALE;
use super::published::{PUBLISHED, Published, SOURCE, Time};
use super::switch::Switching;
use crate::bench::Placement;
use crate::claim;
use crate::experiment::Findings;
use crate::report::Table;
use crate::units;

/// The figures for terminals: tables, claims and notes.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = format!("{LEAD}\n\n");
    for table in all(outcome) {
        let _ = writeln!(text, "{}", table.text());
    }
    text.push_str(&claim::text(&outcome.claims()));
    text.push('\n');
    let mut notes = notes(outcome);
    notes.extend(outcome.caveats());
    for note in notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// All tables that have lines.
fn all(outcome: &Outcome) -> Vec<Table> {
    let mut tables = classes(outcome);
    tables.extend([
        throttling(outcome),
        switches(outcome),
        requests(outcome),
        scavengers(outcome),
        rates(outcome),
    ]);
    tables.retain(|table| !table.lines.is_empty());
    tables
}

/// The ORB under each class: a table for each setting.
pub(super) fn classes(outcome: &Outcome) -> Vec<Table> {
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
            let name = format!("{}, {}, {client}", class.name(), load.name());
            let latency = row.latency;
            let times = [
                latency.mean_us,
                latency.jitter_us,
                latency.p50_us,
                row.p99_of_rounds_us,
                latency.p999_us,
                latency.max_us,
            ];
            let mut cells = vec![units::count(latency.calls)];
            cells.extend(times.map(units::time));
            cells.push(format!("{:.0} %", row.cpu_busy_percent));
            (name, cells)
        });
        Table {
            lines: lines.collect(),
            columns: CLASS_COLUMNS.map(str::to_owned).to_vec(),
            heading: format!("Scheduling class, load, client: {setting}"),
        }
    };
    settings.into_iter().map(table).collect()
}

/// What throttling takes.
pub(super) fn throttling(outcome: &Outcome) -> Table {
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
    Table {
        lines: lines.collect(),
        columns: columns([
            "computed",
            "longest gap",
            "gaps of 1 ms",
            "lost",
            "given to it",
        ]),
        heading: "A SCHED_FIFO thread that computes without end".to_owned(),
    }
}

/// What a context switch costs, the papers' systems below ours.
pub(super) fn switches(outcome: &Outcome) -> Table {
    let ours = outcome.switches.iter().map(|row| {
        let name = match row.cpus {
            1 => format!("{}, one CPU", row.switching.name()),
            _ => format!("{}, two CPUs", row.switching.name()),
        };
        let mut cells: Vec<String> = [
            row.mean_us,
            row.deviation_us,
            row.p50_us,
            row.p99_us,
            row.max_us,
        ]
        .map(units::time)
        .to_vec();
        cells.push(format!("{:.2}", row.counted_by_expected));
        (name, cells)
    });
    Table {
        lines: ours.collect(),
        columns: columns([
            "mean",
            "std. deviation",
            "p50",
            "p99",
            "longest",
            "counted by expected",
        ]),
        heading: "A context switch between SCHED_FIFO threads of equal priority".to_owned(),
    }
}

/// The papers' table, with ours as its last line.
pub(super) fn beside_the_papers(outcome: &Outcome) -> Table {
    let cell = |time: Time| match time {
        Some((mean, Some(deviation))) => format!("{mean} ({deviation})"),
        Some((mean, None)) => format!("{mean}"),
        None => "–".to_owned(),
    };
    let mut lines: Vec<_> = PUBLISHED
        .iter()
        .map(|of: &Published| {
            let cells = IN_PAPERS.map(|switching| cell(of.of(switching)));
            (of.system.to_owned(), cells.to_vec())
        })
        .collect();
    let ours = IN_PAPERS.map(|switching| {
        let row = outcome.switch(switching, 1);
        row.map_or_else(
            || "–".to_owned(),
            |row| format!("{:.2} ({:.2})", row.mean_us, row.deviation_us),
        )
    });
    lines.push(("this Linux".to_owned(), ours.to_vec()));
    Table {
        lines,
        columns: columns(["suspend–resume", "yield", "synchronisation"]),
        heading: "Context switch in µs: mean (standard deviation)".to_owned(),
    }
}

/// Context switches of requests.
pub(super) fn requests(outcome: &Outcome) -> Table {
    let lines = outcome.requests.iter().map(|row| {
        let both = row.client_switches_per_request + row.server_switches_per_request;
        let clients = match row.clients {
            1 => "1 client".to_owned(),
            clients => format!("{clients} clients"),
        };
        let name = format!("{}, {clients}", place(row.placement));
        let cells = vec![
            units::count(row.requests),
            format!("{:.2}", row.client_switches_per_request),
            format!("{:.2}", row.server_switches_per_request),
            format!("{both:.2}"),
        ];
        (name, cells)
    });
    Table {
        lines: lines.collect(),
        columns: columns(["requests", "client", "server", "both"]),
        heading: "Context switches for each request, calls back to back".to_owned(),
    }
}

/// What is left of processors.
pub(super) fn scavengers(outcome: &Outcome) -> Table {
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
    Table {
        lines: lines.collect(),
        columns: columns([
            "requests",
            "left by calls",
            "left by wake-ups alone",
            "CPU a request",
            "without its wake-up",
        ]),
        heading: "What a scavenger gets of the CPU of".to_owned(),
    }
}

/// Four clients at four rates.
pub(super) fn rates(outcome: &Outcome) -> Table {
    let lines = outcome.rates.iter().map(|row| {
        let mode = match row.mode {
            Mode::Paper => "idle",
            Mode::Scaled => "loaded",
        };
        let name = format!(
            "{}, {mode}, C{} at {} Hz",
            row.class.name(),
            row.client,
            row.rate_hz
        );
        let latency = row.latency;
        let times = [
            latency.mean_us,
            latency.jitter_us,
            latency.p50_us,
            latency.p99_us,
            latency.max_us,
        ];
        let mut cells = vec![units::count(latency.calls)];
        cells.extend(times.map(units::time));
        (name, cells)
    });
    Table {
        lines: lines.collect(),
        columns: columns(["calls", "mean", "jitter", "p50", "p99", "longest"]),
        heading: "Four clients on one CPU, C1 the most urgent".to_owned(),
    }
}

/// How the figures are to be understood, in sentences.
pub(super) fn notes(outcome: &Outcome) -> Vec<String> {
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

fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// Those that the papers measured too.
pub(super) const IN_PAPERS: [Switching; 3] = [
    Switching::SuspendResume,
    Switching::Yield,
    Switching::Semaphore,
];
pub(super) const LEAD: &str = "The papers held the ORB and varied the operating system. Here the ORB is held, and what varies is \
     how one Linux schedules its threads.";
const CLASS_COLUMNS: [&str; 8] = [
    "calls", "mean", "jitter", "p50", "p99", "p99.9", "longest", "CPU busy",
];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn every_part_has_a_table() {
        let text = text(&outcome());
        for part in [
            "Scheduling class, load, client: free ",
            "Scheduling class, load, client: pinned apart",
            "Scheduling class, load, client: free, memory not locked",
            "SCHED_DEADLINE, hogs and I/O, low",
            "an ordinary thread wants the CPU",
            "suspend–resume, two CPUs",
            "one CPU, 1 client ",
            "server, 4000 Hz",
            "SCHED_OTHER, loaded, C4 at 1 Hz",
            "500µs within 2ms of each 2ms",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        assert!(!text.contains("short run"));
    }

    #[test]
    fn ours_stands_below_what_was_published() {
        let table = beside_the_papers(&outcome());
        let line = |name: &str| {
            let mut lines = table.lines.iter();
            lines.find(|(of, _)| of == name).unwrap().1.clone()
        };
        assert_eq!(line("VxWorks"), ["15.4 (0.294)", "–", "40"]);
        assert_eq!(
            line("this Linux"),
            ["1.50 (0.25)", "0.75 (0.25)", "1.75 (0.25)"]
        );
        assert_eq!(table.lines.last().unwrap().0, "this Linux");
    }
}
