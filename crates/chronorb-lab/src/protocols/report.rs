//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, counted, units};

use super::Protocols;
use super::claims::percent;
use super::outcome::{Flood, Key, Outcome};
use super::protocol::Protocol;
use super::system::System;
use super::trial::{Cell, Trial};
use crate::bench::Sizes;
use crate::experiment::Experiment;
use crate::pairs::Paired;
use crate::report::{begin, curve, end, latency};

pub(super) fn document(outcome: &Outcome) -> Document {
    let mut document = begin(outcome, LEAD);
    for cell in drawn(outcome) {
        let charts = [p50(outcome, cell), by_percentile(outcome, cell)];
        document = document.part(finding(outcome, cell), charts, []);
    }
    let document = document.part("The figures", [], tables(outcome));
    end(
        document,
        notes(outcome),
        &outcome.environment,
        "cargo run --release -- lab protocols",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let told = drawn(outcome).into_iter().find_map(|cell| {
        let told: Vec<String> = giop(outcome, cell)
            .map(|(protocol, _, by_raw)| format!("{} {by_raw:.2}", protocol.scheme()))
            .collect();
        let (what, place) = (what(cell), cell.place());
        (!told.is_empty()).then(|| format!("{what}, {place}, by raw: {}", told.join(", ")))
    });
    told.unwrap_or_else(|| Protocols::TITLE.to_owned())
}

/// What the plots of a cell show.
fn finding(outcome: &Outcome, cell: Cell) -> String {
    let told: Vec<String> = giop(outcome, cell)
        .map(|(protocol, p50_us, by_raw)| {
            let (name, p50) = (protocol.scheme(), units::time(p50_us));
            format!("{name} {p50}, {by_raw:.2} of raw")
        })
        .collect();
    let what = what(cell);
    match told.is_empty() {
        true => format!("{what}, {}", cell.place()),
        false => format!("{what}, {}: {}", cell.place(), told.join("; ")),
    }
}

/// The p50 of each protocol with GIOP, in µs, and by raw.
fn giop(outcome: &Outcome, cell: Cell) -> impl Iterator<Item = (Protocol, f64, f64)> {
    Protocol::ALL.into_iter().filter_map(move |protocol| {
        let key = (protocol, System::Giop, cell);
        let p50_us = outcome.rounds(key)?.latency.p50_us;
        Some((protocol, p50_us, outcome.by_raw(key)?.ratio))
    })
}

const fn what(cell: Cell) -> &'static str {
    match cell.trial.is_oneway() {
        true => "A message without an answer",
        false => "A call",
    }
}

/// The cells that are drawn.
fn drawn(outcome: &Outcome) -> Vec<Cell> {
    let cells = Cell::all(&outcome.plan).into_iter();
    cells
        .filter(|cell| matches!(cell.trial, Trial::Call(0) | Trial::Oneway(0)))
        .filter(|cell| !outcome.keys(*cell).is_empty())
        .collect()
}

/// The p50 of all in a cell: a group of bars for each protocol.
fn p50(outcome: &Outcome, cell: Cell) -> Chart {
    let caption = format!(
        "The median {} of each protocol, with what the protocol stands on and with what is beside it.",
        cell.trial.noun()
    );
    let keys = outcome.keys(cell);
    let mut protocols: Vec<Protocol> = keys.iter().map(|key| key.0).collect();
    protocols.dedup();
    let series = System::ALL.map(|system| {
        let (name, colour) = match system {
            System::Raw => ("raw", NEUTRAL),
            System::Giop => ("GIOP", 0),
            System::GiopLite => ("GIOPlite", 2),
            System::OmniOrbTcp => ("omniORB over TCP", 1),
            System::OmniOrbUnix => ("omniORB over Unix-domain", 4),
        };
        let p50 = protocols.iter().map(|protocol| {
            let rounds = outcome.rounds((*protocol, system, cell))?;
            Some(rounds.latency.p50_us)
        });
        Series::of_groups(Mark::Bars, name, p50).colour(colour)
    });
    let protocols = Axis::groups("protocol", protocols.iter().map(|of| of.scheme()));
    Chart::new(caption, protocols, Axis::log("p50", Unit::Time)).series(series)
}

/// Latency by percentile: each protocol with GIOP, and dashed what it stands on.
fn by_percentile(outcome: &Outcome, cell: Cell) -> Chart {
    let noun = cell.trial.noun();
    let caption = format!(
        "Latency by percentile, all rounds together; dashed what a protocol stands on. To the right \
         each step is ten times rarer; a line ends at the longest {noun}."
    );
    let series = outcome.keys(cell).into_iter().filter_map(|key| {
        let (protocol, system, _) = key;
        let mark = match system {
            System::Raw => Mark::Dashes,
            System::Giop => Mark::Line,
            _ => return None,
        };
        let (_, record) = outcome.pooled.iter().find(|(of, _)| *of == key)?;
        let colour = Protocol::ALL.iter().position(|of| *of == protocol)?;
        Some(curve(mark, system.name(protocol), record).colour(colour))
    });
    let percentiles = Axis::percentiles(format!("percentile of the {noun}s"));
    Chart::new(caption, percentiles, latency()).series(series)
}

/// A table for each cell, one of GIOPlite, and one of octets.
fn tables(outcome: &Outcome) -> impl Iterator<Item = Table> {
    let cells = Cell::all(&outcome.plan).into_iter();
    let tables = cells.map(|cell| match cell.trial {
        Trial::Clients(_) | Trial::Flood(_) => of_clients(outcome, cell),
        Trial::Call(_) | Trial::Oneway(_) => of_latencies(outcome, cell),
    });
    tables.chain([of_giop_lite(outcome), of_octets(outcome)])
}

/// What calls, or messages without an answer, took.
fn of_latencies(outcome: &Outcome, cell: Cell) -> Table {
    let is_oneway = cell.trial.is_oneway();
    let lines = outcome.keys(cell).into_iter().filter_map(|key| {
        let (protocol, system, _) = key;
        let rounds = outcome.rounds(key)?;
        let latency = &rounds.latency;
        let times = [
            rounds.min_us,
            latency.p50_us,
            latency.p99_us,
            latency.p999_us,
            latency.max_us,
            latency.jitter_us,
        ];
        let mut cells = counted(latency.calls, times);
        let by_raw = outcome.by_raw(key).filter(|_| system.is_own());
        cells.extend(by_raw.map_or_else(Default::default, |by_raw| added(&by_raw)));
        if is_oneway {
            cells.push(units::count(rounds.lost.into()));
        }
        Some((system.name(protocol), cells))
    });
    let first = if is_oneway { "arrived" } else { "calls" };
    let columns = [first].into_iter().chain(LATENCY);
    let columns = columns.chain(is_oneway.then_some("lost"));
    Table::new(heading(outcome, cell), columns, lines)
}

/// What the ORB adds, and by how much it takes longer.
fn added(by_raw: &Paired) -> [String; 2] {
    let added = match by_raw.difference {
        less if less < 0.0 => format!("-{}", units::time(-less)),
        more => units::time(more),
    };
    [added, format!("{:.2}", by_raw.ratio)]
}

/// What several clients did in a second, or what arrived of what they sent.
fn of_clients(outcome: &Outcome, cell: Cell) -> Table {
    let is_flood = cell.trial.is_oneway();
    let lines = outcome.keys(cell).into_iter().filter_map(|key| {
        let (protocol, system, _) = key;
        let rates: Vec<f64> = outcome
            .rates_of(key)
            .into_iter()
            .map(|rate| rate.1)
            .collect();
        let mut cells = if is_flood {
            flood(outcome, key)
        } else {
            Vec::new()
        };
        cells.extend(spread(&rates)?);
        let raw = outcome.rates_of((protocol, System::Raw, cell));
        let pairs: Vec<_> = outcome
            .rates_of(key)
            .into_iter()
            .filter_map(|(round, rate)| {
                let (_, raw) = raw.iter().find(|(of, _)| *of == round)?;
                Some((rate, *raw))
            })
            .collect();
        let by_raw = Paired::of(&pairs).filter(|_| system != System::Raw);
        cells.push(by_raw.map_or_else(String::new, |by_raw| format!("{:.2}", by_raw.ratio)));
        Some((system.name(protocol), cells))
    });
    let columns = match is_flood {
        true => &FLOOD[..],
        false => &CLIENTS,
    };
    Table::new(heading(outcome, cell), columns.iter().copied(), lines)
}

/// What became of the messages of all rounds, and how fast they were sent.
fn flood(outcome: &Outcome, key: Key) -> Vec<String> {
    let sum = |of: fn(&Flood) -> u32| {
        outcome
            .floods_of(key)
            .map(|flood| u64::from(of(flood)))
            .sum()
    };
    let counts: [u64; 3] = [
        sum(|flood| flood.sent),
        sum(|flood| flood.arrived),
        sum(|flood| flood.lost),
    ];
    let sent: Vec<f64> = outcome
        .floods_of(key)
        .map(|flood| flood.sent_per_s)
        .collect();
    let mut cells = counts.map(units::count).to_vec();
    cells.extend(spread(&sent).map(|[.., mean]| mean));
    cells
}

/// GIOPlite beside GIOP, as the tutorial has it: what one client does in a second.
fn of_giop_lite(outcome: &Outcome) -> Table {
    let cells = Cell::all(&outcome.plan);
    let calls = cells
        .into_iter()
        .filter(|cell| matches!(cell.trial, Trial::Call(_)));
    let mut lines = Vec::new();
    for cell in calls {
        for &protocol in &outcome.plan.protocols {
            lines.extend(giop_lite(outcome, protocol, cell));
        }
    }
    let columns = ["min", "max", "avg", "gain", "likely", "by chance"];
    Table::new("Calls in a second, GIOP and GIOPlite", columns, lines)
}

/// The line of each; none where GIOPlite took no part.
fn giop_lite(outcome: &Outcome, protocol: Protocol, cell: Cell) -> Vec<(String, Vec<String>)> {
    let of = |system| (protocol, system, cell);
    let (giop, lite) = (of(System::Giop), of(System::GiopLite));
    let Some(gain) = outcome.p50_by(lite, giop).map(|by| by.inverse()) else {
        return Vec::new();
    };
    let line = |key: Key, comparison: [String; 3]| {
        let mut cells = spread(&outcome.rates_of_one(key))?.to_vec();
        cells.extend(comparison);
        Some((format!("{}, {}", key.1.name(protocol), cell.name()), cells))
    };
    let likely = [gain.ratio_low, gain.ratio_high].map(percent);
    let comparison = [
        format!("{:+.1} %", percent(gain.ratio)),
        format!("{:+.1} to {:+.1} %", likely[0], likely[1]),
        format!("{:.3}", gain.chance),
    ];
    [line(giop, Default::default()), line(lite, comparison)]
        .into_iter()
        .flatten()
        .collect()
}

/// Least, most, and mean of rates.
fn spread(rates: &[f64]) -> Option<[String; 3]> {
    let least = rates.iter().copied().reduce(f64::min)?;
    let most = rates.iter().copied().reduce(f64::max)?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    Some([least, most, mean].map(|rate| format!("{}/s", units::count(rate.round() as u64))))
}

fn of_octets(outcome: &Outcome) -> Table {
    let protocols = &outcome.plan.protocols;
    let has_streams = protocols.iter().any(|of| *of != Protocol::Miop);
    let asked = outcome.messages.iter();
    let asked = asked.filter(|of| has_streams || of.packets.is_some());
    // Several clients send what one does.
    let of_one = asked.filter(|of| of.trial.clients() == 1);
    let lines = of_one.map(|messages| {
        let both = |sizes: Sizes| [sizes.request, sizes.reply].map(|n| units::count(n as u64));
        let mut cells = both(messages.giop).to_vec();
        cells.extend(messages.giop_lite.map_or_else(Default::default, both));
        cells.push(
            messages
                .spared()
                .map_or_else(String::new, |spared| spared.to_string()),
        );
        let packets = messages.packets.map(|packets| units::count(packets.into()));
        let to_group = if packets.is_some() {
            ", to a group"
        } else {
            ""
        };
        cells.push(packets.unwrap_or_default());
        (format!("{}{to_group}", messages.trial.name()), cells)
    });
    Table::new("Octets of a message", OCTETS, lines)
}

/// What is tried, where, and how threads are scheduled.
fn heading(outcome: &Outcome, cell: Cell) -> String {
    let name = cell.name();
    let scheduled = outcome.plan.scheduled.name();
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let name: String = first.into_iter().chain(letters).collect();
    format!("{name}, {scheduled}")
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "In each of {} rounds everyone at a protocol made {} calls in every place, by turns, after a {}th of \
             that which does not count; a fifth as many with 64 KiB. All figures are medians of the rounds, but min and \
             max, which are those of all calls. Added is the p50 of the ORB minus that of the raw channel that waits \
             alike, in the same round, and by raw is the one by the other: medians of the rounds. Jitter is the \
             standard deviation.",
            plan.rounds,
            units::count(plan.calls.into()),
            plan.warm_up_part,
        ),
        "A raw channel moves exactly as many octets as GIOP has: one system call to send and one to receive on each \
         side; in shared memory a copy in and a copy out, and a count beside the octets in the same cache line, with a \
         futex where it blocks; TLS by the buffered interface of rustls. Who spins looks again and again on both sides, \
         and needs a processor for each."
            .to_owned(),
        "A message without an answer tells when it was sent, and the server how long it was under way, by the one \
         clock of the machine. At least 100 µs are between two, and 1 ms with 64 KiB. What did not arrive is lost: \
         datagrams, messages to a group of which a packet did not arrive, and raw messages in shared memory that the \
         next one replaced."
            .to_owned(),
        "Nobody answers for a group, so that messages alone are sent there, of all sizes. MIOP cuts those that are \
         longer than a packet of 1500 octets; raw multicast sends as many datagrams that are as long, with the numbers \
         by which its server finds out whether a message is whole, and has as large a receive buffer. Messages of \
         several clients follow each other as fast as each can send; those that arrive in a second are counted from \
         the first that was sent to the last that came. GIOPlite is agreed on by two who answer each other on a \
         connection, and so never where messages are datagrams."
            .to_owned(),
        "Gain is by how much more calls one client makes with GIOPlite, by p50 in the same round: the median of the \
         rounds. Likely is between what this median is in 95 of a hundred cases, by a bootstrap over the rounds; by \
         chance, how often rounds are so uneven where both are alike (sign test). Different protocols have their turns \
         one after the other, and not in the same moment."
            .to_owned(),
    ];
    if outcome.omniorb.version.is_some() {
        notes.push(outcome.omniorb.sentence());
    }
    notes
}

const LEAD: &str = "What a call takes by every protocol, and a message without an answer, beside what each stands on with nothing above it, and what GIOPlite spares.";
const OCTETS: [&str; 6] = [
    "request",
    "reply",
    "lite request",
    "lite reply",
    "spared",
    "packets",
];
const CLIENTS: [&str; 4] = ["min", "max", "avg", "by raw"];
const FLOOD: [&str; 8] = [
    "sent",
    "arrived",
    "lost",
    "sent, avg",
    "arrived, min",
    "max",
    "avg",
    "by raw",
];
const LATENCY: [&str; 8] = [
    "min", "p50", "p99", "p99.9", "max", "jitter", "added", "by raw",
];

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("protocols", &outcome());
    }
}
