//! The report of the experiment.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, counted, units};
use serde_json::{Value, json};

use super::cell::{Cell, Workload};
use super::claims::percent;
use super::outcome::{Contender, FloodTurn, ProtocolsOutcome};
use super::protocol::Protocol;
use super::system::ProtocolSystem;
use super::{Protocols, claims};
use crate::Claim;
use crate::bench::Sizes;
use crate::experiment::{Experiment, Findings, figures};
use crate::pairs::PairedRatio;
use crate::report::{begin, by_percentile, capitalised, curve, end};

impl Findings for ProtocolsOutcome {
    fn headline(&self) -> String {
        let mut headlines = drawn(self).into_iter().filter_map(|cell| {
            let by_raw =
                giop(self, cell).map(|(scheme, _, by_raw)| format!("{scheme} {by_raw:.2}"));
            let by_raw: Vec<_> = by_raw.collect();
            let headline = || format!("{}, by raw: {}", subject(cell), by_raw.join(", "));
            (!by_raw.is_empty()).then(headline)
        });
        let headline = headlines.next();
        headline.unwrap_or_else(|| Protocols::TITLE.to_owned())
    }

    fn caveats(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|missing| {
            let name = missing.system.name(missing.protocol);
            format!("{name} takes no part: {}", missing.why)
        });
        let caveats = missing.chain(self.omniorb.absence());
        caveats.chain(self.environment.stolen_caveat()).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Protocols::NAME, self, json!({"ratios": self.ratios()}))
    }

    fn document(&self) -> Document {
        let mut document = begin(self, LEAD);
        for cell in drawn(self) {
            let charts = [p50(self, cell), curves(self, cell)];
            let findings = giop(self, cell).map(|(scheme, p50_us, by_raw)| {
                format!("{scheme} {}, {by_raw:.2} of raw", units::time(p50_us))
            });
            let findings: Vec<_> = findings.collect();
            let colon = if findings.is_empty() { "" } else { ": " };
            let heading = format!("{}{colon}{}", subject(cell), findings.join("; "));
            document = document.part(heading, charts, []);
        }
        let document = document.part("The figures", [], tables(self));
        end(
            document,
            notes(self),
            &self.environment,
            "cargo run --release -- lab protocols",
        )
    }
}

/// Returns the p50 of each protocol with GIOP, in µs, and by raw.
fn giop(outcome: &ProtocolsOutcome, cell: Cell) -> impl Iterator<Item = (&'static str, f64, f64)> {
    Protocol::ALL.into_iter().filter_map(move |protocol| {
        let contender = Contender::giop(protocol, cell);
        let p50_us = outcome.rounds(contender)?.latency.p50_us;
        Some((protocol.scheme(), p50_us, outcome.by_raw(contender)?.ratio))
    })
}

/// Names a drawn cell.
fn subject(cell: Cell) -> String {
    let is_oneway = cell.workload.is_oneway();
    let one = if is_oneway {
        "A message without an answer"
    } else {
        "A call"
    };
    format!("{one}, {}", cell.place())
}

/// Returns the cells that are drawn.
fn drawn(outcome: &ProtocolsOutcome) -> Vec<Cell> {
    let mut cells = Cell::all(&outcome.plan);
    cells.retain(|cell| {
        let is_small = matches!(cell.workload, Workload::Call(0) | Workload::Oneway(0));
        is_small && !outcome.contenders(*cell).is_empty()
    });
    cells
}

/// Draws the p50 of all systems in a cell: a group of bars for each protocol.
fn p50(outcome: &ProtocolsOutcome, cell: Cell) -> Chart {
    let caption = format!(
        "The median {} of each protocol, with the raw channel below it and with omniORB.",
        cell.workload.noun()
    );
    let contenders = outcome.contenders(cell);
    let mut protocols: Vec<Protocol> = contenders.iter().map(|of| of.protocol).collect();
    protocols.dedup();
    let series = ProtocolSystem::ALL.map(|system| {
        let (name, colour) = match system {
            ProtocolSystem::Raw => ("raw", NEUTRAL),
            ProtocolSystem::Giop => ("GIOP", 0),
            ProtocolSystem::GiopLite => ("GIOPlite", 2),
            ProtocolSystem::OmniOrbTcp => ("omniORB over TCP", 1),
            ProtocolSystem::OmniOrbUnix => ("omniORB over Unix-domain", 4),
        };
        let p50 = protocols.iter().map(|&protocol| {
            let rounds = outcome.rounds(Contender::giop(protocol, cell).with(system));
            rounds.map(|rounds| rounds.latency.p50_us)
        });
        Series::of_groups(Mark::Bars, name, p50).colour(colour)
    });
    let protocols = Axis::groups("protocol", protocols.iter().map(|of| of.scheme()));
    Chart::new(caption, protocols, Axis::log("p50", Unit::Time)).series(series)
}

/// Draws latency by percentile: each protocol with GIOP, and dashed the raw channel below it.
fn curves(outcome: &ProtocolsOutcome, cell: Cell) -> Chart {
    let curves = outcome.contenders(cell).into_iter().filter_map(|of| {
        let mark = match of.system {
            ProtocolSystem::Raw => Mark::Dashes,
            ProtocolSystem::Giop => Mark::Line,
            _ => return None,
        };
        let mut protocols = Protocol::ALL.iter();
        let colour = protocols.position(|protocol| *protocol == of.protocol)?;
        Some(curve(mark, of.name(), outcome.pooled.get(of)?).colour(colour))
    });
    by_percentile(&format!("{}s", cell.workload.noun()), curves)
}

/// Makes a table for each cell, one of GIOPlite, and one of octets.
fn tables(outcome: &ProtocolsOutcome) -> impl Iterator<Item = Table> {
    let cells = Cell::all(&outcome.plan).into_iter();
    let tables = cells.map(|cell| {
        let contenders = outcome.contenders(cell).into_iter();
        let lines = contenders.filter_map(|of| Some((of.name(), cells_of(outcome, of)?)));
        let columns = match cell.workload {
            Workload::Clients(_) => CLIENTS,
            Workload::Flood(_) => FLOOD,
            Workload::Call(_) => CALLS,
            Workload::Oneway(_) => MESSAGES,
        };
        let heading = format!("{}, {}", cell.name(), outcome.plan.scheduled.name());
        Table::new(capitalised(&heading), columns.split('|'), lines)
    });
    tables.chain([of_giop_lite(outcome), of_octets(outcome)])
}

/// Renders the figures of a contender, if there are any.
fn cells_of(outcome: &ProtocolsOutcome, of: Contender) -> Option<Vec<String>> {
    Some(match of.cell.workload {
        Workload::Clients(_) => rates(outcome, of)?,
        Workload::Flood(_) => [flood(outcome, of), rates(outcome, of)?].concat(),
        Workload::Call(_) => latencies(outcome, of)?,
        Workload::Oneway(_) => {
            let lost = units::count(outcome.rounds(of)?.lost.into());
            [latencies(outcome, of)?, vec![lost]].concat()
        }
    })
}

/// Renders the latencies of calls or messages, with those that the ORB adds to the raw channel.
fn latencies(outcome: &ProtocolsOutcome, of: Contender) -> Option<Vec<String>> {
    let rounds = outcome.rounds(of)?;
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
    let by_raw = outcome.by_raw(of).filter(|_| of.system.is_own());
    let added = |by_raw: PairedRatio| [units::time(by_raw.difference), ratio(&by_raw)];
    cells.extend(by_raw.map_or_else(Default::default, added));
    cells.push(format!("{:.2}", rounds.switches));
    Some(cells)
}

/// Renders the rates of several clients, also by that of the raw channel.
fn rates(outcome: &ProtocolsOutcome, of: Contender) -> Option<Vec<String>> {
    let rates = outcome.rates_of(of).into_iter().map(|(_, rate)| rate);
    let mut cells = spread(&rates.collect::<Vec<_>>())?.to_vec();
    let by_raw = outcome.rates_by_raw(of);
    let by_raw = by_raw.filter(|_| of.system != ProtocolSystem::Raw);
    cells.push(by_raw.as_ref().map_or_else(String::new, ratio));
    Some(cells)
}

fn ratio(of: &PairedRatio) -> String {
    format!("{:.2}", of.ratio)
}

/// Renders the numbers of messages of all rounds, and the rate at which they were sent.
fn flood(outcome: &ProtocolsOutcome, of: Contender) -> Vec<String> {
    let counts: [fn(&FloodTurn) -> u32; 3] = [|of| of.sent, |of| of.arrived, |of| of.lost];
    let sums = counts.map(|count| {
        let counts = outcome.floods_of(of).map(|flood| u64::from(count(flood)));
        units::count(counts.sum())
    });
    let sent = outcome.floods_of(of).map(|flood| flood.sent_per_s);
    let mean = spread(&sent.collect::<Vec<_>>()).map(|[.., mean]| mean);
    sums.into_iter().chain(mean).collect()
}

/// Tabulates GIOPlite beside GIOP, as the tutorial does: the rates of one client.
fn of_giop_lite(outcome: &ProtocolsOutcome) -> Table {
    let cells = Cell::all(&outcome.plan).into_iter();
    let calls = cells.filter(|cell| matches!(cell.workload, Workload::Call(_)));
    let contenders = calls.flat_map(|cell| outcome.contenders(cell));
    let giop = contenders.filter(|of| of.system == ProtocolSystem::Giop);
    let lines = giop.flat_map(|giop| giop_lite(outcome, giop).into_iter().flatten());
    let columns = ["min", "max", "avg", "gain", "likely", "by chance"];
    Table::new("Calls in a second, GIOP and GIOPlite", columns, lines)
}

/// Renders the lines of GIOP and GIOPlite, if GIOPlite was measured.
fn giop_lite(outcome: &ProtocolsOutcome, giop: Contender) -> Option<[(String, Vec<String>); 2]> {
    let lite = giop.with(ProtocolSystem::GiopLite);
    let gain = outcome.p50_by(lite, giop)?.inverse();
    let line = |of: Contender, comparison: [String; 3]| {
        let rates = spread(&outcome.rates_of_one(of))?;
        let cells = rates.into_iter().chain(comparison).collect();
        Some((format!("{}, {}", of.name(), of.cell.name()), cells))
    };
    let [least, most] = [gain.ratio_low, gain.ratio_high].map(percent);
    let comparison = [
        format!("{:+.1} %", percent(gain.ratio)),
        format!("{least:+.1} to {most:+.1} %"),
        format!("{:.3}", gain.chance),
    ];
    Some([line(giop, Default::default())?, line(lite, comparison)?])
}

/// Renders the least, the greatest and the mean of rates.
fn spread(rates: &[f64]) -> Option<[String; 3]> {
    let least = rates.iter().copied().reduce(f64::min)?;
    let most = rates.iter().copied().reduce(f64::max)?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    Some([least, most, mean].map(|rate| format!("{}/s", units::count(rate.round() as u64))))
}

/// Tabulates the octets of calls and messages of one client.
fn of_octets(outcome: &ProtocolsOutcome) -> Table {
    let protocols = &outcome.plan.protocols;
    let has_streams = protocols.iter().any(|of| *of != Protocol::Miop);
    let messages = outcome.messages.iter();
    let messages = messages.filter(|of| has_streams || of.packets.is_some());
    let messages = messages.filter(|of| of.workload.clients() == 1);
    let lines = messages.map(|of| {
        let both = |sizes: Sizes| [sizes.request, sizes.reply].map(|n| units::count(n as u64));
        let lite = of.giop_lite.map_or_else(Default::default, both);
        let spared = of.spared().map(|spared| spared.to_string());
        let packets = of.packets.map(|packets| units::count(packets.into()));
        let to_group = packets.as_ref().map_or("", |_| ", to a group");
        let name = format!("{}{to_group}", of.workload.name());
        let cells = both(of.giop).into_iter().chain(lite);
        let cells = cells.chain([spared, packets].map(Option::unwrap_or_default));
        (name, cells.collect())
    });
    Table::new("Octets of a message", OCTETS.split('|'), lines)
}

/// Explains the figures.
fn notes(outcome: &ProtocolsOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "In each of {} rounds all systems of a protocol made {} calls in every place, by \
             turns, after a {}th of that which does not count; a fifth as many with 64 KiB. \
             Figures are medians of the rounds, but min and max, which are those of all calls. \
             Added is the p50 of the ORB minus that of the raw channel that waits alike, by raw \
             is the ratio of both; each is of the same round. Jitter is the standard deviation. \
             Switches are the context switches of both sides for each call; the sleep of spinning \
             threads after their turn counts too.",
            plan.rounds,
            units::count(plan.calls.into()),
            plan.warm_up_part,
        ),
        "A raw channel moves as many octets as GIOP has, with one system call to send and one to \
         receive on each side; in shared memory by a copy in and a copy out, and a futex where it \
         blocks; TLS by rustls. A spinning thread polls on both sides, and needs a CPU for each."
            .to_owned(),
        "A message without an answer carries the time of its sending, by the one clock of the \
         machine. At least 100 µs are between two, and 1 ms with 64 KiB. Lost are datagrams, \
         messages to a group of which a packet did not arrive, and raw messages in shared memory \
         that the next one replaced."
            .to_owned(),
        "A group sends no replies, so messages alone are sent there. MIOP cuts those that are \
         longer than a packet of 1500 octets; raw multicast sends as many datagrams of the same \
         lengths, and has as large a receive buffer. Messages of several clients follow each \
         other as fast as each can send; arrivals count from the first sending to the last \
         arrival. GIOPlite is negotiated on a connection, so never where messages are datagrams."
            .to_owned(),
        "Gain is the p50 of GIOP by that of GIOPlite in the same round, the median of the rounds. \
         Likely is the interval of 95 % of this median, by a bootstrap over the rounds; by chance \
         is the probability of so uneven rounds if both were alike (sign test). Protocols have \
         their turns one after the other."
            .to_owned(),
    ];
    notes.extend(outcome.omniorb.presence());
    notes
}

const LEAD: &str = "What a call takes by every protocol, and a message without an answer, beside \
                    the raw channel below each, and what GIOPlite spares.";
const OCTETS: &str = "request|reply|lite request|lite reply|spared|packets";
const CLIENTS: &str = "min|max|avg|by raw";
const FLOOD: &str = "sent|arrived|lost|sent, avg|arrived, min|max|avg|by raw";
const CALLS: &str = "calls|min|p50|p99|p99.9|max|jitter|added|by raw|switches";
const MESSAGES: &str = "arrived|min|p50|p99|p99.9|max|jitter|added|by raw|switches|lost";

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("protocols", &outcome());
    }
}
