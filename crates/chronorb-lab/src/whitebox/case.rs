//! The kinds of calls, and their servers.
//!
//! The first cases have one client. The others repeat the papers' experiment for each architecture:
//! one client of high priority and nine of low priority call as fast as they can.

use super::budget::Budget;

/// A call that is made again and again, and its server.
#[derive(Clone, Copy, Debug)]
pub struct WhiteboxCase {
    /// The name for programs; of an architecture, the value of `-ORBArchitecture`.
    pub name: &'static str,
    /// The name in texts and tables.
    pub title: &'static str,
    /// The kind of call.
    pub kind: CallKind,
    /// The place of the object.
    pub place: ObjectPlace,
    /// Options of the ORB, on both sides.
    pub options: &'static [&'static str],
    /// The budget; nothing where the case is there for comparison only.
    pub budget: Option<Budget>,
    /// The name of an architecture in charts.
    pub short: &'static str,
    /// The ORB of the papers that had the architecture, if one had.
    pub stands_for: Option<&'static str>,
}

/// A kind of call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallKind {
    /// A call with an octet that returns its cube, as in the papers' experiment.
    Cube,
    /// A oneway call with a number. The next one is sent when the server has served it, which the
    /// client learns outside of the ORB.
    Oneway,
    /// The same, but the next one is sent at once.
    OnewayAtOnce,
    /// A call with 1 KiB of octets that returns them.
    Octets,
    /// A call with a struct that returns it.
    Struct,
    /// [`Cube`](Self::Cube), by ten clients at a time.
    OfTen,
}

/// The place of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ObjectPlace {
    /// Another process, on a pool of one lane with one thread, at the client's priority.
    Lane,
    /// Another process, on the default pool.
    DefaultPool,
    /// The client's process.
    Collocated,
    /// Another process, which has an object for each priority on a lane of one thread.
    TwoLanes,
    /// Another process, which has both objects on one pool of two threads.
    SharedPool,
}

/// All cases that are measured.
pub const CASES: [WhiteboxCase; 11] = [
    WhiteboxCase::of("twoway", "two-way, Leader/Followers lane").within(Budget::TWO_WAY),
    WhiteboxCase::of("octets", "two-way, 1 KiB of octets")
        .calling(CallKind::Octets)
        .within(Budget::TWO_WAY),
    WhiteboxCase::of("struct", "two-way, a struct")
        .calling(CallKind::Struct)
        .within(Budget::TWO_WAY),
    WhiteboxCase::of("oneway", "oneway, one at a time")
        .calling(CallKind::Oneway)
        .within(Budget::ONEWAY),
    WhiteboxCase::of("oneway-at-once", "oneway, back to back").calling(CallKind::OnewayAtOnce),
    WhiteboxCase::of("default-pool", "two-way, default pool of 4 threads")
        .at(ObjectPlace::DefaultPool, &["-ORBThreads", "4"])
        .within(Budget::STAYING),
    WhiteboxCase::of("half-sync", "two-way, Half-Sync/Half-Async lane")
        .at(ObjectPlace::Lane, &["-ORBThreadpoolStrategy", "half-sync"]),
    WhiteboxCase::of("shared-leader", "two-way, shared connection with a leader")
        .at(ObjectPlace::Lane, &["-ORBClientConnection", "leader"]),
    WhiteboxCase::of("shared-thread", "two-way, shared connection with a thread")
        .at(ObjectPlace::Lane, &["-ORBClientConnection", "thread"]),
    WhiteboxCase::of("collocated-poa", "collocated, through the POA")
        .at(ObjectPlace::Collocated, &[])
        .within(Budget::COLLOCATED),
    WhiteboxCase::of("collocated-direct", "collocated, direct")
        .at(ObjectPlace::Collocated, &["-ORBCollocation", "direct"])
        .within(Budget::COLLOCATED),
];

/// The architectures of the papers' ORBs, and Half-Sync/Half-Async.
pub const ARCHITECTURES: [WhiteboxCase; 5] = [
    WhiteboxCase::architecture(REAL_TIME, "real-time", "real-time").as_orb("TAO"),
    WhiteboxCase::architecture("half-sync", "Half-Sync/Half-Async", "half-sync"),
    WhiteboxCase::architecture("worker-pool", "worker pool", "worker pool")
        .as_orb("CORBAplus")
        .at(ObjectPlace::SharedPool, &[]),
    WhiteboxCase::architecture(
        "leader-followers-muxed",
        "multiplexed Leader/Followers",
        "muxed L/F",
    )
    .as_orb("miniCOOL")
    .at(ObjectPlace::SharedPool, &[]),
    WhiteboxCase::architecture("filter-chain", "filter chain", "filter chain").as_orb("MT-Orbix"),
];

impl WhiteboxCase {
    /// A two-way call of an object on a lane, without a budget.
    const fn of(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            kind: CallKind::Cube,
            place: ObjectPlace::Lane,
            options: &[],
            budget: None,
            short: "",
            stands_for: None,
        }
    }

    /// An architecture that no ORB of the papers had, with lanes.
    const fn architecture(name: &'static str, title: &'static str, short: &'static str) -> Self {
        Self {
            short,
            ..Self::of(name, title)
                .calling(CallKind::OfTen)
                .at(ObjectPlace::TwoLanes, &[])
        }
    }

    const fn as_orb(self, orb: &'static str) -> Self {
        Self {
            stands_for: Some(orb),
            ..self
        }
    }

    /// Whether ten clients call.
    pub(super) fn is_of_ten(&self) -> bool {
        self.kind == CallKind::OfTen
    }

    /// The name as a heading of lines in a table.
    pub(super) fn heading(&self) -> String {
        let orb = self.stands_for.map(|orb| format!(" (as {orb})"));
        format!("{}{}", self.title, orb.unwrap_or_default())
    }

    /// Whether the object is in another process.
    pub(super) fn has_server(&self) -> bool {
        self.place != ObjectPlace::Collocated
    }

    const fn calling(self, kind: CallKind) -> Self {
        Self { kind, ..self }
    }

    const fn at(self, place: ObjectPlace, options: &'static [&'static str]) -> Self {
        Self {
            place,
            options,
            ..self
        }
    }

    const fn within(self, budget: Budget) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }
}

/// The number of octets that [`CallKind::Octets`] sends and receives.
pub(super) const MIRRORED: usize = 1024;
/// The number of clients by architecture: one of high priority, and nine of low.
pub const CLIENTS: u32 = 10;
/// The architecture that the others are compared with.
pub(super) const REAL_TIME: &str = "real-time";

#[cfg(test)]
mod tests {
    use super::super::published::PUBLISHED;
    use super::*;

    #[test]
    fn every_orb_of_the_papers_has_an_architecture() {
        for of in PUBLISHED {
            let mut all = ARCHITECTURES.iter();
            assert!(all.any(|architecture| architecture.stands_for == Some(of.orb)));
        }
    }

    #[test]
    fn a_budget_has_a_server_where_there_is_one() {
        for (at, case) in CASES.iter().enumerate() {
            assert!(CASES[..at].iter().all(|other| other.name != case.name));
            if let Some(budget) = case.budget {
                assert_eq!(
                    budget.server.is_none(),
                    case.place == ObjectPlace::Collocated
                );
            }
        }
    }
}
