//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, counted, units};
use serde_json::{Value, json};

use super::calls::Io;
use super::claims::{self, megaoctets};
use super::outcome::{CallRow, EchoRow, FlowRow, RioOutcome};
use super::packets::{Load, PacketRow};
use super::path::PacketPath;
use super::plan::RioPart;
use super::stages::{STAGES, StageRow};
use super::{LINK_RATE, RealTimeIo, guarantees};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::inversion::{ClientClass, Mode};
use crate::report::rounds::over_rounds;
use crate::report::{Column, begin, by_percentile, curve, end, largest, rights, table_of};
use crate::stats::{Record, Summary, median};

impl Findings for RioOutcome {
    fn headline(&self) -> String {
        let of = |path, figure: fn(&EchoRow) -> f64| {
            let figure = self.of_rounds(RioPart::Company, path, |row| Some(figure(row)));
            figure.map(units::time)
        };
        let both = |figure| of(PacketPath::Kernel, figure).zip(of(PacketPath::Classes, figure));
        let mean = both(|row| row.latency.mean_us);
        let max = both(|row| row.latency.max_us);
        match mean.zip(max) {
            Some(((kernel, rio), (kernel_max, rio_max))) => format!(
                "Beside bulk traffic an echo takes {kernel} by the kernel and {rio} by RIO, at the \
                 longest {kernel_max} and {rio_max}"
            ),
            None => RealTimeIo::TITLE.to_owned(),
        }
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = rights::caveats(self.real_time, self.one_cpu, &self.environment);
        if let Some(why) = &self.untraced {
            caveats.push(format!("Calls were not traced: {why}"));
        }
        for (io, why) in &self.missing {
            caveats.push(format!("Calls were not made with {}: {why}", io.title()));
        }
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        let more = json!({"rows": self.rows(), "missing": self.missing});
        figures(RealTimeIo::NAME, self, more)
    }

    fn document(&self) -> Document {
        let charts = |part| [distribution(self, part), curves(self, part)];
        let (processing, company) = (RioPart::Processing, RioPart::Company);
        let mut document = begin(self, LEAD)
            .part(
                "E10: the costs of scheduled processing",
                charts(processing),
                [of_echoes(self, processing)],
            )
            .part(
                "E11: low latency beside bulk traffic",
                charts(company).into_iter().chain([rates(self, company)]),
                [of_echoes(self, company), of_bulk(self)],
            )
            .part(
                "E12: guarantees of bandwidth",
                [rates(self, RioPart::Guarantees)],
                [of_flows(self)],
            );
        for mode in self.modes() {
            let charts = CALL_CHARTS.map(|chart| by_clients(self, mode, chart));
            let heading = format!("E13: the ORB with RIO below it, {mode}");
            document = document.part(heading, charts, [of_calls(self, mode)]);
        }
        if self.plan.has(RioPart::Packets) {
            document = document.part(
                "E13 loaded with packets",
                PACKET_CHARTS.map(|chart| beside_packets(self, chart)),
                [of_packets(self)],
            );
        }
        if self.plan.has(RioPart::Stages) {
            let heading = "The stages of a call at the server";
            document = document.part(heading, [stages(self)], [of_stages(self), counts(self)]);
        }
        let commands = self.plan.commands();
        end(document, notes(self), &self.environment, &commands)
    }
}

/// Returns the distribution of the latency of echoes, as figures 15 and 17.
fn distribution(outcome: &RioOutcome, part: RioPart) -> Chart {
    let caption = "The shares of echoes by their latency, but for the slowest hundredth, as the \
                   paper's figures 15 and 17.";
    let top = largest(records(outcome, part).map(|(_, record)| record.quantile_us(SHOWN)));
    let series = records(outcome, part).map(|(path, record)| {
        let points = record.distribution(top / STEPS, SHOWN).into_iter();
        let points = points.map(|(us, share)| (us, share * 100.0));
        Series::new(mark(path), path.title(), points)
    });
    let shares = Axis::linear("share of echoes", Unit::Percent);
    Chart::new(caption, Axis::linear("latency", Unit::Time), shares).series(series)
}

/// Returns the latency of echoes by percentile.
fn curves(outcome: &RioOutcome, part: RioPart) -> Chart {
    let records = records(outcome, part);
    by_percentile(
        "echoes",
        records.map(|(path, record)| curve(mark(path), path.title(), record)),
    )
}

/// Returns the paths that a part compares, each with its echoes.
fn records(outcome: &RioOutcome, part: RioPart) -> impl Iterator<Item = (PacketPath, &Record)> {
    let paths = PacketPath::of(part).iter();
    paths.filter_map(move |path| Some((*path, outcome.pooled.get((part, *path))?)))
}

fn mark(path: PacketPath) -> Mark {
    match path {
        PacketPath::Kernel => Mark::Dashes,
        _ => Mark::Line,
    }
}

/// Returns the rates of flows over time, as figures 18 and 19.
fn rates(outcome: &RioOutcome, part: RioPart) -> Chart {
    let caption = match part {
        RioPart::Company => {
            "Bulk traffic in the first round, before, beside and after the echoes, as the paper's \
             figure 18."
        }
        _ => "The octets that each flow received, as the paper's figure 19.",
    };
    let curves = outcome.curves.iter().filter(|curve| curve.part == part);
    let series = curves.map(|curve| {
        let points = curve.points.iter().map(|(s, octets)| (*s, octets / 1e6));
        Series::new(Mark::Line, curve.name.clone(), points)
    });
    let time = Axis::linear("time", Unit::Of("s"));
    Chart::new(caption, time, Axis::linear("rate", Unit::Of("MB/s"))).series(series)
}

/// A chart of calls: its figure in the paper, the classes, and the name and value of the figure.
type CallChart = (
    u32,
    &'static [ClientClass],
    &'static str,
    fn(&CallRow) -> f64,
);

const CALL_CHARTS: [CallChart; 4] = [
    (22, &ClientClass::ALL, "mean latency", MEAN),
    (23, &[ClientClass::High], "mean latency", MEAN),
    (23, &[ClientClass::High], "jitter", |row| {
        row.latency.jitter_us
    }),
    (24, &[ClientClass::Low], "mean latency", MEAN),
];
const MEAN: fn(&CallRow) -> f64 = |row| row.latency.mean_us;

/// Returns a figure of calls by the number of low-priority clients.
fn by_clients(outcome: &RioOutcome, mode: Mode, (number, classes, axis, of): CallChart) -> Chart {
    let clients = match classes {
        [ClientClass::High] => "the high-priority client",
        [ClientClass::Low] => "the low-priority clients",
        _ => "both classes",
    };
    let caption = format!("The {axis} of {clients}, as the paper's figure {number}.");
    // RIO has the first colour.
    let ios = [Io::Rio, Io::Kernel, Io::KernelDriver]
        .into_iter()
        .enumerate();
    let series = ios.flat_map(|(colour, io)| {
        classes.iter().filter_map(move |class| {
            let name = match classes {
                [_] => io.title().to_owned(),
                _ => format!("{class}, {}", io.title()),
            };
            let mark = match class {
                ClientClass::High => Mark::Line,
                ClientClass::Low => Mark::Dashes,
            };
            let rows = outcome.series(io, mode, *class);
            let points = rows.iter().map(|row| (f64::from(row.low_clients), of(row)));
            let series = Series::new(mark, name, points).colour(colour);
            (!rows.is_empty()).then_some(series)
        })
    });
    let clients = Axis::linear("low-priority clients", Unit::Count);
    Chart::new(caption, clients, Axis::linear(axis, Unit::Time)).series(series)
}

/// Returns the echoes by path, with the paper's figures below ours.
fn of_echoes(outcome: &RioOutcome, part: RioPart) -> Table {
    let (base, heading, by, published): (_, _, _, &[PublishedEchoes]) = match part {
        RioPart::Company => (
            PacketPath::Kernel,
            "beside bulk traffic",
            "kernel",
            &COMPANY,
        ),
        _ => (PacketPath::Arrival, "alone", "on arrival", &PROCESSING),
    };
    let ours = records(outcome, part).map(|(path, record)| {
        let by = outcome.by(part, [path, base], |row| row.latency.mean_us);
        let by = by.filter(|_| path != base);
        let of = record.summary();
        let times = [
            of.mean_us,
            of.max_us,
            record.min_us(),
            of.jitter_us,
            of.p99_us,
        ];
        let mut cells = counted(of.calls, times);
        cells.push(by.map_or_else(String::new, |by| by.text()));
        (path.title().to_owned(), cells)
    });
    let mut lines: Vec<_> = ours.collect();
    if !lines.is_empty() {
        lines.extend(published.iter().map(|(name, path, times)| {
            let name = format!("{name} (the paper's, beside {})", path.title());
            let [mean, max, min, jitter] = times.map(units::time);
            let none = String::new;
            (name, vec![none(), mean, max, min, jitter, none(), none()])
        }));
    }
    let by = format!("mean by {by}");
    let columns = ["echoes", "mean", "max", "min", "jitter", "p99", &by];
    let number = if part == RioPart::Company {
        "E11"
    } else {
        "E10"
    };
    Table::new(format!("{number}: echoes {heading}"), columns, lines)
}

/// Echoes of the paper: their name, our path beside them, and mean, maximum, minimum and jitter in
/// µs.
type PublishedEchoes = (&'static str, PacketPath, [f64; 4]);

/// Section 4.2.2: 10,000 samples.
const PROCESSING: [PublishedEchoes; 3] = [
    (
        "Solaris, default",
        PacketPath::Kernel,
        [653.0, 807.0, 613.0, 19.6],
    ),
    (
        "RIO, RT kthreads",
        PacketPath::Scheduled,
        [665.0, 824.0, 620.0, 18.8],
    ),
    (
        "RIO, SYS kthreads",
        PacketPath::WrongClass,
        [799.0, 1014.0, 729.0, 38.0],
    ),
];
/// Section 4.2.3: 1,000 samples.
const COMPANY: [PublishedEchoes; 2] = [
    (
        "Solaris, default",
        PacketPath::Kernel,
        [1072.0, 3158.0, 594.0, 497.0],
    ),
    ("RIO", PacketPath::Classes, [946.0, 2038.0, 616.0, 282.0]),
];

/// Returns the bulk traffic beside echoes.
fn of_bulk(outcome: &RioOutcome) -> Table {
    let lines = PacketPath::IN_COMPANY.into_iter().filter_map(|path| {
        let of =
            |figure: fn(&EchoRow) -> Option<f64>| outcome.of_rounds(RioPart::Company, path, figure);
        let alone = megaoctets(of(|row| row.bulk_alone_octets_per_s)?);
        let beside = megaoctets(of(|row| row.bulk_beside_octets_per_s)?);
        let busy = of(|row| row.busy_percent);
        let busy = busy.map_or_else(String::new, |busy| format!("{busy:.0} %"));
        Some((path.title().to_owned(), vec![alone, beside, busy]))
    });
    let columns = ["alone", "beside echoes", "receiver's CPU, alone"];
    Table::new("E11: bulk traffic", columns, lines)
}

/// Returns the flows with and without reservations.
fn of_flows(outcome: &RioOutcome) -> Table {
    let lines = outcome.flows.iter().map(|row| {
        let name = match (row.trial, row.phase) {
            ("limit", _) => "best effort, limited".to_owned(),
            (_, "alone") => format!("{}, alone", row.flow),
            (_, "last") => format!("{}, all flows", row.flow),
            _ => format!("{}, from its beginning", row.flow),
        };
        (name, Some(row))
    });
    let columns: [Column<FlowRow>; 4] = [
        ("wanted", |row| {
            row.wanted_octets_per_s.map_or_else(String::new, megaoctets)
        }),
        ("mean", |row| megaoctets(row.mean_octets_per_s)),
        ("least second", |row| megaoctets(row.least_octets_per_s)),
        ("most", |row| megaoctets(row.most_octets_per_s)),
    ];
    table_of("E12: flows", &columns, lines)
}

/// Returns the calls of the ORB in a mode.
fn of_calls(outcome: &RioOutcome, mode: Mode) -> Table {
    let of = |class| {
        Io::ALL
            .into_iter()
            .flat_map(move |io| outcome.series(io, mode, class))
    };
    let lines = ClientClass::ALL.into_iter().flat_map(of).map(|row| {
        let name = format!("{}, {}, {} low", row.class, row.io.title(), row.low_clients);
        (name, Some(row))
    });
    let columns: [Column<CallRow>; 6] = [
        ("calls", |row| units::count(row.latency.calls)),
        ("mean", |row| units::time(row.latency.mean_us)),
        ("jitter", |row| units::time(row.latency.jitter_us)),
        ("p99", |row| units::time(row.latency.p99_us)),
        ("max", |row| units::time(row.latency.max_us)),
        ("server's CPU", |row| {
            format!("{:.0} %", row.server_cpu_percent)
        }),
    ];
    table_of(format!("E13: calls, {mode}"), &columns, lines)
}

/// A chart of calls beside bulk data: the class, and the name and value of the figure.
type PacketChart = (ClientClass, &'static str, fn(&PacketRow) -> f64);

const PACKET_CHARTS: [PacketChart; 3] = [
    (ClientClass::High, "mean latency", |row| row.latency.mean_us),
    (ClientClass::High, "jitter", |row| row.latency.jitter_us),
    (ClientClass::Low, "mean latency", |row| row.latency.mean_us),
];

/// Returns a figure of calls beside bulk data by the number of low-priority clients.
fn beside_packets(outcome: &RioOutcome, (class, axis, of): PacketChart) -> Chart {
    let caption = format!("The {axis} of {class}-priority calls beside bulk data.");
    let ios = [Io::Rio, Io::Kernel, Io::KernelDriver].into_iter();
    let series = ios.enumerate().filter_map(|(colour, io)| {
        let points = outcome
            .plan
            .packet_clients
            .iter()
            .filter_map(|low_clients| {
                let turns = outcome.packet_turns(io, (Load::Bulk, *low_clients), class);
                Some((f64::from(*low_clients), median(turns.map(of))?))
            });
        let points: Vec<_> = points.collect();
        let series = Series::new(Mark::Line, io.title(), points.clone()).colour(colour);
        (!points.is_empty()).then_some(series)
    });
    let clients = Axis::linear("low-priority clients", Unit::Count);
    Chart::new(caption, clients, Axis::linear(axis, Unit::Time)).series(series)
}

/// Returns the calls beside bulk data: medians over the rounds.
fn of_packets(outcome: &RioOutcome) -> Table {
    let cases = outcome.plan.packet_cases().into_iter();
    let lines = cases.flat_map(|case| {
        ClientClass::ALL.into_iter().flat_map(move |class| {
            Io::ALL
                .into_iter()
                .filter_map(move |io| packet_line(outcome, case, class, io))
        })
    });
    let columns = [
        "calls",
        "mean",
        "jitter",
        "p99",
        "max",
        "mean by kernel",
        "jitter by kernel",
        "bulk",
        "server's CPU",
    ];
    Table::new(
        "E13 loaded with packets: calls",
        columns,
        lines.collect::<Vec<_>>(),
    )
}

fn packet_line(
    outcome: &RioOutcome,
    case: (Load, u32),
    class: ClientClass,
    io: Io,
) -> Option<(String, Vec<String>)> {
    let (load, low_clients) = case;
    let turns = || outcome.packet_turns(io, case, class);
    let latencies: Vec<Summary> = turns().map(|row| row.latency).collect();
    let all = over_rounds(latencies.iter())?;
    let by = |figure| {
        let by = outcome.by_default(io, case, class, figure);
        let by = by.filter(|_| io != Io::Kernel);
        by.map_or_else(String::new, |by| by.text())
    };
    let bulk = median(turns().filter_map(|row| row.bulk_octets_per_s));
    let busy = median(turns().filter_map(|row| row.busy_percent));
    let load = match load {
        Load::Quiet => "quiet",
        Load::Bulk => "bulk",
    };
    let cells = vec![
        units::count(all.calls),
        units::time(all.mean_us),
        units::time(all.jitter_us),
        units::time(all.p99_us),
        units::time(all.max_us),
        by(|row| row.latency.mean_us),
        by(|row| row.latency.jitter_us),
        bulk.map_or_else(String::new, megaoctets),
        busy.map_or_else(String::new, |busy| format!("{busy:.0} %")),
    ];
    Some((
        format!("{load}, {low_clients} low, {class}, {}", io.title()),
        cells,
    ))
}

/// Returns the times of the stages of a call, by path.
fn stages(outcome: &RioOutcome) -> Chart {
    let caption = "The time from the request's packet to the reply's at the server, by stage.";
    let names = outcome.stages.iter().map(StageRow::title);
    let series = STAGES.into_iter().enumerate().map(|(stage, name)| {
        let times = outcome.stages.iter();
        let times = times.map(|row| Some(row.stages_us()[stage]));
        Series::of_groups(Mark::Bars, name, times)
    });
    let paths = Axis::groups("path", names);
    let time = Axis::linear("time", Unit::Time);
    Chart::new(caption, paths, time).series(series).stacked()
}

/// Returns the times of the stages of a call.
fn of_stages(outcome: &RioOutcome) -> Table {
    let lines = outcome.stages.iter().map(|row| {
        let mut cells = vec![units::count(row.all.calls)];
        cells.extend(row.stages_us().map(units::time));
        let of_all = [row.all.mean_us, row.all.jitter_us, row.all.p99_us];
        cells.extend([row.whole_us(), row.system_us].map(units::time));
        cells.extend(of_all.map(units::time));
        (row.title(), cells)
    });
    let columns = ["calls"].into_iter().chain(STAGES);
    let columns = columns.chain([
        "whole",
        "in system calls",
        "mean of all",
        "jitter of all",
        "p99 of all",
    ]);
    Table::new("The stages of a call", columns, lines.collect::<Vec<_>>())
}

/// Returns the counts of a call.
fn counts(outcome: &RioOutcome) -> Table {
    let lines = outcome.stages.iter();
    let lines = lines.map(|row| (row.title(), Some(row)));
    let columns: [Column<StageRow>; 8] = [
        ("system calls", |row| format!("{:.1}", row.system_calls)),
        ("these are", |row| row.system_calls_by_name.clone()),
        ("wake-ups", |row| format!("{:.1}", row.wake_ups)),
        ("switches", |row| format!("{:.1}", row.switches)),
        ("all system calls", |row| {
            format!("{:.1}", row.all_system_calls)
        }),
        ("all wake-ups", |row| format!("{:.1}", row.all_wake_ups)),
        ("packets in", |row| format!("{:.1}", row.packets_in)),
        ("packets out", |row| format!("{:.1}", row.packets_out)),
    ];
    table_of("The counts of a call", &columns, lines)
}

/// Returns the notes on how to read the figures.
fn notes(outcome: &RioOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![format!(
        "Two hosts, network namespaces, and a switch between them that forwards at most {} Mbit/s \
         each way (E11: {}, E12: {}). The server has the last CPU and takes packets in there; \
         senders and the switch have the first. Senders use the kernel's TCP always, and no \
         interface leaves checksums or segmentation to others. Threads of echoes are SCHED_FIFO \
         50. On each CPU a thread of the least urgency keeps it from sleeping.",
        LINK_RATE / 1_000_000,
        plan.bulk_rate / 1_000_000,
        guarantees::RATE / 1_000_000,
    )];
    if !outcome.echoes.is_empty() {
        let mut told: Vec<PacketPath> = Vec::new();
        for path in outcome.echoes.iter().map(|row| row.path) {
            if !told.contains(&path) {
                told.push(path);
                notes.push(format!("{}: {}", path.title(), path.meaning()));
            }
        }
        notes.push(format!(
            "Echoes have 64 octets, as in the paper. Every path had its turn in each of {} rounds, \
             with processes of its own ({} echoes; beside bulk traffic {}, about {} apart). \
             Factors are of two turns in the same round, the median of the rounds with its \
             interval of 95 % (bootstrap); all other figures are of all echoes. Jitter is the \
             standard deviation.",
            plan.rounds,
            units::count(plan.echoes.into()),
            units::count(plan.echoes_in_company.into()),
            units::setting(plan.pause),
        ));
    }
    let processing = "In E10 an ordinary thread computes without end on the server's CPU: it only \
                      matters to threads that are no more urgent.";
    let company = format!(
        "In E11 another sender sends blocks of 8,000 octets without a pause, for each of which the \
         receiver, an ordinary thread, computes for {}, so its CPU holds the traffic up. Bulk \
         traffic has the congestion control {}, since one that slows down where packets are lost \
         leaves the receiver idle; that of E12 has reno.",
        units::setting(plan.bulk_work),
        outcome.congestion,
    );
    let guarantees = "In E12 a packet carries a block of 8,000 octets. Reservations are budgets of \
                      8, 4 and 2 packets in each 10 ms, at descending priorities. Least and most \
                      are of any second; the first quarter of a step after a flow's beginning does \
                      not count.";
    let orb = "In E13 clients call as in lab inversion, from when each call was due. With RIO the \
               lane of high priority processes packets on arrival, that of low priority in one \
               ordinary thread on demand.";
    let threads = match outcome.receiving_threads {
        Some(0) | None => "whose interface has no threads that receive".to_owned(),
        Some(number) => format!("with {number} thread(s) of SCHED_FIFO 75 that receive (NAPI)"),
    };
    let packets = format!(
        "E13 loaded with packets has a third lane, of ordinary priority, for oneway messages of \
         8,000 octets, which a client sends without a pause. The servant computes for {} for \
         each. The high-priority client calls 200 times a second, those of low priority 10 times. \
         With RIO each lane has a class whose packets its thread processes on arrival. The kernel \
         with a plan merges received packets (GRO) and keeps HTB's queues, {threads}. Busy polling \
         is left out: an urgent thread that polls leaves the only CPU of the server to no other \
         thread.",
        units::setting(plan.bulk_work),
    );
    let stages = "Stages are traced by the kernel (ftrace) on the server's CPU, without \
                  low-priority clients, at the paper's 20 calls a second and at 1,000, at which \
                  caches keep most of what a call needs: the difference is the cost of lines \
                  that are not in them; and beside bulk data, as in E13 loaded with packets, at \
                  200. The trace makes everything slower, by some tenths of a µs for each event. \
                  Figures are means of the calls between the quartiles of their length, and \
                  those of all are of all calls. Packets wait in queue until the kernel takes \
                  them from those that have arrived, before RIO's classifier sees them. The \
                  kernel's own TCP works in receive, and in the system calls that receive and \
                  send; RIO's stack works in input and output, or in the class's thread. All \
                  counts are until the next request, the others until the reply's packet. The \
                  octets of a request are copied once by the kernel's path, from the packet to \
                  the ORB, and three times by RIO with AF_XDP in generic mode: to the ring, to \
                  the connection's buffer, and to the ORB. A reply takes the same ways back.";
    let texts = [processing, &company, guarantees, orb, &packets, stages];
    let parts = RioPart::ALL.into_iter().zip(texts);
    notes.extend(
        parts
            .filter(|(part, _)| plan.has(*part))
            .map(|(_, text)| text.to_owned()),
    );
    notes
}

const LEAD: &str = "The gain of early demultiplexing, which tells packets apart by priority before \
     any protocol work, and of protocol work in scheduled threads: the experiments of the paper on \
     RIO, on this machine.";
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
