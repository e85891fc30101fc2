//! The statements that are judged.

use chronorb_report::stats::quantile;
use chronorb_report::units;

use super::bounds::BoundFigures;
use super::files;
use super::hops;
use super::look_up::SchedulerLookUps;
use super::one_lane;
use super::outcome::SchedulingOutcome;
use super::overload::{DispatchOrder, FigureSource, OverloadFigures};
use super::overrun::{LONG_DEADLINE, OverrunRow};
use super::queue;
use super::recompute::RecomputeRow;
use super::static_service::StaticServiceRow;
use super::threads::SegmentFigures;
use crate::Claim;

/// Returns all claims of the parts that were run.
pub(super) fn of(outcome: &SchedulingOutcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Some(overload) = &outcome.overload {
        claims.push(keeps_critical(overload));
        claims.push(simulates_as_expected(overload));
        let on_lanes =
            DispatchOrder::FIXED.map(|order| runs_as_simulated(outcome, overload, order));
        claims.extend(on_lanes);
        claims.push(keeps_critical_on_lanes(outcome, overload));
    }
    if let Some(look_ups) = &outcome.look_ups {
        claims.push(looks_up_flat(look_ups));
    }
    claims.extend(outcome.queues.as_ref().map(queue::claim));
    if !outcome.recomputed.is_empty() {
        claims.push(computes_in_time(&outcome.recomputed));
    }
    if let Some(segments) = &outcome.segments {
        claims.extend([
            costs_little(segments),
            allocates_nothing(segments),
            reaches_the_head(segments),
        ]);
    }
    if let Some(bounds) = &outcome.bounds {
        claims.push(simulated_within(bounds));
        claims.push(measured_within(outcome, bounds));
    }
    if !outcome.static_service.is_empty() {
        claims.push(schedules_by_table(&outcome.static_service));
    }
    if !outcome.overruns.is_empty() {
        claims.extend(contains_overruns(outcome));
    }
    if !outcome.hops.is_empty() {
        claims.extend(hops::claims(outcome));
    }
    if !outcome.one_lane.is_empty() {
        claims.extend(one_lane::claims(outcome));
    }
    if !outcome.files.is_empty() {
        claims.extend(files::claims(outcome));
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

fn keeps_critical_on_lanes(outcome: &SchedulingOutcome, overload: &OverloadFigures) -> Claim {
    let claim = "Lanes of two criticalities in the order of MUF: critical operations keep all \
                 deadlines, except in frames in which a disturbance exceeds the least margin";
    let order = DispatchOrder::MaximumUrgency;
    let critical = || {
        overload
            .of(order, FigureSource::Measured)
            .filter(|row| row.critical)
    };
    let frames = || overload.frames.iter().filter(|frame| frame.order == order);
    let missed_in = |round| {
        critical()
            .filter(move |row| row.round == round)
            .any(|row| row.missed > 0)
    };
    let unexplained = frames()
        .filter(|frame| missed_in(frame.round) && frame.disturbance_ns <= frame.margin_ns)
        .count();
    let (met, missed) = critical().fold((0, 0), |(met, missed), row| {
        (met + row.met, missed + row.missed)
    });
    let measured = format!(
        "{met} of {} critical deadlines met in {} frames, {unexplained} frames unexplained",
        met + missed,
        frames().count(),
    );
    let holds = met > 0 && unexplained == 0;
    Claim::aim(claim).holds(outcome.real_time.then_some((holds, measured)))
}

fn simulates_as_expected(overload: &OverloadFigures) -> Claim {
    let claim = "RMS, EDF, MLF and MUF, simulated: the expected deadlines are met and missed";
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
    let claim = "No response on lanes exceeds the analysed one by more than the stolen time and \
                 the doctor's latencies of the same run";
    let sum = |of: fn(&super::BoundRow) -> u64| bounds.tasks.iter().map(of).sum::<u64>();
    let (jobs, above) = (sum(|row| row.jobs), sum(|row| row.above));
    let [late, unexplained] = [sum(|row| row.called_late), sum(|row| row.unexplained)];
    let measured = format!(
        "{} of {} jobs above, {} of them by less than the disturbance, {late} by less than that \
         and the lateness of their calls, {unexplained} by more",
        units::count(above),
        units::count(jobs),
        units::count(above - late - unexplained),
    );
    let judged = outcome.real_time && jobs > 0;
    Claim::aim(claim).holds(judged.then_some((late + unexplained == 0, measured)))
}

fn looks_up_flat(look_ups: &SchedulerLookUps) -> Claim {
    let claim = "A look-up takes as many instructions among 10,000 operations as among 10: by \
                 handle exactly, by name within a half";
    let ends = look_ups.tables.first().zip(look_ups.tables.last());
    let measured = ends.map(|(least, most)| {
        let words = format!(
            "by handle {} and {}, by name {} and {} instructions",
            most.by_handle, least.by_handle, most.by_name, least.by_name
        );
        let flat = most.by_handle == least.by_handle;
        let ratio = most.by_name / least.by_name.max(1.0);
        (flat && (1.0 / NEARLY..=NEARLY).contains(&ratio), words)
    });
    Claim::aim(claim).holds(measured)
}

fn computes_in_time(rows: &[RecomputeRow]) -> Claim {
    let claim = "The scheduling service computes 1,000 operations within 10 ms";
    let most = rows.iter().max_by_key(|row| row.operations);
    let measured = most.filter(|row| row.operations >= 1_000).map(|row| {
        let least = units::time(row.least_ns as f64 / 1e3);
        let longest = units::time(row.longest_ns as f64 / 1e3);
        let (operations, dependencies) = (row.operations, row.dependencies);
        let words = format!(
            "{least} to {longest} for {} operations and {dependencies} calls between them",
            units::count(operations.into())
        );
        (row.longest_ns < 10_000_000, words)
    });
    Claim::aim(claim).holds(measured)
}

fn costs_little(segments: &SegmentFigures) -> Claim {
    let claim = "A call within a segment takes at most 100 ns longer than one outside, the median \
                 of batches";
    let within = segments.costs.iter().find_map(|row| row.extra_ns);
    let measured = within.map(|extra| (extra <= 100.0, format!("{extra:.0} ns longer")));
    Claim::aim(claim).holds(measured)
}

fn allocates_nothing(segments: &SegmentFigures) -> Claim {
    let claim = "Calls within segments allocate nothing";
    let count = segments.allocations;
    let measured = format!("{} allocations of the client", units::count(count));
    Claim::aim(claim).holds(Some((count == 0, measured)))
}

fn reaches_the_head(segments: &SegmentFigures) -> Claim {
    let claim = "A cancellation reaches a head that is three calls away within 10 ms, at the 99th \
                 percentile";
    let far = segments.cancellations.iter().filter(|row| row.hops == 3);
    let mut times: Vec<_> = far.map(|row| row.latency_ns as f64 / 1e3).collect();
    let measured = (!times.is_empty()).then(|| {
        let [half, most] = [0.5, 0.99].map(|of| quantile(&mut times, of));
        let words = format!("p50 {}, p99 {}", units::time(half), units::time(most));
        (most <= 10_000.0, words)
    });
    Claim::aim(claim).holds(measured)
}

fn schedules_by_table(rows: &[StaticServiceRow]) -> Claim {
    let claim = "The static scheduling service costs less than 1 µs for a call and its activity";
    let activity = rows.iter().filter(|row| row.extra_ns.is_none()).nth(1);
    let extra = rows.iter().find_map(|row| row.extra_ns);
    let measured = activity.zip(extra).map(|(activity, extra)| {
        let activity = activity.median_ns;
        let words = format!("activity {activity:.0} ns, call {extra:.0} ns longer");
        (activity + extra.max(0.0) < 1_000.0, words)
    });
    Claim::of_paper("URI's scheduling service for TAO, at 3.0 GHz", claim)
        .published("interceptors of 150 µs, 2 ms and 75 µs")
        .holds(measured)
}

/// The others keep their deadlines if the overrun is demoted. If the next jobs are skipped, those
/// with long deadlines keep them.
fn contains_overruns(outcome: &SchedulingOutcome) -> [Claim; 3] {
    let claim = |claim, policy: &str, task: Option<&str>, holds: fn(u64) -> bool| {
        let rows = outcome.overruns.iter();
        let rows = rows.filter(|row| row.policy == policy && !row.overruns);
        let rows: Vec<_> = rows
            .filter(|row| task.is_none_or(|it| row.task == it))
            .collect();
        let sum = |of: fn(&OverrunRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
        let (missed, unexplained) = (sum(|row| row.missed), sum(|row| row.unexplained));
        let measured = format!(
            "{missed} of {} jobs of others missed their deadlines, {} of them by less than the \
             disturbance",
            sum(|row| row.jobs),
            missed - unexplained,
        );
        Claim::aim(claim).holds(outcome.real_time.then_some((holds(unexplained), measured)))
    };
    [
        claim(
            "Overrun of three budgets, no policy: other operations miss deadlines",
            "off",
            None,
            |missed| missed > 0,
        ),
        claim(
            "Overrun, policy demote: other operations keep all deadlines, but for disturbances",
            "demote",
            None,
            |missed| missed == 0,
        ),
        claim(
            "Overrun, policy skip: operations with long deadlines keep them, but for disturbances",
            "skip",
            Some(LONG_DEADLINE),
            |missed| missed == 0,
        ),
    ]
}

/// The greatest factor between the instructions of look-ups by name.
const NEARLY: f64 = 1.5;

#[cfg(test)]
pub(super) mod tests {
    use super::super::bounds::tests::figures;
    use super::super::look_up::TableLookUps;
    use super::super::overload::{FrameRow, simulated};
    use super::super::plan::SchedulingPlan;
    use super::super::threads::{CancellationRow, SegmentCostRow};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Findings;

    /// An outcome of which all claims hold: lanes behave as the simulator.
    pub(in super::super) fn outcome() -> SchedulingOutcome {
        let mut overload = simulated().unwrap();
        for order in DispatchOrder::ON_LANES {
            let rows = overload.of(order, FigureSource::Simulated).cloned();
            let rows = rows.map(|mut row| {
                (row.source, row.round) = (FigureSource::Measured, 1);
                row
            });
            let rows: Vec<_> = rows.collect();
            overload.tasks.extend(rows);
            overload.frames.push(FrameRow {
                order,
                round: 1,
                equal: true,
                disturbance_ns: 90_000,
                margin_ns: 1_000_000,
            });
        }
        overload.call_cost_ns = 20_000;
        SchedulingOutcome {
            plan: SchedulingPlan::full(),
            environment: Environment::example(),
            real_time: true,
            one_cpu: false,
            memory_locked: true,
            overload: Some(overload),
            look_ups: Some(look_ups()),
            queues: Some(queue::tests::figures()),
            bounds: Some(figures()),
            overruns: overruns(),
            recomputed: recomputed(),
            segments: Some(segments()),
            static_service: static_service(),
            hops: hops::tests::rows(),
            one_lane: one_lane::tests::rows(),
            files: files::tests::rows(),
        }
    }

    fn recomputed() -> Vec<RecomputeRow> {
        let rows = [(10, 200_000), (1_000, 8_000_000)];
        let rows = rows.map(|(operations, longest_ns)| RecomputeRow {
            operations,
            dependencies: operations * 4 / 5,
            rates: operations / 5,
            least_ns: longest_ns / 2,
            longest_ns,
        });
        rows.to_vec()
    }

    fn segments() -> SegmentFigures {
        let costs = [
            ("call outside of segments", 30_000.0, None),
            ("call within a segment", 30_090.0, Some(90.0)),
            ("begin and end of a nested segment", 120.0, None),
        ];
        let costs = costs.map(|(what, median_ns, extra_ns)| SegmentCostRow {
            what: what.to_owned(),
            median_ns,
            extra_ns,
        });
        let cancellations = [(1, 300_000), (3, 900_000), (3, 1_100_000)];
        let cancellations =
            cancellations.map(|(hops, latency_ns)| CancellationRow { hops, latency_ns });
        SegmentFigures {
            costs: costs.to_vec(),
            allocations: 0,
            cancellations: cancellations.to_vec(),
        }
    }

    fn static_service() -> Vec<StaticServiceRow> {
        let rows = [
            ("call of an object without the service", 30_000.0, None),
            ("call of a scheduled object", 30_010.0, Some(10.0)),
            ("schedule_activity, the same one", 90.0, None),
            ("schedule_activity, another one", 700.0, None),
        ];
        let rows = rows.map(|(what, median_ns, extra_ns)| StaticServiceRow {
            what: what.to_owned(),
            median_ns,
            extra_ns,
        });
        rows.to_vec()
    }

    fn look_ups() -> SchedulerLookUps {
        let tables = [(10, 40.0), (10_000, 44.5)].map(|(operations, by_name)| TableLookUps {
            operations,
            by_handle: 6.0,
            by_name,
        });
        SchedulerLookUps {
            tables: tables.to_vec(),
            refused: String::new(),
        }
    }

    /// Frames in which the overrun ends as its policy promises.
    fn overruns() -> Vec<OverrunRow> {
        let missed = [
            ("off", [1, 1, 1]),
            ("demote", [4, 0, 0]),
            ("skip", [0, 1, 0]),
        ];
        let rows = missed.into_iter().flat_map(|(policy, missed)| {
            let tasks = ["overrunning", "short deadline", LONG_DEADLINE]
                .into_iter()
                .zip(missed);
            tasks
                .enumerate()
                .map(move |(index, (task, missed))| OverrunRow {
                    policy: policy.to_owned(),
                    round: 1,
                    task: task.to_owned(),
                    overruns: index == 0,
                    jobs: [4, 4, 1][index],
                    missed,
                    unexplained: missed,
                    skipped: if policy == "skip" && index == 0 { 2 } else { 0 },
                    worst_ns: 61_000_000 + 10_000_000 * index as u64,
                    disturbance_ns: 90_000,
                })
        });
        rows.collect()
    }

    fn verdicts(outcome: &SchedulingOutcome) -> Vec<Verdict> {
        let claims = outcome.claims();
        claims.into_iter().map(|claim| claim.verdict()).collect()
    }

    #[test]
    fn what_holds_passes() {
        assert_eq!(verdicts(&outcome()), [Verdict::Pass; 31]);
    }

    #[test]
    fn a_frame_that_differs_needs_a_disturbance_above_its_margin() {
        let mut outcome = outcome();
        let frame = |outcome: &mut SchedulingOutcome, disturbance_ns| {
            let overload = outcome.overload.as_mut().unwrap();
            let frame = FrameRow {
                equal: false,
                disturbance_ns,
                ..overload.frames[0]
            };
            overload.frames.push(frame);
        };
        frame(&mut outcome, 1_000_001);
        assert_eq!(verdicts(&outcome)[2], Verdict::Pass);
        frame(&mut outcome, 1_000_000);
        assert_eq!(verdicts(&outcome)[2], Verdict::Missed);
    }

    #[test]
    fn a_response_above_the_analysis_is_a_miss() {
        let mut outcome = outcome();
        let row = &mut outcome.bounds.as_mut().unwrap().tasks[0];
        (row.above, row.called_late, row.unexplained) = (3, 1, 1);
        row.simulated_ns = row.analysed_ns.unwrap() + 1;
        assert_eq!(verdicts(&outcome)[11..13], [Verdict::Missed; 2]);
        let claim = &outcome.claims()[12];
        assert!(claim.measured.ends_with(
            "1 of them by less than the disturbance, 1 by less than that and the lateness of their \
             calls, 1 by more"
        ));
    }

    #[test]
    fn costs_of_threads_and_services_have_bounds() {
        let mut outcome = outcome();
        outcome.recomputed[1].longest_ns = 10_000_000;
        let segments = outcome.segments.as_mut().unwrap();
        segments.costs[1].extra_ns = Some(101.0);
        segments.allocations = 1;
        segments.cancellations[2].latency_ns = 10_000_001;
        outcome.static_service[2].median_ns = 991.0;
        let verdicts = verdicts(&outcome);
        for number in [7, 8, 9, 10, 13] {
            assert_eq!(verdicts[number], Verdict::Missed, "claim {number}");
        }
    }

    #[test]
    fn ordinary_threads_are_not_judged() {
        let mut outcome = outcome();
        outcome.real_time = false;
        let verdicts = verdicts(&outcome);
        let files = 23..31;
        for lanes in [2, 3, 4, 12, 14, 15, 16, 17, 18, 19, 20, 21]
            .into_iter()
            .chain(files)
        {
            assert_eq!(verdicts[lanes], Verdict::NotMeasured);
        }
    }
}
