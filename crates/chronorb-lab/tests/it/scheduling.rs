//! The experiment `scheduling`, run for real with next to nothing.

use chronorb_lab::scheduling::{
    DispatchOrder, FigureSource, FileRow, FirstRelease, Scheduling, SchedulingPart, SchedulingPlan,
};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_part_is_simulated_and_run_on_lanes() {
    let outcome = Scheduling::measure(&SchedulingPlan::tiny()).expect("it can be measured");
    let overload = outcome.overload.as_ref().expect("it was run");
    for order in [
        DispatchOrder::RateMonotonic,
        DispatchOrder::CriticalityFirst,
    ] {
        for source in [FigureSource::Simulated, FigureSource::Measured] {
            let rows = overload.tasks.iter();
            let rows = rows.filter(|row| row.order == order && row.source == source);
            assert_eq!(rows.clone().count(), 8, "{order} {source:?}");
            assert_eq!(rows.map(|row| row.met + row.missed).sum::<u64>(), 72);
        }
    }
    assert_eq!(overload.frames.len(), 3);
    assert!(overload.frames.iter().all(|frame| frame.margin_ns > 0));
    assert_eq!(overload.loads.len(), 5 * 21);

    let bounds = outcome.bounds.as_ref().expect("it was run");
    assert_eq!(bounds.costs.len(), 3);
    assert_eq!(bounds.tasks.len(), 2 * (4 + 4 + 12));
    for row in &bounds.tasks {
        assert!(row.measured_ns > 0 || row.jobs == 0, "{row:?}");
        assert!(
            row.jobs > 0 || row.release == FirstRelease::Random,
            "{row:?}"
        );
        assert!(
            row.unexplained <= row.above && row.above <= row.jobs,
            "{row:?}"
        );
    }

    let look_ups = outcome.look_ups.as_ref().expect("they were counted");
    assert_eq!(look_ups.tables.is_empty(), !look_ups.refused.is_empty());
    for table in &look_ups.tables {
        assert!(
            0.0 < table.by_handle && table.by_handle < table.by_name,
            "{table:?}"
        );
    }
    let queues = outcome.queues.as_ref().expect("they were counted");
    assert_eq!(queues.rows.is_empty(), !queues.refused.is_empty());
    assert!(queues.rows.iter().all(|row| row.mean > 0.0), "{queues:?}");
    assert_eq!(queues.allocations, 0);
    assert_eq!(outcome.overruns.len(), 3 * 3);
    assert!(!outcome.recomputed.is_empty());
    assert!(outcome.segments.is_some());
    assert!(!outcome.static_service.is_empty());
    assert_eq!(outcome.hops.len(), 6);
    assert!(!outcome.one_lane.is_empty());
    check_files(&outcome.files);

    let claims = outcome.claims();
    assert_eq!(claims.len(), 5 + 1 + 1 + 1 + 3 + 2 + 1 + 3 + 3 + 2 + 9);
    for simulated in [0, 1] {
        assert_eq!(claims[simulated].verdict(), Verdict::Pass);
    }
    assert_ne!(claims[11].verdict(), Verdict::Missed, "{:?}", claims[11]);

    let page = outcome.html();
    assert_eq!(
        page.matches("<svg").count(),
        3 + 3 + 1 + 1 + 1 + 1 + 2 * usize::from(!look_ups.tables.is_empty())
    );
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "scheduling");
    for row in figures["rows"].as_array().expect("it is a list") {
        assert!(row["part"].is_string() && row["kind"].is_string(), "{row}");
    }
}

/// Checks the watched operations of schedule files: the analysed and simulated responses in
/// microseconds, and that the ORB has executed jobs.
fn check_files(rows: &[FileRow]) {
    let watched: Vec<_> = rows.iter().filter(|row| row.watched).collect();
    let known = watched.iter().map(|row| {
        let analysed = row.analysed_ns.map(|time| time / 1_000);
        (row.file.as_str(), analysed)
    });
    let known: Vec<_> = known.collect();
    assert_eq!(
        known,
        [
            ("one-way-call", Some(15_000)),
            ("waiting-threads, 1 thread", None),
            ("waiting-threads, 2 threads", None),
            ("waiting-threads, 3 threads", None),
            ("waiting-threads", Some(5_000)),
            ("one-thread", Some(55_000)),
            ("one-thread, 2 threads", Some(3_000)),
            ("nested-call", Some(13_300)),
            ("inherited-priority", Some(7_000)),
            ("activity-threads, 1 thread", None),
            ("activity-threads", Some(23_000)),
        ]
    );
    assert_eq!(rows.len(), 2 + 4 * 7 + 2 * 5 + 3 + 3 + 2 * 3);
    for row in rows {
        assert!(row.jobs > 0 && row.measured_ns > 0, "{row:?}");
        assert!(row.missed <= row.jobs, "{row:?}");
        for (analysed, simulated) in [
            (row.analysed_ns, row.simulated_ns),
            (
                row.analysed_with_overhead_ns,
                row.simulated_with_overhead_ns,
            ),
        ] {
            assert!(analysed.is_none_or(|it| simulated <= it), "{row:?}");
        }
    }
}

fn one_part_is_run_alone() {
    let mut plan = SchedulingPlan::tiny();
    plan.parts = vec![SchedulingPart::Overload];
    let outcome = Scheduling::measure(&plan).expect("it can be measured");
    assert!(outcome.overload.is_some() && outcome.bounds.is_none());
    assert!(outcome.html().contains("lab scheduling --only x1"));
    assert_eq!("x9".parse(), Ok(SchedulingPart::Responses));
    let error = "x2".parse::<SchedulingPart>().expect_err("there is none");
    assert!(
        error.contains("x1, x3, x4, x5, x8, x9, x10, x11, x12, x13, x14"),
        "{error}"
    );
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "every_part_is_simulated_and_run_on_lanes",
        every_part_is_simulated_and_run_on_lanes,
    ),
    ("one_part_is_run_alone", one_part_is_run_alone),
];
