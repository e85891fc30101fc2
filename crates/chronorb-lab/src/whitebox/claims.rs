//! Whether the budgets are kept, and what the papers say is so.

use super::architectures;
use super::budget::{Allowed, KernelUse};
use super::outcome::{Outcome, Row, Side, SystemCall};
use super::report::per_call;
use crate::Claim;

/// All claims: two for each side that has a budget, and those by architecture.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let budgeted = outcome.rows.iter().filter_map(|row| {
        let budget = row.case.budget?;
        let allowed = match row.side {
            Side::Client => budget.client,
            Side::Server => budget.server?,
        };
        Some((row, allowed))
    });
    budgeted
        .flat_map(|(row, allowed)| [inside(row), kernel(row, &allowed)])
        .chain(architectures::claims(&outcome.architectures))
        .collect()
}

fn inside(row: &Row) -> Claim {
    let counts = &row.counts;
    let faults = counts.minor_faults + counts.major_faults;
    let gratuitous = [counts.allocations, counts.lock_operations, faults];
    let measured = format!(
        "{}, {} and {} in {} calls",
        gratuitous[0], gratuitous[1], gratuitous[2], row.calls
    );
    of_side(
        row,
        "0 allocations, 0 lock operations, 0 page faults",
        Some((gratuitous == [0; 3], measured)),
    )
}

fn kernel(row: &Row, allowed: &Allowed) -> Claim {
    let measured = row.system_calls.as_ref().map(|calls| {
        let holds = allowed.permits(row.calls, |of| used(calls, of));
        (holds, per_call(row))
    });
    of_side(row, &allowed.words(), measured)
}

fn of_side(row: &Row, words: &str, measured: Option<(bool, String)>) -> Claim {
    Claim::aim(format!("{}, {}: {words}", row.case.title, row.side.name())).holds(measured)
}

/// How often the kernel was asked for something of this use.
fn used(system_calls: &[SystemCall], kernel_use: KernelUse) -> u64 {
    let of_use = system_calls
        .iter()
        .filter(|of| KernelUse::of(&of.name) == kernel_use);
    of_use.map(|of| of.calls).sum()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::case::{CASES, Place};
    use super::super::{Counts, Plan};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Findings;

    fn calls(names: &[&str], each: u64) -> Option<Vec<SystemCall>> {
        let call = |name: &&str| SystemCall {
            name: (*name).to_owned(),
            calls: each,
            octets: 100 * each,
        };
        Some(names.iter().map(call).collect())
    }

    /// One that keeps all budgets.
    pub(in super::super) fn outcome() -> Outcome {
        let plan = Plan::full();
        let each = u64::from(plan.calls);
        let mut rows = Vec::new();
        for case in &CASES {
            let (client, server): (&[_], &[_]) = match (case.name, case.place) {
                (_, Place::Collocated) => (&[], &[]),
                ("oneway" | "oneway-at-once", _) => (&["sendto"], &["epoll_pwait2", "recvfrom"]),
                // A thread stays with the connection.
                ("default-pool", _) => (&["sendto", "recvfrom"], &["recvfrom", "sendto"]),
                _ => (
                    &["sendto", "recvfrom"],
                    &["epoll_pwait2", "recvfrom", "sendto"],
                ),
            };
            let counts = Counts::default();
            let mut add = |side, names| {
                rows.push(Row::new(case, side, plan, counts, calls(names, each)));
            };
            add(Side::Client, client);
            if case.place != Place::Collocated {
                add(Side::Server, server);
            }
        }
        Outcome {
            plan,
            environment: Environment::example(),
            rows,
            architectures: architectures::rows(),
            untraced: None,
        }
    }

    fn missed(outcome: &Outcome) -> Vec<String> {
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
            calls.push(SystemCall {
                name: "futex".to_owned(),
                calls: 1,
                octets: 0,
            });
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
