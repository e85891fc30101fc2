//! What should be true of the figures, and whether it is.

use super::outcome::{Key, Outcome};
use super::protocol::Protocol;
use super::system::System;
use super::trial::{Cell, Trial};
use crate::Claim;
use crate::bench::{Placement, Waits};
use crate::pairs::Paired;
use crate::stats::median;
use crate::units;

/// All claims about the protocols that were asked for.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    let asked = |protocol| outcome.plan.protocols.contains(&protocol);
    if asked(Protocol::Shmiop) {
        claims.push(near_raw(outcome, Protocol::Shmiop, spinning(), MEMORY));
        claims.push(ahead_of_omniorb(outcome));
    }
    for (protocol, limit) in [(Protocol::Uiop, UNIX), (Protocol::Ssliop, TLS)] {
        if asked(protocol) {
            claims.extend(places().map(|cell| near_raw(outcome, protocol, cell, limit)));
        }
    }
    if outcome.plan.protocols.iter().any(|of| of.has_giop_lite()) {
        claims.push(octets_spared(outcome));
    }
    if asked(Protocol::Iiop) {
        claims.push(more_calls(outcome));
        claims.push(little_more(outcome));
    }
    if asked(Protocol::Iiop) && asked(Protocol::Uiop) {
        claims.push(local_is_quicker(outcome));
        claims.push(share_of_the_orb(outcome));
    }
    claims
}

/// The smallest of calls wherever it is made.
fn places() -> impl Iterator<Item = Cell> {
    [one_cpu(), two_cpus(), spinning()].into_iter()
}

const fn one_cpu() -> Cell {
    Cell::of_calls(Placement::SameCpu, Waits::Block)
}

const fn two_cpus() -> Cell {
    Cell::of_calls(Placement::AcrossCpus, Waits::Block)
}

const fn spinning() -> Cell {
    Cell::of_calls(Placement::AcrossCpus, Waits::Spin)
}

/// The ORB takes hardly longer than what it stands on.
fn near_raw(outcome: &Outcome, protocol: Protocol, cell: Cell, (word, limit): Limit) -> Claim {
    let claim = format!(
        "{}, {}: p50 {word} {limit:.2} of {}",
        protocol.scheme(),
        cell.place(),
        protocol.raw_name(),
    );
    let key = (protocol, System::Giop, cell);
    let measured = outcome.by_raw(key).and_then(|by_raw| {
        let own = p50(outcome, key)?;
        let raw = p50(outcome, (protocol, System::Raw, cell))?;
        Some((by_raw.ratio, format!("{own} and {raw}; {}", by_raw.text())))
    });
    Claim::aim(claim).by_ratio(measured, |ratio| {
        ratio <= limit && (word == "at most" || ratio < limit)
    })
}

/// Shared memory leaves what others do over TCP far behind.
fn ahead_of_omniorb(outcome: &Outcome) -> Claim {
    let claim = format!(
        "shmiop, {}: omniORB over TCP takes {AHEAD} times as long, or longer",
        spinning().place()
    );
    let own = (Protocol::Shmiop, System::Giop, spinning());
    let others = (Protocol::Shmiop, System::OmniOrbTcp, two_cpus());
    let measured = p50_by(outcome, others, own);
    Claim::aim(claim).by_ratio(measured, |ratio| ratio >= AHEAD)
}

/// GIOPlite's requests are shorter.
fn octets_spared(outcome: &Outcome) -> Claim {
    let smallest = outcome
        .messages
        .iter()
        .find(|of| of.trial == Trial::Call(0));
    let measured = smallest.and_then(|messages| {
        let (spared, lite) = (messages.spared()?, messages.giop_lite?);
        let figures = format!(
            "{spared}: {} octets and {}",
            messages.giop.request, lite.request
        );
        Some((spared >= SPARED, figures))
    });
    Claim::of_paper(
        SLIDES,
        format!("GIOPlite spares {SPARED} octets of a request, or more"),
    )
    .published("15 octets")
    .holds(measured)
}

/// They are quicker, too.
fn more_calls(outcome: &Outcome) -> Claim {
    let measured = gain(outcome, one_cpu()).map(|(gain, figures)| {
        let holds = gain.ratio_low > 1.0 && gain.chance < LIKELY;
        (holds, figures)
    });
    Claim::of_paper(SLIDES, "GIOPlite makes more calls in a second than GIOP")
        .published("2 943 and 2 906, 1.3 % more; without marshalling 2 967 and 2 949, 0.6 % more")
        .holds(measured)
        .because("what is spared is less than what other things change from round to round")
}

/// But not by much.
fn little_more(outcome: &Outcome) -> Claim {
    let measured = gain(outcome, one_cpu())
        .map(|(gain, figures)| (gain.ratio_low <= 1.0 + PERCENT / 100.0, figures));
    Claim::of_paper(SLIDES, format!("the gain is small: {PERCENT} %, or less"))
        .published(
            "so small (2 %) that hacking GIOP is of minimal gain except for low-bandwidth links",
        )
        .holds(measured)
}

/// How many more calls GIOPlite makes over TCP, with the figures in words.
fn gain(outcome: &Outcome, cell: Cell) -> Option<(Paired, String)> {
    let of = |system| (Protocol::Iiop, system, cell);
    let gain = outcome
        .p50_by(of(System::GiopLite), of(System::Giop))?
        .inverse();
    let rate = |system| median(outcome.rates_of_one(of(system)).into_iter());
    let figures = format!(
        "{} and {} in a second; by p50 {:+.1} % ({:+.1} to {:+.1}), by chance {:.3}",
        units::count(rate(System::GiopLite)?.round() as u64),
        units::count(rate(System::Giop)?.round() as u64),
        percent(gain.ratio),
        percent(gain.ratio_low),
        percent(gain.ratio_high),
        gain.chance,
    );
    Some((gain, figures))
}

/// How much more than as much, in hundredths.
pub(super) fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// What does not go through the network's code takes less.
fn local_is_quicker(outcome: &Outcome) -> Claim {
    let of = |protocol| (protocol, System::Giop, one_cpu());
    let (uiop, iiop) = (of(Protocol::Uiop), of(Protocol::Iiop));
    let measured = p50_by(outcome, uiop, iiop);
    Claim::of_paper(
        PLUGGABLE,
        "a call by Unix-domain sockets takes less than one by TCP",
    )
    .published("some 125 µs and 189 µs, a factor of 0.66")
    .by_ratio(measured, |ratio| ratio < 1.0)
}

/// How much of a call is the ORB.
fn share_of_the_orb(outcome: &Outcome) -> Claim {
    let key = (Protocol::Iiop, System::Giop, one_cpu());
    let measured = outcome.by_raw(key).map(|by_raw| {
        let share = 1.0 - 1.0 / by_raw.ratio;
        let figures = format!(
            "{:.0} % of {}",
            share * 100.0,
            p50(outcome, key).unwrap_or_default()
        );
        (share <= PUBLISHED_SHARE, figures)
    });
    Claim::of_paper(
        PLUGGABLE,
        "the ORB is at most 48 % of a call by TCP, and the rest is the system",
    )
    .published("some 90 µs of 189 µs")
    .holds(measured)
}

/// The p50 of one by that of another in the same round, with both in words.
fn p50_by(outcome: &Outcome, of: Key, to: Key) -> Option<(f64, String)> {
    let by = outcome.p50_by(of, to)?;
    let figures = format!("{} and {}", p50(outcome, of)?, p50(outcome, to)?);
    Some((by.ratio, figures))
}

fn p50(outcome: &Outcome, key: Key) -> Option<String> {
    outcome
        .rounds(key)
        .map(|rounds| units::time(rounds.latency.p50_us))
}

/// A factor, and whether it may be reached.
type Limit = (&'static str, f64);

/// p50 by what the protocol stands on.
const MEMORY: Limit = ("below", 1.5);
const UNIX: Limit = ("at most", 1.15);
const TLS: Limit = ("at most", 1.15);
/// omniORB over TCP by shared memory.
const AHEAD: f64 = 8.0;
/// Octets of a request.
const SPARED: i64 = 15;
const PERCENT: f64 = 2.0;
/// A difference that chance makes more often than this is none.
const LIKELY: f64 = 0.05;
const PUBLISHED_SHARE: f64 = 0.48;
const SLIDES: &str = "tutorial slides 1999, GIOPlite";
const PLUGGABLE: &str = "Middleware 2000, latency of IIOP and UIOP";
