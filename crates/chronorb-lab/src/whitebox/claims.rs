//! The claims: the budgets are kept, and the papers' results hold.

use super::architectures;
use super::budget::{KernelBudget, KernelUse};
use super::outcome::{SideCosts, WhiteboxOutcome, WhiteboxSide};
use super::report::per_call;
use crate::Claim;

/// Judges all claims: two for each side that has a budget, and those by architecture.
pub(super) fn of(outcome: &WhiteboxOutcome) -> Vec<Claim> {
    let budgeted = outcome.rows.iter().filter_map(|row| {
        let budget = row.case.budget?;
        let kernel_budget = match row.side {
            WhiteboxSide::Client => budget.client,
            WhiteboxSide::Server => budget.server?,
        };
        Some([inside(row), kernel(row, &kernel_budget)])
    });
    let by_architecture = architectures::claims(&outcome.architectures);
    budgeted.flatten().chain(by_architecture).collect()
}

/// Judges the counts of a side in user space.
fn inside(row: &SideCosts) -> Claim {
    let counts = &row.counts;
    let faults = counts.minor_faults + counts.major_faults;
    let gratuitous = [counts.allocations, counts.lock_operations, faults];
    let [allocations, locks, faults] = gratuitous;
    let measured = format!("{allocations}, {locks} and {faults} in {} calls", row.calls);
    let words = "0 allocations, 0 lock operations, 0 page faults";
    of_side(row, words, Some((gratuitous == [0; 3], measured)))
}

/// Judges the system calls of a side.
fn kernel(row: &SideCosts, budget: &KernelBudget) -> Claim {
    let measured = row.system_calls.as_ref().map(|calls| {
        let used = |kernel_use| {
            let of_use = calls
                .iter()
                .filter(|(name, _)| KernelUse::of(name) == kernel_use);
            of_use.map(|(_, (calls, _))| calls).sum()
        };
        (budget.permits(row.traced, used), per_call(row))
    });
    of_side(row, &budget.words(), measured)
}

fn of_side(row: &SideCosts, words: &str, measured: Option<(bool, String)>) -> Claim {
    let (title, side) = (row.case.title, row.side.name());
    Claim::aim(format!("{title}, {side}: {words}")).holds(measured)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Whitebox;
    use super::super::case::{CASES, ObjectPlace};
    use super::super::counts::{Counts, ProcessCosts};
    use super::super::trial::CallsByName;
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::{Experiment, Findings};

    fn calls(names: &[&str], each: u64) -> Option<CallsByName> {
        let call = |name: &&str| ((*name).to_owned(), (each, 100 * each));
        Some(names.iter().map(call).collect())
    }

    /// An outcome that keeps all budgets.
    pub(in super::super) fn outcome() -> WhiteboxOutcome {
        let plan = Whitebox::full();
        let each = u64::from(plan.calls);
        let mut rows = Vec::new();
        for case in &CASES {
            let (client, server): (&[_], &[_]) = match (case.name, case.place) {
                (_, ObjectPlace::Collocated) => (&[], &[]),
                ("oneway" | "oneway-at-once", _) => (&["sendto"], &["epoll_pwait2", "recvfrom"]),
                // A thread stays with the connection.
                ("default-pool", _) => (&["sendto", "recvfrom"], &["recvfrom", "sendto"]),
                _ => (
                    &["sendto", "recvfrom"],
                    &["epoll_pwait2", "recvfrom", "sendto"],
                ),
            };
            let has_server = case.place != ObjectPlace::Collocated;
            let none = ProcessCosts::default();
            rows.extend(SideCosts::of_sides(
                *case,
                [each; 2],
                [Some(none), has_server.then_some(none)],
                [calls(client, each), calls(server, each)],
            ));
        }
        WhiteboxOutcome {
            plan,
            environment: Environment::example(),
            rows,
            architectures: architectures::rows(),
            untraced: None,
        }
    }

    fn missed(outcome: &WhiteboxOutcome) -> Vec<String> {
        let missed = outcome.claims().into_iter();
        let missed = missed.filter(|claim| claim.verdict() == Verdict::Missed);
        missed.map(|claim| claim.claim).collect()
    }

    #[test]
    fn what_is_kept_passes() {
        let claims = outcome().claims();
        // Five remote cases with two sides, and two within one process.
        let by_architecture = architectures::claims(&architectures::rows());
        assert_eq!(claims.len(), 2 * (2 * 5 + 2) + by_architecture.len());
        assert!(
            claims.iter().all(|claim| claim.verdict() == Verdict::Pass),
            "{claims:?}"
        );
    }

    #[test]
    fn one_allocation_lock_or_fault_in_all_calls_breaks_it() {
        let spoils: [fn(&mut Counts); 4] = [
            |counts| counts.allocations = 1,
            |counts| counts.lock_operations = 1,
            |counts| counts.minor_faults = 1,
            |counts| counts.major_faults = 1,
        ];
        for spoil in spoils {
            let mut outcome = outcome();
            spoil(&mut outcome.rows[1].counts);
            let missed = missed(&outcome);
            assert_eq!(missed.len(), 1);
            assert!(missed[0].contains("server: 0 allocations"), "{missed:?}");
        }
    }

    #[test]
    fn one_system_call_too_many_breaks_it() {
        let mut outcome = outcome();
        for row in &mut outcome.rows {
            let calls = row.system_calls.as_mut().expect("they were traced");
            calls.insert("futex".to_owned(), (1, 0));
        }
        assert_eq!(missed(&outcome).len(), 2 * 5 + 2);
    }

    #[test]
    fn nothing_is_claimed_of_what_could_not_be_traced() {
        let mut outcome = outcome();
        for row in &mut outcome.rows {
            row.system_calls = None;
        }
        outcome.architectures.clear();
        let claims = outcome.claims();
        let unknown = claims
            .iter()
            .filter(|claim| claim.verdict() == Verdict::NotMeasured);
        let by_architecture = architectures::claims(&[]).len();
        assert_eq!(unknown.count(), 2 * 5 + 2 + by_architecture);
        assert_eq!(missed(&outcome), [""; 0]);
    }

    #[test]
    fn figures_for_programs_have_the_documented_shape() {
        let outcome = outcome();
        let figures = outcome.figures();
        assert_eq!(figures["experiment"], "whitebox");
        assert!(figures["environment"].is_object() && figures["not_counted"].is_null());
        let row = &figures["rows"][1];
        assert_eq!(
            (&row["case"], &row["side"]),
            (&"twoway".into(), &"server".into())
        );
        assert_eq!(row["allocations"], 0.0);
        assert_eq!(row["system_calls"]["sendto"], 1.0);
        assert_eq!(row["octets_by_kernel"], 300.0);
        assert_eq!(row.as_object().unwrap().len(), 12);
        let row = figures["rows"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&row["architecture"], &row["side"]),
            (&"filter-chain".into(), &"server".into())
        );
        assert_eq!(row["synchronisation_percent"], 50.0);
        assert_eq!(
            (&row["futex_calls"], &row["clients"]),
            (&2.0.into(), &10.into())
        );
        assert_eq!(figures["published_lock_operations"][3]["server"], 100);
        assert_eq!(figures["claims"][0]["verdict"], "PASS");
    }
}
