//! The statements that are judged.

use chronorb_report::units;

use super::bounds::BoundFigures;
use super::outcome::SchedulingOutcome;
use super::overload::{DispatchOrder, OverloadFigures};
use crate::Claim;

/// Returns all claims of the parts that were run.
pub(super) fn of(outcome: &SchedulingOutcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Some(overload) = &outcome.overload {
        claims.push(keeps_critical(overload));
        claims.push(simulates_as_known(overload));
        let on_lanes =
            DispatchOrder::FIXED.map(|order| runs_as_simulated(outcome, overload, order));
        claims.extend(on_lanes);
    }
    if let Some(bounds) = &outcome.bounds {
        claims.push(simulated_within(bounds));
        claims.push(measured_within(outcome, bounds));
    }
    claims
}

/// The met and missed jobs of critical operations, then of the others, in one frame.
pub(super) const KNOWN: [(DispatchOrder, [(u64, u64); 2]); 4] = [
    (DispatchOrder::RateMonotonic, [(20, 16), (30, 6)]),
    (DispatchOrder::EarliestDeadline, [(3, 33), (7, 29)]),
    (DispatchOrder::LeastLaxity, [(2, 34), (2, 34)]),
    (DispatchOrder::MaximumUrgency, [(36, 0), (0, 36)]),
];

fn keeps_critical(overload: &OverloadFigures) -> Claim {
    let claim = "MUF, simulated: critical operations keep all deadlines at a load of 1.296";
    let (met, missed) = overload.simulated(DispatchOrder::MaximumUrgency, true);
    let measured = format!("{met} met, {missed} missed");
    Claim::of_paper("Gill and others 2001, abstract", claim)
        .published("guarantees of critical operations hold under overload")
        .holds(Some((missed == 0, measured)))
}

fn simulates_as_known(overload: &OverloadFigures) -> Claim {
    let claim = "RMS, EDF, MLF and MUF, simulated: met and missed deadlines as worked out by hand";
    let counts = KNOWN.map(|(order, known)| {
        let counts = [true, false].map(|critical| overload.simulated(order, critical));
        let [(met, missed), (other_met, other_missed)] = counts;
        let (title, words) = (
            order.title(),
            format!("{met}/{missed} and {other_met}/{other_missed}"),
        );
        (counts == known, format!("{title} {words}"))
    });
    let holds = counts.iter().all(|(equal, _)| *equal);
    let words = counts.map(|(_, words)| words).join(", ");
    Claim::aim(claim).holds(Some((holds, format!("critical and other: {words}"))))
}

fn runs_as_simulated(
    outcome: &SchedulingOutcome,
    overload: &OverloadFigures,
    order: DispatchOrder,
) -> Claim {
    let claim = format!(
        "Lanes, {}: each operation meets and misses as many deadlines as in the simulation, except \
         in frames in which a disturbance exceeds the least margin",
        order.title()
    );
    let frames = || overload.frames.iter().filter(|frame| frame.order == order);
    let equal = frames().filter(|frame| frame.equal).count();
    let other = || frames().filter(|frame| !frame.equal);
    let unexplained = other().filter(|frame| frame.disturbance_ns <= frame.margin_ns);
    let margin = frames().map(|frame| frame.margin_ns).min().unwrap_or(0);
    let measured = format!(
        "{equal} of {} frames equal, {} disturbed by more than {}",
        frames().count(),
        other().count() - unexplained.clone().count(),
        units::time(margin as f64 / 1e3),
    );
    let holds = equal > 0 && unexplained.count() == 0;
    Claim::aim(claim).holds(outcome.real_time.then_some((holds, measured)))
}

fn simulated_within(bounds: &BoundFigures) -> Claim {
    let claim = "No simulated response exceeds the analysed one";
    let rows = || bounds.tasks.iter().filter(|row| row.analysed_ns.is_some());
    let above = rows().filter(|row| Some(row.simulated_ns) > row.analysed_ns);
    let above = above.count();
    let measured = format!("{above} of {} simulated tasks above", rows().count());
    let holds = rows().count() > 0;
    Claim::aim(claim).holds(holds.then_some((above == 0, measured)))
}

fn measured_within(outcome: &SchedulingOutcome, bounds: &BoundFigures) -> Claim {
    let claim = "No response on lanes exceeds the analysed one by more than the stolen time and the \
                 doctor's latencies of the same run";
    let sum = |of: fn(&super::BoundRow) -> u64| bounds.tasks.iter().map(of).sum::<u64>();
    let [jobs, above, unexplained] = [sum(|row| row.jobs), sum(|row| row.above), {
        sum(|row| row.unexplained)
    }];
    let measured = format!(
        "{} of {} jobs above, {} of them by less than the disturbance, {unexplained} by more",
        units::count(above),
        units::count(jobs),
        units::count(above - unexplained),
    );
    let judged = outcome.real_time && jobs > 0;
    Claim::aim(claim).holds(judged.then_some((unexplained == 0, measured)))
}
