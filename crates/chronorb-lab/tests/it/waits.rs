//! The experiment `waits`, run for real with next to nothing.

use chronorb_lab::waits::{
    IoUring, Processors, WaitMethod, WaitsClass, WaitsExperiment, WaitsPlan,
};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_way_is_measured_where_it_can_be() {
    let plan = WaitsPlan::tiny();
    let outcome = WaitsExperiment::measure(&plan).expect("it can be measured");
    let has_ring = matches!(outcome.io_uring, IoUring::Permitted(_));
    let real_time = outcome.environment.max_fifo_priority.is_some();
    if !(has_ring && real_time && outcome.processors > 1) {
        harness::not_run(&format!("in part: {:?}", outcome.caveats()));
    }

    for class in [WaitsClass::Ordinary, WaitsClass::RealTime] {
        for processors in [Processors::One, Processors::Two] {
            for way in WaitMethod::ALL {
                for idle in &plan.idle {
                    let rows = outcome.rows.iter().filter(|row| {
                        let setting = row.setting;
                        row.way == way
                            && (setting.class, setting.processors) == (class, processors)
                            && setting.idle == *idle
                    });
                    let rows: Vec<_> = rows.collect();
                    let is_ring = format!("{way:?}").starts_with("Ring");
                    let spins = format!("{way:?}").starts_with("Spin");
                    let expected = (class == WaitsClass::Ordinary || real_time)
                        && (outcome.processors > 1 || processors == Processors::One)
                        && (processors == Processors::Two || !spins)
                        && (has_ring || !is_ring);
                    let rounds = if expected { plan.rounds as usize } else { 0 };
                    assert_eq!(rows.len(), rounds, "{class:?} {processors:?} {way:?}");
                    for row in rows {
                        let latency = row.latency;
                        assert_eq!(latency.calls, u64::from(plan.calls));
                        assert!(0.0 < latency.p50_us && latency.p50_us <= latency.p99_us);
                        assert!(latency.p99_us <= latency.max_us, "{row:?}");
                    }
                }
            }
        }
    }

    for claim in outcome.claims() {
        let asks = claim.claim.contains("io_uring");
        let can_be = (has_ring || !asks)
            && (real_time || !claim.claim.contains("FIFO"))
            && (outcome.processors > 1 || !claim.claim.contains("two CPUs"));
        assert_eq!(claim.ratio.is_some(), can_be, "{claim:?}");
        assert_eq!(claim.measured.is_empty(), !can_be, "{claim:?}");
        let is_judged = claim.verdict() != Verdict::NotMeasured;
        assert_eq!(
            is_judged,
            can_be && !asks,
            "two rounds are too few: {claim:?}"
        );
    }

    let text = outcome.text();
    for part in [
        "one CPU, 3 idle connections",
        "epoll, edge-triggered",
        "recv on the hot connection",
        "short run",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let page = outcome.html();
    assert_eq!(page.matches("<svg").count(), 2);
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "waits");
}

fn an_unwritable_report_is_refused() {
    harness::an_unwritable_report_is_refused::<WaitsExperiment>(WaitsPlan::tiny());
}

pub(crate) const TESTS: &[harness::Test] = &[
    (
        "every_way_is_measured_where_it_can_be",
        every_way_is_measured_where_it_can_be,
    ),
    (
        "an_unwritable_report_is_refused",
        an_unwritable_report_is_refused,
    ),
];
