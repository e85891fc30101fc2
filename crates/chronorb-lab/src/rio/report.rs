//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, counted, units};

use super::RealTimeIo;
use super::calls::Io;
use super::claims::megaoctets;
use super::outcome::{CallRow, EchoRow, Outcome};
use super::part::Part;
use super::published;
use super::way::Way;
use crate::experiment::Experiment;
use crate::inversion::{ClientClass, Mode};
use crate::report::{begin, curve, end, largest, latency};
use crate::stats::{Record, Summary};

pub(super) fn document(outcome: &Outcome) -> Document {
    let (processing, company) = (Part::Processing, Part::Company);
    let document = begin(outcome, LEAD)
        .part(
            "E10: the costs of scheduled processing",
            [
                distribution(outcome, processing),
                by_percentile(outcome, processing),
            ],
            [of_echoes(outcome, processing)],
        )
        .part(
            "E11: low latency beside bulk traffic",
            [
                distribution(outcome, company),
                by_percentile(outcome, company),
                courses(outcome, company),
            ],
            [of_echoes(outcome, company), of_bulk(outcome)],
        )
        .part(
            "E12: guarantees of bandwidth",
            [courses(outcome, Part::Guarantees)],
            [of_flows(outcome)],
        );
    let modes = outcome.modes().into_iter();
    let document = modes.fold(document, |document, mode| {
        let charts = Figure::ALL.map(|figure| by_clients(outcome, mode, figure));
        let heading = format!("E13: the ORB with RIO below it, {mode}");
        document.part(heading, charts, [of_calls(outcome, mode)])
    });
    end(
        document,
        notes(outcome),
        &outcome.environment,
        &outcome.plan.commands(),
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let of = |way, figure: fn(&EchoRow) -> f64| {
        outcome.of_rounds(Part::Company, way, |row| Some(figure(row)))
    };
    let told = |figure: fn(&EchoRow) -> f64| {
        let [kernel, classes] = [Way::Kernel, Way::Classes].map(|way| of(way, figure));
        Some((units::time(kernel?), units::time(classes?)))
    };
    let mean = told(|row| row.latency.mean_us);
    let max = told(|row| row.latency.max_us);
    match mean.zip(max) {
        Some((mean, max)) => format!(
            "Beside bulk traffic an echo takes {} by the kernel and {} by RIO, at the longest {} and {}",
            mean.0, mean.1, max.0, max.1
        ),
        None => RealTimeIo::TITLE.to_owned(),
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

/// The distribution of the latency of echoes, as figures 15 and 17.
fn distribution(outcome: &Outcome, part: Part) -> Chart {
    let caption = "The shares of echoes by their latency, but for the slowest hundredth, as the paper's \
                   figures 15 and 17.";
    let top = largest(records(outcome, part).map(|(_, record)| record.quantile_us(SHOWN)));
    let series = records(outcome, part).map(|(way, record)| {
        let points = record.distribution(top / STEPS, SHOWN).into_iter();
        Series::new(
            mark(way),
            way.title(),
            points.map(|(us, share)| (us, share * 100.0)),
        )
    });
    let shares = Axis::linear("share of echoes", Unit::Percent);
    Chart::new(caption, Axis::linear("latency", Unit::Time), shares).series(series)
}

fn by_percentile(outcome: &Outcome, part: Part) -> Chart {
    let caption = "Latency by percentile, all rounds together. To the right each step is ten times \
                   rarer; a line ends at the longest.";
    let series = records(outcome, part).map(|(way, record)| curve(mark(way), way.title(), record));
    Chart::new(
        caption,
        Axis::percentiles("percentile of the echoes"),
        latency(),
    )
    .series(series)
}

/// The ways that a part compares, each with its echoes.
fn records(outcome: &Outcome, part: Part) -> impl Iterator<Item = (Way, &Record)> {
    let ways = Way::of(part).iter();
    ways.filter_map(move |way| Some((*way, outcome.record(part, *way)?)))
}

fn mark(way: Way) -> Mark {
    match way {
        Way::Kernel => Mark::Dashes,
        _ => Mark::Line,
    }
}

/// The rates of flows over time, as figures 18 and 19.
fn courses(outcome: &Outcome, part: Part) -> Chart {
    let caption = match part {
        Part::Company => {
            "Bulk traffic in the first round, before, beside and after the echoes, as the paper's \
             figure 18."
        }
        _ => "The octets that each flow received, as the paper's figure 19.",
    };
    let courses = outcome.courses.iter().filter(|course| course.part == part);
    let series = courses.map(|course| {
        let points = course.points.iter().map(|(s, octets)| (*s, octets / 1e6));
        Series::new(Mark::Line, course.name.clone(), points)
    });
    let time = Axis::linear("time", Unit::Of("s"));
    Chart::new(caption, time, Axis::linear("rate", Unit::Of("MB/s"))).series(series)
}

/// A figure of calls by the number of low-priority clients, as figures 22 to 24.
fn by_clients(outcome: &Outcome, mode: Mode, figure: Figure) -> Chart {
    let (caption, axis, classes, of): (_, _, &[ClientClass], fn(&CallRow) -> f64) = match figure {
        Figure::Means => (
            "The mean latency of both classes, as the paper's figure 22.",
            "mean latency",
            &ClientClass::ALL,
            |row| row.latency.mean_us,
        ),
        Figure::High => (
            "The mean latency of the high-priority client, as the paper's figure 23.",
            "mean latency",
            &[ClientClass::High],
            |row| row.latency.mean_us,
        ),
        Figure::Jitter => (
            "Its jitter, the bars of the paper's figure 23.",
            "jitter",
            &[ClientClass::High],
            |row| row.latency.jitter_us,
        ),
        Figure::Low => (
            "The mean latency of the low-priority clients, as the paper's figure 24.",
            "mean latency",
            &[ClientClass::Low],
            |row| row.latency.mean_us,
        ),
    };
    let series = outcome.ios().into_iter().flat_map(|io| {
        classes.iter().map(move |class| {
            let name = match classes {
                [_] => io.title().to_owned(),
                _ => format!("{}, {}", class.name(), io.title()),
            };
            let mark = match class {
                ClientClass::High => Mark::Line,
                ClientClass::Low => Mark::Dashes,
            };
            let rows = outcome.series(io, mode, *class);
            let points = rows.iter().map(|row| (f64::from(row.low_clients), of(row)));
            Series::new(mark, name, points).colour(colour(io))
        })
    });
    let clients = Axis::linear("low-priority clients", Unit::Count);
    Chart::new(caption, clients, Axis::linear(axis, Unit::Time)).series(series)
}

/// The charts of calls.
#[derive(Clone, Copy, Debug)]
enum Figure {
    Means,
    High,
    Jitter,
    Low,
}

impl Figure {
    const ALL: [Self; 4] = [Self::Means, Self::High, Self::Jitter, Self::Low];
}

const fn colour(io: Io) -> usize {
    match io {
        Io::Rio => 0,
        Io::Kernel => 1,
        Io::KernelDriver => 2,
    }
}

/// Echoes by the way in which packets were treated, with the paper's figures below ours.
fn of_echoes(outcome: &Outcome, part: Part) -> Table {
    let (base, heading, by) = match part {
        Part::Company => (
            Way::Kernel,
            "E11: echoes beside bulk traffic",
            "mean by kernel",
        ),
        _ => (Way::Arrival, "E10: echoes", "mean by on arrival"),
    };
    let ours = records(outcome, part).map(|(way, record)| {
        let mean = |row: &EchoRow| row.latency.mean_us;
        let by = outcome.by(part, [way, base], mean);
        let by = by
            .filter(|_| way != base)
            .map_or_else(String::new, |by| by.text());
        let Summary {
            calls,
            mean_us,
            max_us,
            jitter_us,
            p99_us,
            ..
        } = record.summary();
        let mut cells = counted(calls, [mean_us, max_us, record.min_us(), jitter_us, p99_us]);
        cells.push(by);
        (way.title().to_owned(), cells)
    });
    let mut lines: Vec<_> = ours.collect();
    if !lines.is_empty() {
        lines.extend(published::of(part).iter().map(|of| {
            let name = format!("{} (the paper's, beside {})", of.name, of.way.title());
            let times = of.figures.map(units::time).into_iter();
            let none = || [String::new()].into_iter();
            (
                name,
                none().chain(times).chain(none()).chain(none()).collect(),
            )
        }));
    }
    let columns = ["echoes", "mean", "max", "min", "jitter", "p99", by];
    Table::new(heading, columns, lines)
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
    let columns = ["alone", "beside echoes", "receiver's CPU, alone"];
    Table::new("E11: bulk traffic", columns, lines)
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
    Table::new(
        "E12: flows",
        ["wanted", "mean", "least second", "most"],
        lines,
    )
}

/// Calls of the ORB in a mode.
fn of_calls(outcome: &Outcome, mode: Mode) -> Table {
    let of = |class| {
        let ios = outcome.ios().into_iter();
        ios.flat_map(move |io| outcome.series(io, mode, class))
    };
    let lines = ClientClass::ALL.into_iter().flat_map(of).map(|row| {
        let (class, io) = (row.class.name(), row.io.title());
        let of = &row.latency;
        let mut cells = counted(of.calls, [of.mean_us, of.jitter_us, of.p99_us, of.max_us]);
        cells.push(format!("{:.0} %", row.server_cpu_percent));
        (format!("{class}, {io}, {} low", row.low_clients), cells)
    });
    let columns = ["calls", "mean", "jitter", "p99", "max", "server's CPU"];
    Table::new(format!("E13: calls, {mode}"), columns, lines)
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

const LEAD: &str = "What it brings to tell packets apart by priority before any protocol work, and to do that \
     work in scheduled threads: the experiments of the paper on RIO, on this machine.";
/// The share of echoes that a distribution shows: the rest is too far to the right.
const SHOWN: f64 = 0.99;
/// Steps of a distribution.
const STEPS: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("rio", &outcome());
    }
}
