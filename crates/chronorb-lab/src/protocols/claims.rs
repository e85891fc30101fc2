//! The claims about the figures.

use super::cell::{Cell, Workload};
use super::outcome::{Contender, ProtocolsOutcome};
use super::protocol::Protocol;
use super::system::ProtocolSystem;
use crate::Claim;
use crate::bench::{Placement, Waits};
use crate::pairs::PairedRatio;
use crate::stats::median;
use crate::units;

/// Judges all claims about the protocols of the plan.
pub(super) fn of(outcome: &ProtocolsOutcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    let asked = |protocol| outcome.plan.protocols.contains(&protocol);
    if asked(Protocol::Shmiop) {
        claims.push(near_raw(outcome, Protocol::Shmiop, SPINNING, MEMORY));
        claims.push(near_raw(outcome, Protocol::Shmiop, ONE_CPU, FUTEX));
        claims.push(ahead_of_omniorb(outcome));
    }
    for (protocol, limit) in [(Protocol::Uiop, UNIX), (Protocol::Ssliop, TLS)] {
        if asked(protocol) {
            let places = [ONE_CPU, TWO_CPUS, SPINNING];
            claims.extend(places.map(|cell| near_raw(outcome, protocol, cell, limit)));
        }
    }
    if asked(Protocol::Uiop) {
        claims.push(unix_beside_omniorb(outcome));
    }
    if outcome.plan.protocols.iter().any(|of| of.has_giop_lite()) {
        claims.push(octets_spared(outcome));
    }
    if asked(Protocol::Iiop) {
        claims.extend(gain_of_giop_lite(outcome));
    }
    if asked(Protocol::Iiop) && asked(Protocol::Uiop) {
        claims.push(local_is_quicker(outcome));
        claims.push(share_of_the_orb(outcome));
    }
    claims
}

/// Judges whether a protocol takes hardly longer than the raw channel below it.
fn near_raw(
    outcome: &ProtocolsOutcome,
    protocol: Protocol,
    cell: Cell,
    (word, limit): Limit,
) -> Claim {
    let claim = format!(
        "{}, {}: p50 {word} {limit:.2} of {}",
        protocol.scheme(),
        cell.place(),
        protocol.raw_name(),
    );
    let own = Contender::giop(protocol, cell);
    let measured = || {
        let by_raw = outcome.by_raw(own)?;
        let (_, figures) = p50_by(outcome, own, own.with(ProtocolSystem::Raw))?;
        Some((by_raw.ratio, format!("{figures}; {}", by_raw.text())))
    };
    Claim::aim(claim).by_ratio(measured(), |ratio| {
        ratio <= limit && (word == "at most" || ratio < limit)
    })
}

/// Judges how much longer omniORB takes over TCP than chronorb by shared memory.
fn ahead_of_omniorb(outcome: &ProtocolsOutcome) -> Claim {
    let claim = format!(
        "shmiop, {}: omniORB over TCP takes {AHEAD} times as long, or longer",
        SPINNING.place()
    );
    let own = Contender::giop(Protocol::Shmiop, SPINNING);
    let others = Contender::giop(Protocol::Shmiop, TWO_CPUS).with(ProtocolSystem::OmniOrbTcp);
    Claim::aim(claim).by_ratio(p50_by(outcome, others, own), |ratio| ratio >= AHEAD)
}

/// Judges whether a call takes no longer than one of omniORB by the same transport.
fn unix_beside_omniorb(outcome: &ProtocolsOutcome) -> Claim {
    let claim = format!("uiop, {}: p50 at most that of omniORB", ONE_CPU.place());
    let own = Contender::giop(Protocol::Uiop, ONE_CPU);
    let omniorb = own.with(ProtocolSystem::OmniOrbUnix);
    Claim::aim(claim).by_ratio(p50_by(outcome, own, omniorb), |ratio| ratio <= 1.0)
}

/// Judges whether GIOPlite's requests are shorter.
fn octets_spared(outcome: &ProtocolsOutcome) -> Claim {
    let measured = || {
        let mut messages = outcome.messages.iter();
        let smallest = messages.find(|of| of.workload == Workload::Call(0))?;
        let (spared, lite) = (smallest.spared()?, smallest.giop_lite?.request);
        let giop = smallest.giop.request;
        let figures = format!("{spared}: {giop} octets and {lite}");
        Some((spared >= SPARED, figures))
    };
    let claim = format!("GIOPlite spares {SPARED} octets of a request, or more");
    Claim::of_paper(SLIDES, claim)
        .published("15 octets")
        .holds(measured())
}

/// Judges whether GIOPlite is quicker over TCP, and whether it is so by little only.
fn gain_of_giop_lite(outcome: &ProtocolsOutcome) -> [Claim; 2] {
    let gain = gain(outcome, Contender::giop(Protocol::Iiop, ONE_CPU));
    let judge = |holds: fn(&PairedRatio) -> bool| {
        let gain = gain.as_ref();
        gain.map(|(gain, figures)| (holds(gain), figures.clone()))
    };
    [
        Claim::of_paper(SLIDES, "GIOPlite makes more calls in a second than GIOP")
            .published(
                "2 943 and 2 906, 1.3 % more; without marshalling 2 967 and 2 949, 0.6 % more",
            )
            .holds(judge(|gain| gain.ratio_low > 1.0 && gain.chance < LIKELY))
            .because("what is spared is less than what other things change from round to round"),
        Claim::of_paper(SLIDES, format!("the gain is small: {PERCENT} %, or less"))
            .published(
                "so small (2 %) that hacking GIOP is of minimal gain except for low-bandwidth \
                 links",
            )
            .holds(judge(|gain| gain.ratio_low <= 1.0 + PERCENT / 100.0)),
    ]
}

/// Returns the gain of GIOPlite over GIOP, with the figures in words.
fn gain(outcome: &ProtocolsOutcome, giop: Contender) -> Option<(PairedRatio, String)> {
    let lite = giop.with(ProtocolSystem::GiopLite);
    let gain = outcome.p50_by(lite, giop)?.inverse();
    let rate = |of| {
        let rate = median(outcome.rates_of_one(of).into_iter())?;
        Some(units::count(rate.round() as u64))
    };
    let figures = format!(
        "{} and {} in a second; by p50 {:+.1} % ({:+.1} to {:+.1}), by chance {:.3}",
        rate(lite)?,
        rate(giop)?,
        percent(gain.ratio),
        percent(gain.ratio_low),
        percent(gain.ratio_high),
        gain.chance,
    );
    Some((gain, figures))
}

/// Converts a ratio to a gain in percent.
pub(super) fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// Judges whether calls that bypass the network's code take less.
fn local_is_quicker(outcome: &ProtocolsOutcome) -> Claim {
    let [uiop, iiop] =
        [Protocol::Uiop, Protocol::Iiop].map(|protocol| Contender::giop(protocol, ONE_CPU));
    Claim::of_paper(
        PLUGGABLE,
        "a call by Unix-domain sockets takes less than one by TCP",
    )
    .published("some 125 µs and 189 µs, a factor of 0.66")
    .by_ratio(p50_by(outcome, uiop, iiop), |ratio| ratio < 1.0)
}

/// Judges the share of the ORB in a call.
fn share_of_the_orb(outcome: &ProtocolsOutcome) -> Claim {
    let iiop = Contender::giop(Protocol::Iiop, ONE_CPU);
    let measured = outcome.by_raw(iiop).map(|by_raw| {
        let share = 1.0 - 1.0 / by_raw.ratio;
        let p50 = p50(outcome, iiop).unwrap_or_default();
        let figures = format!("{:.0} % of {p50}", share * 100.0);
        (share <= PUBLISHED_SHARE, figures)
    });
    Claim::of_paper(
        PLUGGABLE,
        "the ORB is at most 48 % of a call by TCP, and the rest is the system",
    )
    .published("some 90 µs of 189 µs")
    .holds(measured)
}

/// Returns the p50 of one by that of another in the same round, with both in words.
fn p50_by(outcome: &ProtocolsOutcome, of: Contender, to: Contender) -> Option<(f64, String)> {
    let by = outcome.p50_by(of, to)?;
    let figures = format!("{} and {}", p50(outcome, of)?, p50(outcome, to)?);
    Some((by.ratio, figures))
}

fn p50(outcome: &ProtocolsOutcome, of: Contender) -> Option<String> {
    let rounds = outcome.rounds(of)?;
    Some(units::time(rounds.latency.p50_us))
}

/// The smallest of calls in all places.
const ONE_CPU: Cell = Cell::of_calls(Placement::SameCpu, Waits::Block);
const TWO_CPUS: Cell = Cell::of_calls(Placement::AcrossCpus, Waits::Block);
const SPINNING: Cell = Cell::of_calls(Placement::AcrossCpus, Waits::Spin);

/// A factor, and the word that tells whether it may be reached.
type Limit = (&'static str, f64);

/// The limits of the p50 by that of the raw channel.
const MEMORY: Limit = ("below", 1.5);
const FUTEX: Limit = ("at most", 1.1);
const UNIX: Limit = ("at most", 1.15);
const TLS: Limit = ("at most", 1.15);
/// The p50 of omniORB over TCP by that of shared memory.
const AHEAD: f64 = 8.0;
/// The octets of a request that GIOPlite spares.
const SPARED: i64 = 15;
const PERCENT: f64 = 2.0;
/// The probability above which a difference may be chance.
const LIKELY: f64 = 0.05;
const PUBLISHED_SHARE: f64 = 0.48;
const SLIDES: &str = "tutorial slides 1999, GIOPlite";
const PLUGGABLE: &str = "Middleware 2000, latency of IIOP and UIOP";
