//! The claims about the figures.

use super::outcome::TimeProbesOutcome;
use super::path::Layer;
use crate::Claim;
use crate::bench::Placement;
use crate::units;

/// Judges all claims.
pub(super) fn of(outcome: &TimeProbesOutcome) -> Vec<Claim> {
    let mut claims = vec![cheap_stamps(outcome), free_when_off(outcome)];
    for place in [Placement::SameCpu, Placement::AcrossCpus] {
        let cases = outcome.cases();
        if cases.iter().any(|(_, placement)| *placement == place) {
            claims.push(bottleneck(outcome, place));
            claims.push(constant_overhead(outcome, place));
        }
    }
    claims
}

fn cheap_stamps(outcome: &TimeProbesOutcome) -> Claim {
    let cost = outcome.cost.stamp_ns;
    let claim = format!("a stamp takes less than {CHEAP} ns");
    Claim::of_paper(SLIDES, claim)
        .published("at most 1 µs")
        .holds(Some((cost < CHEAP, format!("{cost:.1} ns"))))
        .because("the clock is not the processor's own, or the machine was busy")
}

fn free_when_off(outcome: &TimeProbesOutcome) -> Claim {
    let off = outcome.cost.dearest_off_ns();
    let all = off * f64::from(outcome.stamps_of_a_call);
    let wholes = outcome.cases().into_iter();
    let wholes = wholes.filter_map(|case| Some(outcome.unstamped(case)?.time.p50_us));
    let least = wholes.fold(f64::INFINITY, f64::min);
    let percent = all / (least * 1e3) * 100.0;
    let measured = format!(
        "{off:.2} ns each, {all:.0} ns in all, {percent:.2} % of {}",
        units::time(least)
    );
    Claim::aim(format!(
        "points that are off take less than {FREE} % of the quickest call"
    ))
    .holds(least.is_finite().then_some((percent < FREE, measured)))
    .because("the machine was busy while the points were measured, or this is no release build")
}

/// Judges whether the operating system takes more time than the ORB.
fn bottleneck(outcome: &TimeProbesOutcome, place: Placement) -> Claim {
    let case = ("iiop", place);
    let measured = || {
        let orb = outcome.layer(case, Layer::Orb)?.percent;
        let kernel = outcome.layer(case, Layer::OperatingSystem)?.percent;
        let text = format!("ORB {orb:.1} %, operating system {kernel:.1} %");
        Some((kernel > orb, text))
    };
    let claim = format!(
        "iiop, {}: the bottleneck is the operating system, not the ORB",
        place.name()
    );
    Claim::of_paper(SLIDES, claim)
        .published("ORB about 49 µs of each two-way call")
        .holds(measured())
}

/// Judges whether the ORB takes the same time by all transports.
fn constant_overhead(outcome: &TimeProbesOutcome, place: Placement) -> Claim {
    let cases = outcome.cases().into_iter().filter(|(_, at)| *at == place);
    let times = cases.filter_map(|case| {
        let row = outcome.layer(case, Layer::Orb)?;
        Some((row.time.p50_us, case.0))
    });
    let mut times: Vec<(f64, &str)> = times.collect();
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    let words = |(us, transport): (f64, &str)| format!("{} by {transport}", units::time(us));
    let measured = || {
        let [least, .., most] = times[..] else {
            return None;
        };
        let text = format!("{} to {}", words(least), words(most));
        Some((most.0 / least.0.max(1e-3), text))
    };
    let claim = format!(
        "{}: what the ORB takes is relatively constant, whatever the transport (p50 within \
         {CONSTANT})",
        place.name()
    );
    Claim::of_paper(SLIDES, claim)
        .published("relatively constant and low")
        .by_ratio(measured(), |ratio| ratio <= CONSTANT)
}

const SLIDES: &str = "Tutorial, pluggable protocols";
const CHEAP: f64 = 50.0;
/// A limit in percent.
const FREE: f64 = 1.0;
const CONSTANT: f64 = 1.5;

#[cfg(test)]
pub(super) mod tests {
    use super::super::TimeProbes;
    use super::super::cost::StampCost;
    use super::super::outcome::rows;
    use super::super::path::{CallPath, PARTS};
    use super::super::plan::{MissingTransport, TRANSPORTS};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Experiment;

    /// An outcome that makes all claims true.
    pub(in super::super) fn outcome() -> TimeProbesOutcome {
        let mut all = Vec::new();
        for transport in TRANSPORTS.into_iter().skip(1).take(2) {
            let path = |number: u64| CallPath {
                parts: PARTS.map(|part| match part.layer {
                    Layer::OperatingSystem => 4_000 + number,
                    _ => 50 + number % 7,
                }),
                sending: [1_000, 1_100],
            };
            let paths: Vec<_> = (0..100).map(path).collect();
            let unstamped = [8_500, 8_700];
            all.extend(rows((transport, Placement::SameCpu), &paths, &unstamped));
            all.extend(rows((transport, Placement::AcrossCpus), &paths, &unstamped));
        }
        TimeProbesOutcome {
            plan: TimeProbes::short(),
            environment: Environment::example(),
            cost: StampCost {
                clock: "the processor's time stamp counter".to_owned(),
                stamp_ns: 21.5,
                stage_off_ns: 0.5,
                turn_off_ns: 0.8,
            },
            missing: vec![MissingTransport {
                transport: "ssliop",
                why: "no openssl".to_owned(),
            }],
            stamps_of_a_call: 40,
            rows: all,
        }
    }

    #[test]
    fn what_holds_is_reproduced_and_what_does_not_is_missed() {
        let claims = of(&outcome());
        assert_eq!(claims.len(), 6);
        for claim in &claims {
            assert_eq!(claim.verdict(), Verdict::Pass, "{claim:?}");
        }
        let mut outcome = outcome();
        outcome.cost.stamp_ns = 51.0;
        outcome.cost.stage_off_ns = 2.5;
        for row in &mut outcome.rows {
            let is_orb = row.layer == Some(Layer::Orb) && row.part.is_none();
            if is_orb && row.transport == "iiop" {
                row.percent = 95.0;
                row.time.p50_us *= 2.0;
            }
        }
        for claim in of(&outcome) {
            assert_eq!(claim.verdict(), Verdict::Missed, "{claim:?}");
        }
    }
}
