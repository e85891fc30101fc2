//! What the papers found by architecture, what is aimed at, and whether it is so.

use chronorb_orb::Architecture;

use super::super::outcome::Side;
use super::super::report::number;
use super::outcome::{ArchitectureRow, Use};
use crate::Claim;

/// All claims, our own aims first.
pub(in super::super) fn of(rows: &[ArchitectureRow]) -> Vec<Claim> {
    let all = All { rows };
    let own = all.sides(Architecture::RealTime);
    let gratuitous = SIDES.map(|side| gratuitous(&all, side));
    let futexes = SIDES.map(|side| futexes(&all, side));
    let mut claims = [gratuitous, futexes].concat();
    claims.push(switches(own));
    claims.push(fewest_locks(&all));
    claims.push(no_kernel_locks(own));
    claims.push(negligible(own));
    claims.extend(CONVENTIONAL.map(|of| takes_locks(&all, of)));
    claims.extend(CONVENTIONAL.iter().filter_map(|of| waits(&all, *of)));
    claims
}

/// What the paper says of a conventional ORB.
#[derive(Clone, Copy)]
struct Published {
    orb: &'static str,
    architecture: Architecture,
    /// Lock operations of client and server.
    locks: &'static str,
    /// The share of synchronisation, with the figure; nothing where the text gives none.
    synchronisation: Option<(&'static str, &'static str)>,
    why_no_locks: &'static str,
}

const CONVENTIONAL: [Published; 3] = [
    Published {
        orb: "CORBAplus",
        architecture: Architecture::WorkerPool,
        locks: "client 199, server 216",
        synchronisation: Some(("RTAS 1998, figure 9", "client 52 %, server 45 %")),
        why_no_locks: "",
    },
    Published {
        orb: "miniCOOL",
        architecture: Architecture::LeaderFollowersMuxed,
        locks: "client 94, server 231",
        synchronisation: Some((
            "RTAS 1998, figure 10",
            "client about 50 %, server more than 40 %",
        )),
        why_no_locks: "The server's half of this architecture hands a connection over by the kernel's epoll set and \
                       one atomic word; miniCOOL's locks were mostly those of dynamic memory.",
    },
    Published {
        orb: "MT-Orbix",
        architecture: Architecture::FilterChain,
        locks: "client 175, server 599",
        synchronisation: None,
        why_no_locks: "",
    },
];

fn gratuitous(all: &All<'_>, side: Side) -> Claim {
    let row = all.row(Architecture::RealTime, side);
    let measured = row.map(|row| {
        let [allocations, locks] = [row.counts.allocations, row.counts.lock_operations];
        let words = format!("{allocations} and {locks} in {} calls", row.requests);
        (allocations == 0 && locks == 0, words)
    });
    let words = "0 allocations, 0 lock operations";
    Claim::aim(format!("{REAL_TIME}, {}: {words}", side.name())).holds(measured)
}

fn futexes(all: &All<'_>, side: Side) -> Claim {
    let row = all.row(Architecture::RealTime, side);
    let measured = row.and_then(|row| {
        let futexes = row.futex_calls()?;
        Some((futexes == 0, format!("{futexes} in {} calls", row.traced)))
    });
    Claim::aim(format!("{REAL_TIME}, {}: 0 futex calls", side.name())).holds(measured)
}

fn switches(own: Option<[&ArchitectureRow; 2]>) -> Claim {
    let claim = format!(
        "{REAL_TIME}: at most 2 context switches for each call because a thread waits, on both sides together"
    );
    Claim::aim(claim).holds(own.map(|sides| {
        let [client, server] = sides.map(|row| row.each(row.counts.voluntary_switches));
        // The clients wait for the beginning, too.
        let holds = client + server <= 2.005;
        (holds, format!("client {client:.2}, server {server:.2}"))
    }))
}

fn fewest_locks(all: &All<'_>) -> Claim {
    let conventional = CONVENTIONAL.map(|of| Some((of.orb, all.sides(of.architecture)?)));
    let both = |sides: [&ArchitectureRow; 2]| sides.map(ArchitectureRow::locks_as_in_papers);
    let measured = all.sides(Architecture::RealTime).and_then(|own| {
        let own = both(own);
        let mut words = vec![format!("{} and {}", number(own[0]), number(own[1]))];
        let mut holds = true;
        for of in conventional {
            let (orb, sides) = of?;
            let other = both(sides);
            holds &= own[0] + own[1] < other[0] + other[1];
            words.push(format!(
                "as {orb} {} and {}",
                number(other[0]),
                number(other[1])
            ));
        }
        Some((holds, words.join("; ")))
    });
    let claim = "TAO's architecture takes fewer locks for each request, on client and server together, than those of \
                 the other ORBs";
    Claim::of_paper(FIGURE_13, claim)
        .published(
            "client 41 and server 100; as CORBAplus 199 and 216, as miniCOOL 94 and 231, as MT-Orbix 175 and 599",
        )
        .holds(measured)
}

fn no_kernel_locks(own: Option<[&ArchitectureRow; 2]>) -> Claim {
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

fn negligible(own: Option<[&ArchitectureRow; 2]>) -> Claim {
    let claim = "With TAO's architecture synchronisation takes a negligible share of the time: less than 1 % on each side";
    Claim::of_paper("RTAS 1998, figure 12", claim)
        .published("negligible")
        .holds(own.map(|sides| shares(sides, |share| share < 1.0)))
}

fn takes_locks(all: &All<'_>, of: Published) -> Claim {
    let measured = all.sides(of.architecture).map(|sides| {
        let [client, server] = sides.map(ArchitectureRow::locks_as_in_papers);
        let words = format!("client {}, server {}", number(client), number(server));
        (client >= 1.0 && server >= 1.0, words)
    });
    let claim = format!(
        "{}'s architecture takes locks for each request, on both sides",
        of.orb
    );
    Claim::of_paper(FIGURE_13, claim)
        .published(of.locks)
        .holds(measured)
        .because(of.why_no_locks)
}

fn waits(all: &All<'_>, of: Published) -> Option<Claim> {
    let (figure, published) = of.synchronisation?;
    let measured = all.sides(of.architecture);
    let claim = format!(
        "With {}'s architecture synchronisation takes 40 % of the time or more, on both sides",
        of.orb
    );
    let claim = Claim::of_paper(figure, claim)
        .published(published)
        .holds(measured.map(|sides| shares(sides, |share| share >= 40.0)))
        .because(
            "A lock that nobody else has costs some nanoseconds today, and little or nothing is allocated under one: \
             what is left of synchronisation is to wake threads and to fall asleep.",
        );
    Some(claim)
}

/// The shares of synchronisation on both sides, and whether both are as they should be.
fn shares(sides: [&ArchitectureRow; 2], holds: impl Fn(f64) -> bool) -> (bool, String) {
    let [client, server] = sides.map(|row| row.shares.percent(Use::Synchronisation));
    let words = format!("client {client:.1} %, server {server:.1} %");
    (holds(client) && holds(server), words)
}

/// All rows.
struct All<'a> {
    rows: &'a [ArchitectureRow],
}

impl<'a> All<'a> {
    fn row(&self, architecture: Architecture, side: Side) -> Option<&'a ArchitectureRow> {
        let mut rows = self.rows.iter();
        rows.find(|row| (row.configuration.architecture, row.side) == (architecture, side))
    }

    /// Client and server.
    fn sides(&self, architecture: Architecture) -> Option<[&'a ArchitectureRow; 2]> {
        let [client, server] = SIDES.map(|side| self.row(architecture, side));
        Some([client?, server?])
    }
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];
const REAL_TIME: &str = "real-time architecture, ten clients";
const FIGURE_13: &str = "RTAS 1998, figure 13";

#[cfg(test)]
pub(in super::super) mod tests {
    use super::super::super::Plan;
    use super::super::super::counts::Counts;
    use super::super::super::outcome::SystemCall;
    use super::super::order::{Found, Times};
    use super::super::{CLIENTS, CONFIGURATIONS};
    use super::*;

    /// What keeps the budget, and is as the papers say.
    pub(in super::super::super) fn rows() -> Vec<ArchitectureRow> {
        let plan = Plan::full();
        let requests = u64::from(CLIENTS) * u64::from(plan.calls_of_each);
        let traced = u64::from(CLIENTS) * u64::from(plan.traced_of_each());
        let pairs = CONFIGURATIONS
            .iter()
            .flat_map(|of| SIDES.map(|side| (of, side)));
        pairs
            .map(|(configuration, side)| {
                let is_own = configuration.architecture == Architecture::RealTime;
                let each = if is_own { 0 } else { requests };
                let call = |name: &str, calls| SystemCall {
                    name: name.to_owned(),
                    calls,
                    octets: 0,
                };
                let mut calls = vec![call("sendto", traced), call("recvfrom", traced)];
                if !is_own {
                    calls.push(call("futex", 2 * traced));
                }
                let counted = Found {
                    counts: Counts {
                        lock_operations: 3 * each,
                        voluntary_switches: requests,
                        ..Counts::default()
                    },
                    times: Times::default(),
                };
                let microsecond = 1000 * requests;
                let timed = Found {
                    counts: Counts::default(),
                    times: Times {
                        nanoseconds: [2, 5, if is_own { 0 } else { 8 }, 1, 0]
                            .map(|us| us * microsecond),
                        intervals: [1; 5],
                    },
                };
                ArchitectureRow::new(*configuration, side, plan, counted, timed, Some(calls))
            })
            .collect()
    }

    fn not_so(rows: &[ArchitectureRow]) -> Vec<String> {
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
        rows[0].system_calls.as_mut().unwrap()[0].name = "futex".to_owned();
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
            .rfind(|row| row.configuration.architecture == Architecture::LeaderFollowersMuxed);
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
