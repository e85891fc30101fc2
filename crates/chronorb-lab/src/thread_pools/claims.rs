//! The paper's claims about the strategies and about thread pools, held against the figures.

use super::outcome::{ThreadPoolsOutcome, percent};
use super::plan::PoolCell;
use super::semantics::Promise;
use crate::Claim;

/// Returns all claims: those about the figures, then those about the rules of thread pools.
pub(super) fn of(outcome: &ThreadPoolsOutcome) -> Vec<Claim> {
    [of_figures(outcome), of_promises(outcome)].concat()
}

/// Returns the claims about the measurements of the paper.
pub(super) fn of_figures(outcome: &ThreadPoolsOutcome) -> Vec<Claim> {
    vec![
        never_slower(outcome),
        greatest_with_little_work(outcome),
        greatest(outcome),
        least(outcome),
        falls_with_work(outcome),
        falls_with_threads(outcome),
    ]
}

/// Returns the claims about the rules of thread pools.
pub(super) fn of_promises(outcome: &ThreadPoolsOutcome) -> Vec<Claim> {
    let claims = Promise::ALL.into_iter().flat_map(|promise| {
        let observations = outcome.observations.iter();
        let observations = observations.filter(move |seen| seen.promise == promise);
        observations.map(|observation| {
            let [claim, published] = observation.promise.words();
            let claim = format!("{}: {claim}", observation.strategy.title());
            let kept = observation.kept;
            Claim::of_paper(SECTION_2, claim)
                .published(published)
                .holds(kept.map(|kept| (kept, observation.seen.clone())))
        })
    });
    claims.collect()
}

/// Claims that Leader/Followers are ahead in every cell.
fn never_slower(outcome: &ThreadPoolsOutcome) -> Claim {
    let all = outcome.improvements();
    let behind = all.iter().filter(|(_, improvement)| *improvement <= 0.0);
    let behind: Vec<String> = behind.copied().map(improvement_at).collect();
    let measured = outcome.extremes().map(|[least, _]| {
        let (ahead, cells) = (all.len() - behind.len(), all.len());
        let least = improvement_at(least);
        let words = format!("ahead in {ahead} of {cells} cells; the least improvement is {least}");
        (behind.is_empty(), words)
    });
    Claim::of_paper(FIGURE_13, "Leader/Followers are ahead in every cell")
        .published("for all combinations of threads and work")
        .holds(measured)
        .because(format!("not ahead: {}", behind.join(", ")))
}

/// Claims that the greatest improvement is in a cell with few threads and little work.
fn greatest_with_little_work(outcome: &ThreadPoolsOutcome) -> Claim {
    let half = |all: &[u32]| all.last().map_or(0, |most| most / 2);
    let plan = &outcome.plan;
    let measured = outcome.extremes().map(|[_, greatest]| {
        let (cell, _) = greatest;
        let few = cell.threads <= half(&plan.threads).max(1);
        (
            few && cell.work_us <= half(&plan.work_us),
            improvement_at(greatest),
        )
    });
    Claim::of_paper(
        FIGURE_13,
        "the improvement is greatest with few threads and little work",
    )
    .published("for a small number of threads and a small amount of work")
    .holds(measured)
    .because("the greatest is elsewhere")
}

/// Claims that the greatest improvement is about as great as published.
fn greatest(outcome: &ThreadPoolsOutcome) -> Claim {
    let greatest = outcome.extremes().map(|[_, greatest]| greatest);
    Claim::of_paper(
        FIGURE_13,
        "the greatest improvement is 2,800 %, by a factor of 2",
    )
    .published("about 2,800 %")
    .by_ratio(greatest.map(by_factor), |factor| {
        (GREATEST / 2.0..GREATEST * 2.0).contains(&factor)
    })
    .because(
        "the paper attributes the cost of Half-Sync/Half-Async to allocation, locking and copying. \
         Here neither strategy allocates or copies for a request, and one hand-over remains: a \
         lock within the process, a wake-up, and a change of threads",
    )
}

/// Claims that even the least improvement is considerable.
fn least(outcome: &ThreadPoolsOutcome) -> Claim {
    let least = outcome.extremes().map(|[least, _]| least);
    Claim::of_paper(FIGURE_13, "the least improvement is 8 % or more")
        .published("about 8 %")
        .by_ratio(least.map(by_factor), |factor| factor >= LEAST)
        .because(
            "the hand-over takes some µs, which is a smaller share of more work; the paper does \
             not give the unit of its work",
        )
}

/// Returns the time of Half-Sync/Half-Async by that of Leader/Followers, with the cell in words.
fn by_factor(improvement: (PoolCell, f64)) -> (f64, String) {
    (1.0 + improvement.1 / 100.0, improvement_at(improvement))
}

/// Claims that for each number of threads, the improvement is less with the most work than with
/// the least.
fn falls_with_work(outcome: &ThreadPoolsOutcome) -> Claim {
    let plan = &outcome.plan;
    let line = |&threads: &u32| {
        let cell = |work_us| PoolCell { threads, work_us };
        Some([*plan.work_us.first()?, *plan.work_us.last()?].map(cell))
    };
    falls(
        outcome,
        plan.threads.iter().map(line),
        "the improvement decreases with the work of a request",
        "numbers of threads",
    )
}

/// Claims that for each amount of work, the improvement is less with the most threads than with
/// the fewest.
fn falls_with_threads(outcome: &ThreadPoolsOutcome) -> Claim {
    let plan = &outcome.plan;
    let line = |&work_us: &u32| {
        let cell = |threads| PoolCell { threads, work_us };
        Some([*plan.threads.first()?, *plan.threads.last()?].map(cell))
    };
    falls(
        outcome,
        plan.work_us.iter().map(line),
        "the improvement decreases with the number of threads",
        "amounts of work",
    )
    .because(
        "the client keeps the server busy, so on one CPU further threads change little for either \
         strategy; the paper's server had four CPUs",
    )
}

/// Claims that the improvement is less in the second cell of each line than in the first.
fn falls(
    outcome: &ThreadPoolsOutcome,
    lines: impl Iterator<Item = Option<[PoolCell; 2]>>,
    claim: &'static str,
    of_what: &'static str,
) -> Claim {
    let lines = lines.map(|line| {
        let [first, last] = line?.map(|cell| outcome.improvement(cell));
        Some((first?, last?))
    });
    let measured = lines.collect::<Option<Vec<_>>>().map(|lines| {
        let falling = lines.iter().filter(|(first, last)| last < first).count();
        let all = lines.iter();
        let all = all.map(|(first, last)| format!("{} to {}", percent(*first), percent(*last)));
        let all = all.collect::<Vec<_>>().join(", ");
        let words = format!("for {falling} of {} {of_what}: {all}", lines.len());
        (falling == lines.len(), words)
    });
    Claim::of_paper(FIGURE_13, claim)
        .published("decreased to about 8 % as threads and work increased")
        .holds(measured)
}

/// Returns an improvement and its cell in words.
pub(super) fn improvement_at((cell, improvement): (PoolCell, f64)) -> String {
    format!("{} {}", percent(improvement), at(cell))
}

/// Returns a cell in words.
pub(super) fn at(cell: PoolCell) -> String {
    let plural = if cell.threads == 1 { "" } else { "s" };
    let PoolCell { threads, work_us } = cell;
    format!("with {threads} thread{plural} and {work_us} µs of work")
}

const FIGURE_13: &str = "OM 2001, figure 13";
const SECTION_2: &str = "OM 2001, section 2";
/// The published improvements, as the time of one strategy by that of the other.
const GREATEST: f64 = 29.0;
const LEAST: f64 = 1.08;

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    /// Returns an extra cost that falls with the number of threads.
    fn as_in_the_paper(cell: PoolCell) -> f64 {
        280.0 / f64::from(cell.threads).powi(2) + 10.0 / f64::from(cell.threads)
    }

    fn words(outcome: &ThreadPoolsOutcome) -> Vec<&'static str> {
        of(outcome).iter().map(Claim::word).collect()
    }

    #[test]
    fn the_papers_figures_reproduce_its_claims() {
        let outcome = outcome(as_in_the_paper);
        assert_eq!(
            words(&outcome)[..6],
            ["reproduced"; 6],
            "{:#?}",
            of(&outcome)
        );
    }

    #[test]
    fn cells_with_the_other_strategy_ahead_are_named() {
        let outcome = outcome(|cell| match (cell.threads, cell.work_us) {
            (6, 100) => -2.0,
            (threads, _) => 7.0 - f64::from(threads),
        });
        let claims = of(&outcome);
        assert_eq!(words(&outcome)[0], "missed");
        assert!(
            claims[0].measured.starts_with("ahead in 29 of 30 cells"),
            "{:?}",
            claims[0]
        );
        assert!(
            claims[0].why.contains("-1.8 % with 6 threads and 100 µs"),
            "{:?}",
            claims[0]
        );
        assert_eq!(words(&outcome)[2..4], ["missed"; 2]);
        assert!(claims[2].why.contains("hand-over"));
    }

    #[test]
    fn an_improvement_that_is_the_same_everywhere_does_not_decrease() {
        let outcome = outcome(|cell| (10.0 + f64::from(cell.work_us)) * 0.1);
        assert_eq!(words(&outcome)[4..6], ["missed"; 2]);
    }

    #[test]
    fn promises_are_claims_of_each_strategy() {
        let outcome = outcome(as_in_the_paper);
        let claims = of(&outcome);
        let promises = &claims[6..];
        assert_eq!(promises.len(), 10);
        let broken = |claim: &&Claim| claim.word() == "missed";
        assert_eq!(promises.iter().filter(broken).count(), 1);
        assert!(promises[0].measured.starts_with("seen with"));
    }

    #[test]
    fn claims_without_figures_are_not_measured() {
        let mut outcome = outcome(as_in_the_paper);
        outcome.trials.clear();
        assert_eq!(words(&outcome)[..6], ["not measured"; 6]);
    }
}
