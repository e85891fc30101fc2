//! The kinds of calls, and what serves them.

use super::budget::Budget;

/// A call that is made again and again, and who serves it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name for programs.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// What is called.
    pub kind: Kind,
    /// Where the object is.
    pub place: Place,
    /// Options of the ORB, on both sides.
    pub options: &'static [&'static str],
    /// What it may cost; nothing where it only stands for comparison.
    pub budget: Option<Budget>,
}

/// What is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// An octet goes and a number comes back, as in the papers' experiment.
    Cube,
    /// A number goes, and nothing comes back; the next one goes when it was served, of which the client
    /// learns outside of the ORB.
    Oneway,
    /// The same, but the next one goes at once.
    OnewayAtOnce,
    /// 1 KiB of octets goes, and comes back.
    Octets,
    /// A struct goes, and comes back.
    Struct,
}

/// Where the object is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// In another process, on a pool of one lane with one thread, at the client's priority.
    Lane,
    /// In another process, on the default pool.
    DefaultPool,
    /// In the client's process.
    Collocated,
}

/// Everything that is measured.
pub const CASES: [Case; 11] = [
    Case {
        name: "twoway",
        title: "two-way, Leader/Followers lane",
        kind: Kind::Cube,
        place: Place::Lane,
        options: &[],
        budget: Some(Budget::TWO_WAY),
    },
    Case {
        name: "octets",
        title: "two-way, 1 KiB of octets",
        kind: Kind::Octets,
        place: Place::Lane,
        options: &[],
        budget: Some(Budget::TWO_WAY),
    },
    Case {
        name: "struct",
        title: "two-way, a struct",
        kind: Kind::Struct,
        place: Place::Lane,
        options: &[],
        budget: Some(Budget::TWO_WAY),
    },
    Case {
        name: "oneway",
        title: "oneway, one at a time",
        kind: Kind::Oneway,
        place: Place::Lane,
        options: &[],
        budget: Some(Budget::ONEWAY),
    },
    Case {
        name: "oneway-at-once",
        title: "oneway, back to back",
        kind: Kind::OnewayAtOnce,
        place: Place::Lane,
        options: &[],
        budget: None,
    },
    Case {
        name: "default-pool",
        title: "two-way, default pool of 4 threads",
        kind: Kind::Cube,
        place: Place::DefaultPool,
        options: &["-ORBThreads", "4"],
        budget: Some(Budget::STAYING),
    },
    Case {
        name: "half-sync",
        title: "two-way, Half-Sync/Half-Async lane",
        kind: Kind::Cube,
        place: Place::Lane,
        options: &["-ORBThreadpoolStrategy", "half-sync"],
        budget: None,
    },
    Case {
        name: "shared-leader",
        title: "two-way, shared connection with a leader",
        kind: Kind::Cube,
        place: Place::Lane,
        options: &["-ORBClientConnection", "leader"],
        budget: None,
    },
    Case {
        name: "shared-thread",
        title: "two-way, shared connection with a thread",
        kind: Kind::Cube,
        place: Place::Lane,
        options: &["-ORBClientConnection", "thread"],
        budget: None,
    },
    Case {
        name: "collocated-poa",
        title: "collocated, through the POA",
        kind: Kind::Cube,
        place: Place::Collocated,
        options: &[],
        budget: Some(Budget::COLLOCATED),
    },
    Case {
        name: "collocated-direct",
        title: "collocated, direct",
        kind: Kind::Cube,
        place: Place::Collocated,
        options: &["-ORBCollocation", "direct"],
        budget: Some(Budget::COLLOCATED),
    },
];

impl Case {
    /// The case of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        CASES.iter().find(|case| case.name == name)
    }
}

/// How many octets [`Kind::Octets`] sends and receives.
pub(super) const MIRRORED: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_found_by_a_name_of_its_own() {
        for case in &CASES {
            let found = Case::named(case.name).unwrap();
            assert_eq!(found.title, case.title);
        }
        assert!(Case::named("nothing").is_none());
    }

    #[test]
    fn a_budget_has_a_server_where_there_is_one() {
        for case in &CASES {
            if let Some(budget) = case.budget {
                assert_eq!(budget.server.is_none(), case.place == Place::Collocated);
            }
        }
    }
}
