//! The claims of the paper, and the aims of the experiment.

use super::calls::Io;
use super::outcome::{CallRow, EchoRow, FlowRow, RioOutcome};
use super::packets::{Load, PacketRow};
use super::path::PacketPath;
use super::plan::RioPart;
use super::stages::{CALLS_PER_S, StageRow};
use crate::Claim;
use crate::inversion::{ClientClass, Mode};
use crate::stats::median;
use crate::units;

/// Returns the claims on the parts of the plan.
pub(super) fn of(outcome: &RioOutcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    let plan = &outcome.plan;
    if plan.has(RioPart::Processing) {
        claims.extend([
            scheduling_costs_little(outcome),
            jitter_is_not_worse(outcome),
            the_wrong_class_shows(outcome),
        ]);
    }
    if plan.has(RioPart::Company) {
        claims.push(the_receiver_is_busy(outcome));
        for other in [PacketPath::Kernel, PacketPath::OneClass] {
            claims.extend(GAINS.map(|gain| gains(outcome, other, gain)));
        }
    }
    if plan.has(RioPart::Guarantees) {
        claims.extend(RESERVED.map(|flow| is_held(outcome, flow)));
        claims.push(best_effort_has_the_rest(outcome));
        claims.push(the_cap_is_held(outcome));
    }
    if plan.has(RioPart::Orb) {
        for mode in outcome.modes() {
            claims.extend(calls(outcome, mode));
        }
    }
    if plan.has(RioPart::Packets) {
        claims.push(bulk_keeps_the_server_busy(outcome));
        for case in plan.packet_cases() {
            claims.extend(beside_packets(outcome, case));
        }
    }
    if plan.has(RioPart::Stages) {
        claims.extend(stages(outcome));
    }
    claims
}

/// Processing by a scheduled thread hardly costs time.
fn scheduling_costs_little(outcome: &RioOutcome) -> Claim {
    let paths = [PacketPath::Scheduled, PacketPath::Arrival];
    let by = compared(outcome, RioPart::Processing, paths, MEAN);
    Claim::of_paper(
        SECTION_2,
        format!(
            "processing by a scheduled thread takes at most {COST_PERCENT} % longer than on \
             arrival, by the mean"
        ),
    )
    .published("665 and 653 µs, 1.8 %")
    .by_ratio(by, |ratio| ratio <= 1.0 + COST_PERCENT / 100.0)
    .because(
        "a wake-up of one more thread on each packet is a greater part of an echo where the rest \
         of it takes a tenth of what it took then",
    )
}

/// Processing by a scheduled thread is as predictable.
fn jitter_is_not_worse(outcome: &RioOutcome) -> Claim {
    let paths = [PacketPath::Scheduled, PacketPath::Arrival];
    let measured = || {
        let by = outcome.by(RioPart::Processing, paths, JITTER)?;
        let (_, words) = compared(outcome, RioPart::Processing, paths, JITTER)?;
        Some((by.ratio.min(by.ratio_low) <= 1.0, words))
    };
    Claim::of_paper(
        SECTION_2,
        "the jitter of echoes that a scheduled thread processes is not greater than of those \
         processed on arrival, but by chance",
    )
    .published("18.8 and 19.6 µs, a factor of 0.96")
    .holds(measured())
}

/// Priorities of the protocol's threads matter.
fn the_wrong_class_shows(outcome: &RioOutcome) -> Claim {
    let paths = [PacketPath::WrongClass, PacketPath::Scheduled];
    let by = compared(outcome, RioPart::Processing, paths, MEAN);
    Claim::of_paper(
        SECTION_2,
        format!(
            "in the wrong class processing takes visibly longer: the mean is {VISIBLY} times that \
             of the right one, or more"
        ),
    )
    .published("799 and 665 µs, a factor of 1.20; the jitter a factor of 2.0")
    .by_ratio(by, |ratio| ratio >= VISIBLY)
}

/// Bulk traffic keeps the receiver busy, which the other claims presuppose.
fn the_receiver_is_busy(outcome: &RioOutcome) -> Claim {
    let busy = |path| outcome.of_rounds(RioPart::Company, path, |row| row.busy_percent);
    let words = PacketPath::IN_COMPANY
        .into_iter()
        .filter_map(|path| Some(format!("{} {:.0} %", path.title(), busy(path)?)));
    let words: Vec<_> = words.collect();
    Claim::aim(format!(
        "bulk traffic alone keeps the receiver's CPU busy, by the kernel's default path \
         {BUSY_PERCENT} % of the time or more"
    ))
    .holds(busy(PacketPath::Kernel).map(|busy| (busy >= BUSY_PERCENT, words.join(", "))))
}

/// A figure that RIO lowers: its name and value, its greatest factor by other paths, and that of
/// the paper.
type Gain = (&'static str, fn(&EchoRow) -> f64, f64, &'static str);

const GAINS: [Gain; 3] = [
    ("mean", MEAN, 0.88, "946 and 1072 µs, 12 % lower"),
    (
        "longest",
        |row| row.latency.max_us,
        0.65,
        "2038 and 3158 µs, 35 % lower",
    ),
    ("jitter", JITTER, 0.57, "282 and 497 µs, 43 % lower"),
];

/// With classes echoes do not feel bulk traffic.
fn gains(outcome: &RioOutcome, other: PacketPath, (name, figure, limit, published): Gain) -> Claim {
    let paths = [PacketPath::Classes, other];
    let by = compared(outcome, RioPart::Company, paths, figure);
    let other = match other {
        PacketPath::Kernel => "the kernel's default path",
        _ => "the same stack without early demultiplexing",
    };
    let claim =
        format!("beside bulk traffic, {name} of RIO with classes: at most {limit:.2} of {other}");
    Claim::of_paper(SECTION_3, claim)
        .published(published)
        .by_ratio(by, |ratio| ratio <= limit)
}

/// A flow has its reservation, whatever the others do.
fn is_held(outcome: &RioOutcome, flow: &str) -> Claim {
    let row = outcome.flow("guarantees", "all", flow);
    Claim::of_paper(
        SECTION_4,
        format!(
            "the flow that has a reservation of {flow} MB/s has it within {WITHIN_PERCENT} % \
                 in any second"
        ),
    )
    .published("guaranteed connections receive the bandwidth that they requested (figure 19)")
    .holds(row.and_then(within))
}

/// Whether a flow has its reservation in any second, with the rates in words.
fn within(row: &FlowRow) -> Option<(bool, String)> {
    let wanted = row.wanted_octets_per_s?;
    let rates = [row.least_octets_per_s, row.most_octets_per_s];
    let off = rates.map(|rate| (rate / wanted - 1.0) * 100.0);
    let ([least, most], [below, above]) = (rates.map(megaoctets), off);
    let words = format!("{least} to {most}, {below:+.1} to {above:+.1} %");
    Some((off.iter().all(|off| off.abs() <= WITHIN_PERCENT), words))
}

/// Best effort loses as much as the other flows have, and no more.
fn best_effort_has_the_rest(outcome: &RioOutcome) -> Claim {
    let alone = outcome.flow("guarantees", "alone", "best-effort");
    let last = outcome.flows.iter();
    let last = last.filter(|row| row.trial == "guarantees" && row.phase == "last");
    let all: f64 = last.map(|row| row.mean_octets_per_s).sum();
    let measured = alone.zip(outcome.flow("guarantees", "last", "best-effort"));
    let measured = measured.map(|(alone, beside)| {
        let words = format!(
            "alone {}; at last {}, and all together {}",
            megaoctets(alone.mean_octets_per_s),
            megaoctets(beside.mean_octets_per_s),
            megaoctets(all),
        );
        (all / alone.mean_octets_per_s.max(1.0), words)
    });
    Claim::of_paper(
        SECTION_4,
        "best effort has the rest: all flows together have what it had alone, within 5 %",
    )
    .published(
        "the best-effort connection loses bandwidth proportional to that of the guaranteed \
                ones (figure 19)",
    )
    .by_ratio(measured, |ratio| (ratio - 1.0).abs() <= 0.05)
}

/// A flow keeps its limit.
fn the_cap_is_held(outcome: &RioOutcome) -> Claim {
    Claim::of_paper(
        SECTION_4,
        format!(
            "best effort that is to have 40 % of the interface's rate has that within \
             {WITHIN_PERCENT} % in any second"
        ),
    )
    .published("no figure")
    .holds(outcome.flow("limit", "all", "capped").and_then(within))
}

/// Calls of high priority are quicker and more predictable with RIO below the ORB, and those of low
/// priority do not pay for it.
fn calls(outcome: &RioOutcome, mode: Mode) -> [Claim; 3] {
    let claim = |text: &str, published, class, figure, holds: fn(f64) -> bool| {
        Claim::of_paper(SECTION_ORB, format!("{mode}: {text}"))
            .published(published)
            .by_ratio(by_kernel(outcome, mode, class, figure), holds)
    };
    let punished = format!(
        "the mean of low-priority clients is at most {PUNISHED} times that without RIO, on average"
    );
    [
        claim(
            "the mean of the high-priority client is lower with RIO below the ORB, on average over \
             the numbers of low-priority clients",
            "13 % lower on average",
            ClientClass::High,
            |row| row.latency.mean_us,
            |ratio| ratio < 1.0,
        ),
        claim(
            "the jitter of the high-priority client is lower with RIO below the ORB, on average",
            "51 % lower on average, from 12 % higher without low-priority clients to 69 % lower \
             with 44",
            ClientClass::High,
            |row| row.latency.jitter_us,
            |ratio| ratio < 1.0,
        ),
        claim(
            &punished,
            "no appreciable change; lower with 44 and 49 clients",
            ClientClass::Low,
            |row| row.latency.mean_us,
            |ratio| ratio <= PUNISHED,
        ),
    ]
}

/// Returns a figure with RIO by that with the kernel: the median over the numbers of clients, and
/// the least and the greatest in words.
fn by_kernel(
    outcome: &RioOutcome,
    mode: Mode,
    class: ClientClass,
    figure: fn(&CallRow) -> f64,
) -> Option<(f64, String)> {
    let kernel = outcome.series(Io::Kernel, mode, class);
    let rio = outcome.series(Io::Rio, mode, class).into_iter();
    let ratios = rio.filter_map(|row| {
        let mut others = kernel.iter();
        let other = others.find(|other| other.low_clients == row.low_clients)?;
        Some((figure(row) / figure(other).max(1e-3), row.low_clients))
    });
    let mut ratios: Vec<(f64, u32)> = ratios.collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (least, most) = (ratios.first()?, ratios.last()?);
    let words = format!(
        "{:.2} with {} to {:.2} with {} low-priority clients",
        least.0, least.1, most.0, most.1
    );
    Some((median(ratios.iter().map(|(ratio, _)| *ratio))?, words))
}

/// Bulk data keep the server busy, which the claims beside them presuppose.
fn bulk_keeps_the_server_busy(outcome: &RioOutcome) -> Claim {
    let busy = |io| {
        let rows = outcome.packets.iter();
        let rows = rows.filter(|row| (row.io, row.load) == (io, Load::Bulk));
        median(rows.filter_map(|row| row.busy_percent))
    };
    let words = Io::ALL
        .into_iter()
        .filter_map(|io| Some(format!("{} {:.0} %", io.title(), busy(io)?)));
    let words: Vec<_> = words.collect();
    Claim::aim(format!(
        "bulk data keep the server's CPU busy beside the calls, by the kernel's default path \
         {BUSY_PERCENT} % of the time or more"
    ))
    .holds(busy(Io::Kernel).map(|busy| (busy >= BUSY_PERCENT, words.join(", "))))
}

/// Calls of high priority do not feel bulk data, and those of low priority do not pay for it.
/// Without load, RIO costs little.
fn beside_packets(outcome: &RioOutcome, case: (Load, u32)) -> Vec<Claim> {
    let (load, low_clients) = case;
    let claim = |name: &str, class, figure: fn(&PacketRow) -> f64, limit: f64| {
        let by = outcome.by_default(Io::Rio, case, class, figure);
        let medians = [Io::Rio, Io::Kernel].map(|io| {
            let turns = outcome.packet_turns(io, case, class);
            median(turns.map(figure)).map_or_else(String::new, units::time)
        });
        let measured = by.map(|by| {
            let [rio, kernel] = medians;
            (by.ratio, format!("{rio} and {kernel}; {}", by.text()))
        });
        let beside = match load {
            Load::Quiet => "without load".to_owned(),
            Load::Bulk => format!("beside bulk data and {low_clients} low-priority clients"),
        };
        let text = format!("{beside}, {name} with RIO: at most {limit:.2} of the kernel's default");
        let claim = match load {
            Load::Quiet => Claim::aim(text),
            Load::Bulk => Claim::of_paper(SECTION_ORB, text),
        };
        claim.by_ratio(measured, |ratio| ratio <= limit)
    };
    let mean = |row: &PacketRow| row.latency.mean_us;
    let (high, low) = (ClientClass::High, ClientClass::Low);
    let mean_of_high = "the mean of the high-priority client";
    if load == Load::Quiet {
        return vec![claim(mean_of_high, high, mean, UNLOADED)];
    }
    let jitter = |row: &PacketRow| row.latency.jitter_us;
    let mut claims = vec![
        claim(mean_of_high, high, mean, 0.87).published("13 % lower on average"),
        claim("the jitter of the high-priority client", high, jitter, 0.5)
            .published("51 % lower on average"),
    ];
    if low_clients > 0 {
        let name = "the mean of low-priority clients";
        claims.push(claim(name, low, mean, PUNISHED).published("no appreciable change"));
    }
    claims
}

/// A call through RIO costs about as much as one through the kernel, if the lane's thread processes
/// its packets.
fn stages(outcome: &RioOutcome) -> [Claim; 3] {
    let paths = [PacketPath::Arrival, PacketPath::Kernel];
    let [rarely, _] = CALLS_PER_S;
    let stages_of = |path| outcome.stages_of(path, rarely);
    let counts = |of: fn(&StageRow) -> f64| {
        let [arrival, kernel] = paths.map(|path| stages_of(path).map(of));
        arrival.zip(kernel)
    };
    let words = |(arrival, kernel): (f64, f64)| format!("{arrival:.1} and {kernel:.1}");
    let few = |both: (f64, f64)| (both.0 <= both.1 + FEW, words(both));
    let [whole, kernel] = paths.map(|path| stages_of(path).map(StageRow::whole_us));
    [
        Claim::aim("a call that is processed on arrival wakes as many threads as by the kernel")
            .holds(counts(|row| row.wake_ups).map(few)),
        Claim::aim("it takes as many system calls from packet to packet as by the kernel")
            .holds(counts(|row| row.system_calls).map(few)),
        Claim::aim(format!(
            "from packet to packet it takes at most {UNLOADED} times as long"
        ))
        .times([whole, kernel], "{} and {}", |ratio| ratio <= UNLOADED),
    ]
}

/// Returns a figure of one path by that of another in the same rounds, with both in words.
fn compared(
    outcome: &RioOutcome,
    part: RioPart,
    paths: [PacketPath; 2],
    figure: fn(&EchoRow) -> f64,
) -> Option<(f64, String)> {
    let by = outcome.by(part, paths, figure)?;
    let [one, other] = paths.map(|path| {
        let median = outcome.of_rounds(part, path, |row| Some(figure(row)));
        median.map_or_else(String::new, units::time)
    });
    let words = format!("{one} and {other}; {}", by.text());
    Some((by.ratio, words))
}

/// Returns a rate in words.
pub(super) fn megaoctets(octets_per_s: f64) -> String {
    format!("{:.2} MB/s", octets_per_s / 1e6)
}

/// The paper, and its sections.
const SECTION_2: &str = "RIO 1998, section 4.2.2";
const SECTION_3: &str = "RIO 1998, section 4.2.3";
const SECTION_4: &str = "RIO 1998, section 4.2.4";
const SECTION_ORB: &str = "RIO 1998, section 4.3";
const MEAN: fn(&EchoRow) -> f64 = |row| row.latency.mean_us;
const JITTER: fn(&EchoRow) -> f64 = |row| row.latency.jitter_us;
const COST_PERCENT: f64 = 5.0;
const VISIBLY: f64 = 1.1;
const BUSY_PERCENT: f64 = 90.0;
const WITHIN_PERCENT: f64 = 2.0;
const PUNISHED: f64 = 1.1;
/// The factor by which calls may take longer without load.
const UNLOADED: f64 = 1.05;
/// The difference between mean counts that is not noticed.
const FEW: f64 = 0.2;
const RESERVED: [&str; 3] = ["6.4", "3.2", "1.6"];
