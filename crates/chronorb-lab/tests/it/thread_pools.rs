//! A real run of the experiment `thread-pools` with its smallest plan.

use chronorb_lab::thread_pools::{PoolCell, Promise, Strategy, ThreadPools, ThreadPoolsPlan};
use chronorb_lab::{Experiment, Findings, Verdict};

use crate::harness;

fn every_cell_is_measured_by_both_strategies() {
    let plan = ThreadPoolsPlan::tiny();
    let outcome = ThreadPools::measure(&plan).expect("it can be measured");
    for &threads in &plan.threads {
        for &work_us in &plan.work_us {
            let cell = PoolCell { threads, work_us };
            for strategy in Strategy::ALL {
                let trials = outcome.trials.iter();
                let trials: Vec<_> = trials
                    .filter(|trial| trial.cell == cell && trial.strategy == strategy)
                    .collect();
                assert_eq!(trials.len(), plan.rounds as usize, "{cell:?} {strategy:?}");
                for trial in trials {
                    assert_eq!(trial.requests, plan.requests);
                    let work_ms = f64::from(work_us * plan.requests) / 1e3;
                    assert!(trial.elapsed_ms > 0.0, "{trial:?}");
                    assert!(trial.server_cpu_ms > work_ms / 4.0, "it worked: {trial:?}");
                }
            }
            assert!(outcome.improvement(cell).is_some(), "{cell:?}");
        }
    }
    assert_eq!(
        outcome.rows().len(),
        2 * plan.threads.len() * plan.work_us.len()
    );

    assert_eq!(
        outcome.observations.len(),
        Strategy::ALL.len() * Promise::ALL.len()
    );
    for observation in &outcome.observations {
        assert_ne!(observation.kept, Some(false), "{observation:?}");
    }
    for claim in outcome.claims() {
        assert_eq!(
            claim.measured.is_empty(),
            claim.verdict() == Verdict::NotMeasured,
            "{claim:?}"
        );
    }

    let text = outcome.text();
    for part in ["3 threads", "50 µs of work", "short run", "TRANSIENT"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let page = outcome.html();
    assert_eq!(page.matches("<svg").count(), 2);
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "thread-pools");
    assert_eq!(figures["semantics"].as_array().map(Vec::len), Some(10));
}

pub(crate) const TESTS: &[harness::Test] = &[(
    "every_cell_is_measured_by_both_strategies",
    every_cell_is_measured_by_both_strategies,
)];
