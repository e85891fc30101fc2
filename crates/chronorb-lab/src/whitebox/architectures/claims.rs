//! The claims by architecture: own aims, and results of the papers.

use chronorb_probe::Activity;

use super::super::ARCHITECTURES;
use super::super::case::REAL_TIME;
use super::super::outcome::{SideCosts, WhiteboxSide};
use super::super::published::PublishedLocks;
use super::super::report::number;
use crate::Claim;

/// Judges all claims, own aims first.
pub(in super::super) fn of(rows: &[SideCosts]) -> Vec<Claim> {
    let own = sides(rows, REAL_TIME);
    let conventional = || {
        let orbs = ARCHITECTURES.iter();
        let orbs = orbs.filter_map(|of| Some((of.stands_for?, of.name)));
        orbs.filter(|(orb, _)| *orb != "TAO")
    };
    let mut claims = own_aims(own);
    claims.push(fewest_locks(
        own,
        conventional().map(|(orb, of)| (orb, sides(rows, of))),
    ));
    claims.extend(real_time(own));
    claims.extend(conventional().map(|(orb, of)| takes_locks(orb, sides(rows, of))));
    claims.extend(conventional().filter_map(|(orb, of)| waits(orb, sides(rows, of))));
    claims
}

/// The costs of client and server.
type Sides<'a> = [&'a SideCosts; 2];

/// Judges the aims of the real-time architecture.
fn own_aims(own: Option<Sides<'_>>) -> Vec<Claim> {
    let of_side = |words: &str, judge: fn(&SideCosts) -> Option<(bool, String)>| {
        WhiteboxSide::ALL.map(|side| {
            let measured = own.and_then(|own| judge(own[side as usize]));
            Claim::aim(format!("{OWN}, {}: {words}", side.name())).holds(measured)
        })
    };
    let gratuitous = of_side("0 allocations, 0 lock operations", |row| {
        let counts = [row.counts.allocations, row.counts.lock_operations];
        let words = format!("{} and {} in {} calls", counts[0], counts[1], row.calls);
        Some((counts == [0; 2], words))
    });
    let futexes = of_side("0 futex calls", |row| {
        let futexes = row.futex_calls()?;
        Some((futexes == 0, format!("{futexes} in {} calls", row.traced)))
    });
    let switches = Claim::aim(format!(
        "{OWN}: at most 2 context switches for each call because a thread waits, on both \
         sides together"
    ));
    let each = |row: &SideCosts| Some(row.each(row.counts.voluntary_switches));
    // The clients wait for their signals, too.
    let few = |[client, server]: [f64; 2]| client + server <= 2.005;
    let switches = switches.holds(both(own, each, |count| format!("{count:.2}"), few));
    let mut aims = [gratuitous, futexes].concat();
    aims.push(switches);
    aims
}

/// Judges whether the real-time architecture takes fewer locks than all conventional ones.
fn fewest_locks<'a>(
    own: Option<Sides<'a>>,
    others: impl Iterator<Item = (&'static str, Option<Sides<'a>>)>,
) -> Claim {
    let measured = || {
        let [client, server] = own?.map(SideCosts::paper_locks);
        let mut words = format!("{} and {}", number(client), number(server));
        let mut holds = true;
        for (orb, sides) in others {
            let others = sides?.map(SideCosts::paper_locks);
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

/// Judges what the papers state about TAO's architecture.
fn real_time(own: Option<Sides<'_>>) -> [Claim; 2] {
    let futexes = |row: &SideCosts| Some(row.futex_calls()? as f64);
    let negligible = "With TAO's architecture synchronisation takes a negligible share of the \
                      time: less than 1 % on each side";
    [
        Claim::of_paper(
            "RTAS 1998, section 2.2.2 and figure 14",
            "TAO's architecture uses no kernel-level locks",
        )
        .published("none in the ORB core")
        .holds(both(own, futexes, number, |futexes| futexes == [0.0; 2])),
        Claim::of_paper("RTAS 1998, figure 12", negligible)
            .published("negligible")
            .holds(synchronisation(own, |share| share < 1.0)),
    ]
}

/// Judges whether a conventional architecture takes locks.
fn takes_locks(orb: &str, sides: Option<Sides<'_>>) -> Claim {
    let claim = format!("{orb}'s architecture takes locks for each request, on both sides");
    let locks = |row: &SideCosts| Some(row.paper_locks());
    let why = if orb == "miniCOOL" { NO_LOCKS } else { "" };
    Claim::of_paper(FIGURE_13, claim)
        .published(PublishedLocks::words(orb))
        .holds(both(sides, locks, number, |locks| {
            locks.iter().all(|of| *of >= 1.0)
        }))
        .because(why)
}

/// Judges whether a conventional architecture spends much time on synchronisation.
fn waits(orb: &str, sides: Option<Sides<'_>>) -> Option<Claim> {
    let (_, figure, published) = SYNCHRONISATION.iter().find(|(of, ..)| *of == orb)?;
    let claim = format!(
        "With {orb}'s architecture synchronisation takes 40 % of the time or more, on both sides"
    );
    let claim = Claim::of_paper(figure, claim)
        .published(*published)
        .holds(synchronisation(sides, |share| share >= 40.0))
        .because(LITTLE_SYNCHRONISATION);
    Some(claim)
}

/// Judges the shares of synchronisation on both sides.
fn synchronisation(
    sides: Option<Sides<'_>>,
    holds: impl Fn(f64) -> bool,
) -> Option<(bool, String)> {
    let share = |row: &SideCosts| Some(row.percent(Activity::Synchronisation));
    let words = |share| format!("{share:.1} %");
    both(sides, share, words, |[client, server]| {
        holds(client) && holds(server)
    })
}

/// Judges a figure of both sides.
fn both(
    sides: Option<Sides<'_>>,
    figure: impl Fn(&SideCosts) -> Option<f64>,
    words: impl Fn(f64) -> String,
    holds: impl FnOnce([f64; 2]) -> bool,
) -> Option<(bool, String)> {
    let [client, server] = sides?.map(figure);
    let (client, server) = (client?, server?);
    let measured = format!("client {}, server {}", words(client), words(server));
    Some((holds([client, server]), measured))
}

/// Returns the costs of an architecture on client and server.
fn sides<'a>(rows: &'a [SideCosts], architecture: &str) -> Option<Sides<'a>> {
    let mut pairs = rows.as_chunks::<2>().0.iter();
    let pair = pairs.find(|[client, _]| client.case.name == architecture)?;
    Some(pair.each_ref())
}

/// The ORBs of which the text gives shares of synchronisation, with the figures and the shares.
const SYNCHRONISATION: [(&str, &str, &str); 2] = [
    (
        "CORBAplus",
        "RTAS 1998, figure 9",
        "client 52 %, server 45 %",
    ),
    (
        "miniCOOL",
        "RTAS 1998, figure 10",
        "client about 50 %, server more than 40 %",
    ),
];
const NO_LOCKS: &str = "The server's half of this architecture hands a connection over by the \
                        kernel's epoll set and one atomic word; miniCOOL's locks were mostly those \
                        of dynamic memory.";
const LITTLE_SYNCHRONISATION: &str = "A lock without contention costs some nanoseconds today, and \
     little or nothing is allocated under one: what is left of synchronisation is to wake threads \
     and to fall asleep.";
const OWN: &str = "real-time architecture, ten clients";
const FIGURE_13: &str = "RTAS 1998, figure 13";

#[cfg(test)]
pub(in super::super) mod tests {
    use chronorb_probe::ActivityTimes;

    use super::super::super::CLIENTS;
    use super::super::super::Whitebox;
    use super::super::super::counts::{Counts, ProcessCosts};
    use super::*;
    use crate::experiment::Experiment;

    /// Costs that keep the budget, and are like those of the papers.
    pub(in super::super::super) fn rows() -> Vec<SideCosts> {
        let plan = Whitebox::full();
        let [calls, traced] = [plan.calls_of_each, plan.traced_of_each()]
            .map(|each| u64::from(CLIENTS) * u64::from(each));
        let rows = ARCHITECTURES.into_iter().flat_map(|architecture| {
            let is_own = architecture.name == REAL_TIME;
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
            SideCosts::of_sides(architecture, [calls, traced], [Some(costs); 2], both)
        });
        rows.collect()
    }

    fn not_so(rows: &[SideCosts]) -> Vec<String> {
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
            .rfind(|row| row.case.stands_for == Some("miniCOOL"));
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
