//! The figures as tables, and how they are to be understood.

use super::claims::megaoctets;
use super::outcome::{EchoRow, Outcome};
use super::part::Part;
use super::published;
use super::way::Way;
use crate::experiment::Findings;
use crate::inversion::{Class, Mode};
use crate::report::{Table, Telling};
use crate::stats::Record;
use crate::units;

/// What is told of the figures.
pub(super) fn telling(outcome: &Outcome) -> Telling<'_> {
    Telling {
        lead: LEAD,
        caveats: outcome.caveats(),
        claims: outcome.claims(),
        tables: tables(outcome),
        notes: notes(outcome),
        environment: &outcome.environment,
        commands: outcome.plan.commands(),
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
        caveats.push("There is but one processor: both hosts and the switch shared it.".to_owned());
    }
    for (io, why) in &outcome.missing {
        caveats.push(format!("Calls were not made with {}: {why}", io.title()));
    }
    caveats.extend(outcome.environment.stolen_caveat());
    caveats
}

/// All tables that have lines.
fn tables(outcome: &Outcome) -> Vec<Table> {
    let mut tables = vec![
        of_echoes(outcome, Part::Processing),
        of_echoes(outcome, Part::Company),
        of_bulk(outcome),
        of_flows(outcome),
    ];
    let modes = outcome.modes().into_iter();
    tables.extend(modes.map(|mode| of_calls(outcome, mode)));
    tables.retain(|table| !table.lines.is_empty());
    tables
}

/// Echoes by the way in which packets were treated, with the paper's figures beside ours.
fn of_echoes(outcome: &Outcome, part: Part) -> Table {
    let (ways, base, heading) = match part {
        Part::Company => (
            &Way::IN_COMPANY[..],
            Way::Kernel,
            "E11: echoes beside bulk traffic",
        ),
        _ => (&Way::ALONE[..], Way::Arrival, "E10: echoes"),
    };
    let ours = ways.iter().filter_map(|way| {
        let record = outcome.record(part, *way)?;
        let by = match *way == base {
            true => String::new(),
            false => outcome
                .by(part, [*way, base], |row: &EchoRow| row.latency.mean_us)
                .map_or_else(String::new, |by| by.text()),
        };
        Some((way.title().to_owned(), cells(record, by)))
    });
    let ours: Vec<_> = ours.collect();
    let papers = published::of(part).iter().map(|of| {
        let [mean, max, min, jitter] = of.figures.map(units::time);
        let none = String::new;
        let name = format!("{} (the paper's, beside {})", of.name, of.way.title());
        (name, vec![none(), mean, max, min, jitter, none(), none()])
    });
    Table {
        heading: heading.to_owned(),
        columns: columns([
            "echoes",
            "mean",
            "max",
            "min",
            "jitter",
            "p99",
            match part {
                Part::Company => "mean by kernel",
                _ => "mean by on arrival",
            },
        ]),
        lines: match ours.is_empty() {
            true => ours,
            false => ours.into_iter().chain(papers).collect(),
        },
    }
}

fn cells(record: &Record, by: String) -> Vec<String> {
    let summary = record.summary();
    let times = [
        summary.mean_us,
        summary.max_us,
        record.min_us(),
        summary.jitter_us,
        summary.p99_us,
    ];
    let calls = units::count(summary.calls);
    let times = times.map(units::time);
    [calls].into_iter().chain(times).chain([by]).collect()
}

/// Bulk traffic beside echoes.
fn of_bulk(outcome: &Outcome) -> Table {
    let lines = Way::IN_COMPANY.into_iter().filter_map(|way| {
        let of =
            |figure: fn(&EchoRow) -> Option<f64>| outcome.of_rounds(Part::Company, way, figure);
        let alone = of(|row| row.bulk_alone_octets_per_s)?;
        let beside = of(|row| row.bulk_beside_octets_per_s)?;
        let [alone, beside] = [alone, beside].map(megaoctets);
        let busy = of(|row| row.busy_percent);
        let busy = busy.map_or_else(String::new, |busy| format!("{busy:.0} %"));
        Some((way.title().to_owned(), vec![alone, beside, busy]))
    });
    Table {
        heading: "E11: bulk traffic".to_owned(),
        columns: columns(["alone", "beside echoes", "receiver's CPU, alone"]),
        lines: lines.collect(),
    }
}

/// Flows with and without reservations.
fn of_flows(outcome: &Outcome) -> Table {
    let lines = outcome.flows.iter().map(|row| {
        let name = match (row.trial, row.phase) {
            ("limit", _) => "best effort, limited".to_owned(),
            (_, "alone") => format!("{}, alone", row.flow),
            (_, "last") => format!("{}, all flows", row.flow),
            _ => format!("{}, from its beginning", row.flow),
        };
        let rates = [
            row.mean_octets_per_s,
            row.least_octets_per_s,
            row.most_octets_per_s,
        ];
        let wanted = row.wanted_octets_per_s.map_or_else(String::new, megaoctets);
        let cells = [wanted].into_iter().chain(rates.map(megaoctets));
        (name, cells.collect())
    });
    Table {
        heading: "E12: flows".to_owned(),
        columns: columns(["wanted", "mean", "least second", "most"]),
        lines: lines.collect(),
    }
}

/// Calls of the ORB in a mode.
fn of_calls(outcome: &Outcome, mode: Mode) -> Table {
    let of = |class| {
        let ios = outcome.ios().into_iter();
        ios.flat_map(move |io| outcome.series(io, mode, class))
    };
    let lines = Class::ALL.into_iter().flat_map(of).map(|row| {
        let name = format!(
            "{}, {}, {} low",
            row.class.name(),
            row.io.title(),
            row.low_clients
        );
        let latency = &row.latency;
        let times = [
            latency.mean_us,
            latency.jitter_us,
            latency.p99_us,
            latency.max_us,
        ];
        let mut cells = vec![units::count(latency.calls)];
        cells.extend(times.map(units::time));
        cells.push(format!("{:.0} %", row.server_cpu_percent));
        (name, cells)
    });
    Table {
        heading: format!("E13: calls, {mode}"),
        columns: columns(["calls", "mean", "jitter", "p99", "max", "server's CPU"]),
        lines: lines.collect(),
    }
}

fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![format!(
        "Two hosts, network namespaces, and a switch between them that forwards at most {} Mbit/s each way (E11: {}, E12: {}). The \
         server's host takes packets in on the CPU of the server, the last one; senders and the switch have the first. \
         Senders use the kernel's TCP always, and no interface leaves checksums or segmentation to others. Threads that \
         send echoes and send them back are SCHED_FIFO 50. On each CPU a thread of the least urgency keeps it from \
         sleeping.",
        super::LINK_RATE / 1_000_000,
        plan.bulk_rate / 1_000_000,
        super::guarantees::RATE / 1_000_000,
    )];
    if plan.has(Part::Company) {
        notes.push(format!(
            "Bulk traffic of E11 is sent with the congestion control {}: one that slows down where packets are lost leaves the \
             receiver idle. That of E12 is sent with reno.",
            outcome.congestion
        ));
    }
    if plan.has(Part::Processing) || plan.has(Part::Company) {
        let ways = Way::ALONE.into_iter().chain(Way::IN_COMPANY);
        let mut told = Vec::new();
        for way in ways.filter(|way| outcome.echoes.iter().any(|row| row.way == *way)) {
            if !told.contains(&way) {
                told.push(way);
                notes.push(format!("{}: {}", way.title(), way.meaning()));
            }
        }
        notes.push(format!(
            "Echoes have 64 octets, as in the paper. Every way had its turn in each of {} rounds, with processes of its own \
             ({} echoes; beside bulk traffic {}, about {} apart). Mean, longest, shortest and jitter (the standard \
             deviation) in tables are of all echoes; factors are of two turns in the same round, the median of the rounds \
             with the range in which it is in 95 of a hundred cases (bootstrap).",
            plan.rounds,
            units::count(plan.echoes.into()),
            units::count(plan.echoes_in_company.into()),
            units::setting(plan.pause),
        ));
    }
    if plan.has(Part::Processing) {
        notes.push(
            "In E10 an ordinary thread computes without end on the server's CPU in every turn: it only matters to who is \
             no more urgent."
                .to_owned(),
        );
    }
    if plan.has(Part::Company) {
        notes.push(format!(
            "In E11 another sender sends blocks of 8,000 octets without a pause, for each of which the receiver, an ordinary \
             thread, computes for {}: so it is the receiver's CPU that holds the traffic up.",
            units::setting(plan.bulk_work),
        ));
    }
    if plan.has(Part::Guarantees) {
        notes.push(
            "In E12 a packet carries a block of 8,000 octets. Reservations are budgets of 8, 4 and 2 packets in each 10 ms, \
             at descending priorities. Least and most are of any second, looked at each 10 ms; the first quarter of a step \
             after a flow's beginning does not count."
                .to_owned(),
        );
    }
    if plan.has(Part::Orb) {
        notes.push(
            "In E13 clients call the cube of an octet as in lab inversion, from when each call was due. With RIO the lane \
             of high priority processes packets on arrival, that of low priority in one ordinary thread on demand."
                .to_owned(),
        );
    }
    notes
}

pub(super) const LEAD: &str = "What it brings to tell packets apart by priority before any protocol work, and to do that \
     work in scheduled threads: the experiments of the paper on RIO, on this machine.";
