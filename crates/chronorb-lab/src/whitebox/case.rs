//! The kinds of calls, and their servers.

use super::budget::Budget;
use super::outcome::Subject;

/// A call that is made again and again, and its server.
#[derive(Clone, Copy, Debug)]
pub struct WhiteboxCase {
    /// The name for programs.
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
        }
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

impl Subject for WhiteboxCase {
    fn title(&self) -> &'static str {
        self.title
    }
}

/// The number of octets that [`CallKind::Octets`] sends and receives.
pub(super) const MIRRORED: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

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
