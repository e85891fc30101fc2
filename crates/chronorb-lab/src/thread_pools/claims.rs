//! What the paper says of the strategies and of thread pools, held against the figures.

use super::case::Cell;
use super::outcome::{Outcome, percent};
use super::semantics::Promise;
use crate::Claim;

/// All claims: of the figures, then of what thread pools do.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    [of_figures(outcome), of_promises(outcome)].concat()
}

/// What the paper found by measuring.
pub(super) fn of_figures(outcome: &Outcome) -> Vec<Claim> {
    vec![
        never_slower(outcome),
        greatest_where_little_is_done(outcome),
        greatest(outcome),
        least(outcome),
        falls_with_work(outcome),
        falls_with_threads(outcome),
    ]
}

/// What the paper says that thread pools do.
pub(super) fn of_promises(outcome: &Outcome) -> Vec<Claim> {
    let mut claims = Vec::new();
    for promise in Promise::ALL {
        let observations = outcome.observations.iter();
        for observation in observations.filter(|o| o.promise == promise) {
            let claim = format!("{}: {}", observation.strategy.title(), promise.claim());
            let seen = observation
                .kept
                .map(|kept| (kept, observation.seen.clone()));
            claims.push(
                Claim::of_paper(SECTION_2, claim)
                    .published(promise.published())
                    .holds(seen),
            );
        }
    }
    claims
}

/// Leader/Followers are ahead in every cell.
fn never_slower(outcome: &Outcome) -> Claim {
    let all = outcome.improvements();
    let behind: Vec<String> = all
        .iter()
        .filter(|(_, improvement)| *improvement <= 0.0)
        .map(|(cell, improvement)| format!("{} {}", percent(*improvement), at(*cell)))
        .collect();
    let measured = outcome.extremes().map(|[least, _]| {
        let ahead = all.len() - behind.len();
        let said = format!(
            "ahead in {ahead} of {} cells; the least improvement is {} {}",
            all.len(),
            percent(least.1),
            at(least.0)
        );
        (behind.is_empty(), said)
    });
    Claim::of_paper(FIGURE_13, "Leader/Followers are ahead in every cell")
        .published("for all combinations of threads and work")
        .holds(measured)
        .because(format!("not ahead: {}", behind.join(", ")))
}

/// The greatest improvement is where threads are few and the work is small.
fn greatest_where_little_is_done(outcome: &Outcome) -> Claim {
    let few = |cell: Cell| {
        let half = |all: &[u32]| all.iter().copied().max().unwrap_or(0) / 2;
        cell.threads <= half(&outcome.plan.threads).max(1)
            && cell.work_us <= half(&outcome.plan.work_us)
    };
    let measured = outcome.extremes().map(|[_, (cell, improvement)]| {
        (few(cell), format!("{} {}", percent(improvement), at(cell)))
    });
    Claim::of_paper(
        FIGURE_13,
        "the improvement is greatest with few threads and little work",
    )
    .published("for a small number of threads and a small amount of work")
    .holds(measured)
    .because("the greatest is elsewhere")
}

/// The greatest improvement is about as great as published.
fn greatest(outcome: &Outcome) -> Claim {
    let measured = outcome.extremes().map(|[_, greatest]| by_factor(greatest));
    Claim::of_paper(
        FIGURE_13,
        "the greatest improvement is 2,800 %, by a factor of 2",
    )
    .published("about 2,800 %")
    .by_ratio(measured, |factor| {
        (GREATEST / 2.0..GREATEST * 2.0).contains(&factor)
    })
    .because(
        "the paper blames allocation, locking and copying for what Half-Sync/Half-Async takes more. Here neither \
         strategy allocates or copies for a request, and one hand-over is what is left: a lock within the process, \
         a wake-up, and a change of threads",
    )
}

/// Even the least improvement is not small.
fn least(outcome: &Outcome) -> Claim {
    let measured = outcome.extremes().map(|[least, _]| by_factor(least));
    Claim::of_paper(FIGURE_13, "the least improvement is 8 % or more")
        .published("about 8 %")
        .by_ratio(measured, |factor| factor >= LEAST)
        .because(
            "the hand-over takes some µs, which is a smaller share of more work; the paper does not tell the unit of \
             its work",
        )
}

/// What Half-Sync/Half-Async took by what Leader/Followers did, and where.
fn by_factor((cell, improvement): (Cell, f64)) -> (f64, String) {
    let said = format!("{} {}", percent(improvement), at(cell));
    (1.0 + improvement / 100.0, said)
}

/// For each number of threads the improvement is less with the most work than with the least.
fn falls_with_work(outcome: &Outcome) -> Claim {
    let by_threads = outcome.plan.threads.iter();
    let falls = by_threads
        .map(|&threads| {
            let of = |work_us: Option<u32>| {
                outcome.improvement(Cell {
                    threads,
                    work_us: work_us?,
                })
            };
            let works = || outcome.plan.work_us.iter().copied();
            Some((of(works().min())?, of(works().max())?))
        })
        .collect();
    falls_all(
        falls,
        "the improvement decreases with the work of a request",
        "numbers of threads",
    )
}

/// For each amount of work the improvement is less with the most threads than with the fewest.
fn falls_with_threads(outcome: &Outcome) -> Claim {
    let by_work = outcome.plan.work_us.iter();
    let falls = by_work
        .map(|&work_us| {
            let of = |threads: Option<u32>| {
                outcome.improvement(Cell {
                    threads: threads?,
                    work_us,
                })
            };
            let threads = || outcome.plan.threads.iter().copied();
            Some((of(threads().min())?, of(threads().max())?))
        })
        .collect();
    falls_all(
        falls,
        "the improvement decreases with the number of threads",
        "amounts of work",
    )
    .because(
        "the client leaves the server no rest, so that threads beyond the first change little on one CPU for either \
         strategy; the paper's server had four CPUs",
    )
}

/// The improvement is less at the end of each line than at its beginning.
fn falls_all(lines: Option<Vec<(f64, f64)>>, claim: &'static str, of_what: &'static str) -> Claim {
    let measured = lines.map(|lines| {
        let falling = lines.iter().filter(|(first, last)| last < first).count();
        let all: Vec<String> = lines
            .iter()
            .map(|(first, last)| format!("{} to {}", percent(*first), percent(*last)))
            .collect();
        let said = format!(
            "for {falling} of {} {of_what}: {}",
            lines.len(),
            all.join(", ")
        );
        (falling == lines.len(), said)
    });
    Claim::of_paper(FIGURE_13, claim)
        .published("decreased to about 8 % as threads and work increased")
        .holds(measured)
}

/// Where a cell is.
pub(super) fn at(cell: Cell) -> String {
    let threads = match cell.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    format!("with {threads} and {} µs of work", cell.work_us)
}

const FIGURE_13: &str = "OM 2001, figure 13";
const SECTION_2: &str = "OM 2001, section 2";
/// The published improvements, as what one strategy took by what the other did.
const GREATEST: f64 = 29.0;
const LEAST: f64 = 1.08;

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    /// More for fewer threads, and a smaller share of more work.
    fn as_in_the_paper(cell: Cell) -> f64 {
        280.0 / f64::from(cell.threads).powi(2) + 10.0 / f64::from(cell.threads)
    }

    fn words(outcome: &Outcome) -> Vec<&'static str> {
        of(outcome).iter().map(Claim::word).collect()
    }

    #[test]
    fn figures_like_the_papers_reproduce_its_claims() {
        let outcome = outcome(as_in_the_paper);
        assert_eq!(
            words(&outcome)[..6],
            ["reproduced"; 6],
            "{:#?}",
            of(&outcome)
        );
    }

    #[test]
    fn where_the_other_strategy_is_ahead_is_said() {
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
    fn nothing_measured_is_nothing_claimed() {
        let mut outcome = outcome(as_in_the_paper);
        outcome.trials.clear();
        assert_eq!(words(&outcome)[..6], ["not measured"; 6]);
    }
}
