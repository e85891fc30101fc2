//! The claims by architecture: own aims, and results of the papers.

use chronorb_orb::Architecture;
use chronorb_probe::Activity;

use super::super::outcome::{SideCosts, WhiteboxSide};
use super::super::published::PublishedLocks;
use super::super::report::number;
use super::Configuration;
use crate::Claim;

/// Judges all claims, own aims first.
pub(in super::super) fn of(rows: &[SideCosts<Configuration>]) -> Vec<Claim> {
    let own = sides(rows, Architecture::RealTime);
    let gratuitous =
        WhiteboxSide::ALL.map(|side| gratuitous(own.map(|own| own[side as usize]), side));
    let futexes = WhiteboxSide::ALL.map(|side| futexes(own.map(|own| own[side as usize]), side));
    let mut claims = [gratuitous, futexes].concat();
    claims.push(switches(own));
    claims.push(fewest_locks(rows, own));
    claims.push(no_kernel_locks(own));
    claims.push(negligible(own));
    claims.extend(CONVENTIONAL.map(|of| takes_locks(sides(rows, of.architecture), of)));
    let waits = CONVENTIONAL.iter();
    claims.extend(waits.filter_map(|of| waits_long(sides(rows, of.architecture), *of)));
    claims
}

/// The costs of client and server.
type Sides<'a> = [&'a SideCosts<Configuration>; 2];

/// The statements of the papers about a conventional ORB.
#[derive(Clone, Copy)]
struct ConventionalOrb {
    orb: &'static str,
    architecture: Architecture,
    /// The figure and the shares of synchronisation, if the text gives any.
    synchronisation: Option<(&'static str, &'static str)>,
    /// The reason why chronorb takes no locks with this architecture, if it takes none.
    why_no_locks: &'static str,
}

const CONVENTIONAL: [ConventionalOrb; 3] = [
    ConventionalOrb {
        orb: "CORBAplus",
        architecture: Architecture::WorkerPool,
        synchronisation: Some(("RTAS 1998, figure 9", "client 52 %, server 45 %")),
        why_no_locks: "",
    },
    ConventionalOrb {
        orb: "miniCOOL",
        architecture: Architecture::LeaderFollowersMuxed,
        synchronisation: Some((
            "RTAS 1998, figure 10",
            "client about 50 %, server more than 40 %",
        )),
        why_no_locks: "The server's half of this architecture hands a connection over by the \
                       kernel's epoll set and one atomic word; miniCOOL's locks were mostly those \
                       of dynamic memory.",
    },
    ConventionalOrb {
        orb: "MT-Orbix",
        architecture: Architecture::FilterChain,
        synchronisation: None,
        why_no_locks: "",
    },
];

fn gratuitous(own: Option<&SideCosts<Configuration>>, side: WhiteboxSide) -> Claim {
    let measured = own.map(|row| {
        let [allocations, locks] = [row.counts.allocations, row.counts.lock_operations];
        let words = format!("{allocations} and {locks} in {} calls", row.calls);
        (allocations == 0 && locks == 0, words)
    });
    let words = "0 allocations, 0 lock operations";
    Claim::aim(format!("{REAL_TIME}, {}: {words}", side.name())).holds(measured)
}

fn futexes(own: Option<&SideCosts<Configuration>>, side: WhiteboxSide) -> Claim {
    let measured = own.and_then(|row| {
        let futexes = row.futex_calls()?;
        Some((futexes == 0, format!("{futexes} in {} calls", row.traced)))
    });
    Claim::aim(format!("{REAL_TIME}, {}: 0 futex calls", side.name())).holds(measured)
}

fn switches(own: Option<Sides<'_>>) -> Claim {
    let claim = format!(
        "{REAL_TIME}: at most 2 context switches for each call because a thread waits, on both \
         sides together"
    );
    Claim::aim(claim).holds(own.map(|sides| {
        let [client, server] = sides.map(|row| row.each(row.counts.voluntary_switches));
        // The clients wait for their signals, too.
        let holds = client + server <= 2.005;
        (holds, format!("client {client:.2}, server {server:.2}"))
    }))
}

fn fewest_locks(rows: &[SideCosts<Configuration>], own: Option<Sides<'_>>) -> Claim {
    let measured = || {
        let [client, server] = own?.map(SideCosts::paper_locks);
        let mut words = format!("{} and {}", number(client), number(server));
        let mut holds = true;
        for ConventionalOrb {
            orb, architecture, ..
        } in CONVENTIONAL
        {
            let others = sides(rows, architecture)?.map(SideCosts::paper_locks);
            holds &= client + server < others[0] + others[1];
            let [client, server] = others.map(number);
            words.push_str(&format!("; as {orb} {client} and {server}"));
        }
        Some((holds, words))
    };
    let claim = "TAO's architecture takes fewer locks for each request, on client and server \
                 together, than those of the other ORBs";
    Claim::of_paper(FIGURE_13, claim)
        .published(
            "client 41 and server 100; as CORBAplus 199 and 216, as miniCOOL 94 and 231, as \
             MT-Orbix 175 and 599",
        )
        .holds(measured())
}

fn no_kernel_locks(own: Option<Sides<'_>>) -> Claim {
    let measured = own.and_then(|[client, server]| {
        let [client, server] = [client.futex_calls()?, server.futex_calls()?];
        let words = format!("client {client} and server {server} futex calls in all");
        Some((client + server == 0, words))
    });
    Claim::of_paper(
        "RTAS 1998, section 2.2.2 and figure 14",
        "TAO's architecture uses no kernel-level locks",
    )
    .published("none in the ORB core")
    .holds(measured)
}

fn negligible(own: Option<Sides<'_>>) -> Claim {
    let claim = "With TAO's architecture synchronisation takes a negligible share of the time: \
                 less than 1 % on each side";
    Claim::of_paper("RTAS 1998, figure 12", claim)
        .published("negligible")
        .holds(own.map(|sides| synchronisation(sides, |share| share < 1.0)))
}

fn takes_locks(sides: Option<Sides<'_>>, of: ConventionalOrb) -> Claim {
    let measured = sides.map(|sides| {
        let [client, server] = sides.map(SideCosts::paper_locks);
        let words = format!("client {}, server {}", number(client), number(server));
        (client >= 1.0 && server >= 1.0, words)
    });
    let claim = format!(
        "{}'s architecture takes locks for each request, on both sides",
        of.orb
    );
    Claim::of_paper(FIGURE_13, claim)
        .published(PublishedLocks::words(of.orb))
        .holds(measured)
        .because(of.why_no_locks)
}

fn waits_long(sides: Option<Sides<'_>>, of: ConventionalOrb) -> Option<Claim> {
    let (figure, published) = of.synchronisation?;
    let claim = format!(
        "With {}'s architecture synchronisation takes 40 % of the time or more, on both sides",
        of.orb
    );
    let claim = Claim::of_paper(figure, claim)
        .published(published)
        .holds(sides.map(|sides| synchronisation(sides, |share| share >= 40.0)))
        .because(
            "A lock without contention costs some nanoseconds today, and little or nothing is \
             allocated under one: what is left of synchronisation is to wake threads and to fall \
             asleep.",
        );
    Some(claim)
}

/// Judges the shares of synchronisation on both sides.
fn synchronisation(sides: Sides<'_>, holds: impl Fn(f64) -> bool) -> (bool, String) {
    let [client, server] = sides.map(|row| row.percent(Activity::Synchronisation));
    let words = format!("client {client:.1} %, server {server:.1} %");
    (holds(client) && holds(server), words)
}

/// Returns the costs of an architecture on client and server.
fn sides(rows: &[SideCosts<Configuration>], architecture: Architecture) -> Option<Sides<'_>> {
    let mut pairs = rows.as_chunks::<2>().0.iter();
    let pair = pairs.find(|[client, _]| client.subject.architecture == architecture)?;
    Some(pair.each_ref())
}

const REAL_TIME: &str = "real-time architecture, ten clients";
const FIGURE_13: &str = "RTAS 1998, figure 13";

#[cfg(test)]
pub(in super::super) mod tests {
    use chronorb_probe::ActivityTimes;

    use super::super::super::Whitebox;
    use super::super::super::counts::{Counts, ProcessCosts};
    use super::super::{CLIENTS, CONFIGURATIONS};
    use super::*;
    use crate::experiment::Experiment;

    /// Costs that keep the budget, and are like those of the papers.
    pub(in super::super::super) fn rows() -> Vec<SideCosts<Configuration>> {
        let plan = Whitebox::full();
        let [calls, traced] = [plan.calls_of_each, plan.traced_of_each()]
            .map(|each| u64::from(CLIENTS) * u64::from(each));
        let rows = CONFIGURATIONS.into_iter().flat_map(|configuration| {
            let is_own = configuration.architecture == Architecture::RealTime;
            let costs = ProcessCosts {
                counts: Counts {
                    lock_operations: if is_own { 0 } else { 3 * calls },
                    voluntary_switches: calls,
                    ..Counts::default()
                },
                times: ActivityTimes {
                    nanoseconds: [2, 5, if is_own { 0 } else { 8 }, 1, 0]
                        .map(|us| us * 1000 * calls),
                    intervals: [1; 5],
                },
            };
            let names = [("sendto", 1), ("recvfrom", 1), ("futex", 2)];
            let names = &names[..if is_own { 2 } else { 3 }];
            let system_calls = names.iter();
            let system_calls = system_calls
                .map(|(name, each)| ((*name).to_owned(), (each * traced, 0)))
                .collect();
            let system_calls = Some(system_calls);
            let both = [system_calls.clone(), system_calls];
            SideCosts::of_sides(configuration, [calls, traced], [Some(costs); 2], both)
        });
        rows.collect()
    }

    fn not_so(rows: &[SideCosts<Configuration>]) -> Vec<String> {
        let claims = of(rows).into_iter();
        let not_so = claims.filter(|claim| !["met", "reproduced"].contains(&claim.word()));
        not_so.map(|claim| claim.claim).collect()
    }

    #[test]
    fn what_is_as_the_papers_say_is_reproduced() {
        assert_eq!(not_so(&rows()), [""; 0]);
        let claims = of(&rows());
        let own = claims.iter().filter(|claim| claim.paper.is_none());
        assert_eq!((own.count(), claims.len()), (5, 13));
    }

    #[test]
    fn one_lock_on_one_side_of_the_real_time_architecture_breaks_its_budget() {
        let mut rows = rows();
        rows[1].counts.lock_operations = 1;
        let not_so = not_so(&rows);
        assert_eq!(not_so.len(), 1, "{not_so:?}");
        assert!(not_so[0].ends_with("server: 0 allocations, 0 lock operations"));
    }

    #[test]
    fn a_futex_call_breaks_it_and_is_a_kernel_lock() {
        let mut rows = rows();
        let calls = rows[0].system_calls.as_mut().unwrap();
        calls.insert("futex".to_owned(), (1, 0));
        let not_so = not_so(&rows);
        assert_eq!(not_so.len(), 2, "{not_so:?}");
        assert!(not_so[0].ends_with("client: 0 futex calls"));
        assert!(not_so[1].contains("no kernel-level locks"));
    }

    #[test]
    fn what_is_not_as_in_the_papers_says_why() {
        let mut rows = rows();
        let server = rows
            .iter_mut()
            .rfind(|row| row.subject.architecture == Architecture::LeaderFollowersMuxed);
        server.unwrap().counts.lock_operations = 0;
        let claims = of(&rows);
        let mut not = claims.iter().filter(|claim| claim.word() == "missed");
        let claim = not.next().unwrap();
        assert_eq!(claim.measured, "client 6, server 0");
        assert!(claim.why.contains("epoll"), "{}", claim.why);
        assert!(not.next().is_none());
    }

    #[test]
    fn nothing_is_claimed_of_what_was_not_measured() {
        assert!(
            of(&[])
                .iter()
                .all(|claim| claim.word().to_lowercase() == "not measured")
        );
    }
}
