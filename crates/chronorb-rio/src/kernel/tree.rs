//! The shares of the classes of a plan.

use super::KernelError;
use crate::netlink::{AROUND_FRAME, Handle, Share};
use crate::plan::{Cap, Interface, Policy, Reservation};

/// The shares of an interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tree {
    /// What all classes have together.
    pub all: Share,
    /// What each has: those of the plan in its order, then that of all other packets.
    pub branches: Vec<Branch>,
    /// The class of packets that are of none of the plan.
    pub default: Handle,
}

/// The share of a class.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Branch {
    /// The name of the class.
    pub name: String,
    /// Its number in the kernel.
    pub handle: Handle,
    /// What it has.
    pub share: Share,
}

impl Tree {
    /// The shares that a plan promises.
    ///
    /// A class with a budget or a cap has what its packets take, and no more. One that only expects so many packets has
    /// what they take, and more where others leave it; one without a bound has its part of what is not reserved, and more
    /// where others leave it. What they leave goes by the priorities of the classes.
    pub(super) fn new(interface: &Interface, classes: &[Reservation]) -> Result<Self, KernelError> {
        let rate = interface.rate.ok_or(KernelError::NoRate)? / 8;
        let reserved = |class: &Reservation| {
            let packet = class.packet.unwrap_or(interface.mtu);
            class.bound().map(|bound| octets_per_second(bound, packet))
        };
        let asked = classes
            .iter()
            .filter_map(reserved)
            .fold(0, u64::saturating_add);
        let unbounded = classes
            .iter()
            .filter(|class| class.bound().is_none())
            .count() as u64
            + 1;
        if asked + LEAST * unbounded > rate {
            return Err(KernelError::TooMuch {
                asked: asked.saturating_mul(8),
                rate: rate.saturating_mul(8),
            });
        }
        let part = (rate - asked) / unbounded;
        let frame = (interface.mtu + usize::from(AROUND_FRAME) + ETHERNET) as u64;
        let share = |own, ceiling, priority| Share {
            rate: own,
            ceiling,
            burst: bounded((ceiling / BURSTS_PER_SECOND).max(2 * frame)),
            priority,
            quantum: bounded(frame),
        };
        let ranks = ranks(classes);
        let mut branches: Vec<_> = (classes.iter().zip(ranks).zip(FIRST..))
            .map(|((class, rank), minor)| Branch {
                name: class.name.clone(),
                handle: Handle::new(DISCIPLINE.major(), minor),
                share: match (reserved(class), class.processing.cap()) {
                    (Some(own), Some(_)) => share(own, own, rank),
                    (Some(own), None) => share(own, rate, rank),
                    (None, _) => share(part, rate, rank),
                },
            })
            .collect();
        let default = Handle::new(DISCIPLINE.major(), OTHERS);
        branches.push(Branch {
            name: "others".to_owned(),
            handle: default,
            share: share(part, rate, LAST_RANK),
        });
        Ok(Self {
            all: share(rate, rate, 0),
            branches,
            default,
        })
    }
}

/// Of what is not reserved, classes with a rank have theirs before those of the next: real-time classes by priority, all
/// others with the last.
fn ranks(classes: &[Reservation]) -> Vec<u32> {
    let urgency = |class: &Reservation| match class.policy {
        Policy::Deadline => u8::MAX,
        Policy::Fifo | Policy::RoundRobin => class.priority,
        Policy::Other => 0,
    };
    let mut levels: Vec<_> = classes
        .iter()
        .map(urgency)
        .filter(|level| *level > 0)
        .collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    let rank = |class: &Reservation| {
        let place = levels.iter().position(|level| *level == urgency(class));
        place.map_or(LAST_RANK, |place| (place as u32).min(LAST_RANK - 1))
    };
    classes.iter().map(rank).collect()
}

/// What packets of so many octets take on a cable, with all headers.
fn octets_per_second(bound: Cap, packet: usize) -> u64 {
    let frame = (packet + usize::from(AROUND_FRAME) + ETHERNET) as u128;
    let nanoseconds = bound.period.as_nanos().max(1);
    let octets = (u128::from(bound.packets) * frame * 1_000_000_000).div_ceil(nanoseconds);
    u64::try_from(octets).unwrap_or(u64::MAX)
}

fn bounded(octets: u64) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}

/// The number of our queueing discipline, by which it is known again.
pub(super) const DISCIPLINE: Handle = Handle::new(0xc0b0, 0);
/// The class that all others are in.
pub(super) const ALL: Handle = Handle::new(0xc0b0, 1);
/// The minor number of the first class of the plan.
const FIRST: u16 = 0x10;
const OTHERS: u16 = 0xff;
/// The last of the kernel's priorities among classes.
const LAST_RANK: u32 = 7;
/// What passes at once is what passes in a thousandth of a second.
const BURSTS_PER_SECOND: u64 = 1000;
/// Octets per second that any class has, without which its connections would end.
const LEAST: u64 = 1000;
/// Octets of an Ethernet header.
const ETHERNET: usize = 14;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::Processing;

    fn class(name: &str, priority: u8, processing: Processing) -> Reservation {
        Reservation {
            name: name.to_owned(),
            policy: if priority > 0 {
                Policy::Fifo
            } else {
                Policy::Other
            },
            priority,
            processing,
            ..Reservation::default()
        }
    }

    fn periodic(budget: u32) -> Processing {
        Processing::Periodic {
            period: Duration::from_millis(10),
            budget,
        }
    }

    fn interface(rate: Option<u64>) -> Interface {
        Interface {
            name: "rio0".to_owned(),
            rate,
            mtu: 1462,
            driver: crate::plan::DriverKind::Kernel,
        }
    }

    const FREE: Processing = Processing::OnDemand { cap: None };

    #[test]
    fn a_class_has_what_its_packets_take_and_the_others_share_the_rest() {
        let classes = [class("control", 80, periodic(10)), class("bulk", 0, FREE)];
        let tree = Tree::new(&interface(Some(80_000_000)), &classes).expect("it fits");
        let [control, bulk, others] = &tree.branches[..] else {
            panic!("{tree:?}");
        };
        // 10 frames of 1462 + 14 + 24 octets in 10 ms are 1,500,000 octets in a second.
        assert_eq!(
            (control.share.rate, control.share.ceiling),
            (1_500_000, 1_500_000)
        );
        assert_eq!(
            (bulk.share.rate, bulk.share.ceiling),
            (4_250_000, 10_000_000)
        );
        assert_eq!(
            (others.share.rate, others.handle),
            (4_250_000, tree.default)
        );
        assert_eq!(
            (control.share.priority, bulk.share.priority),
            (0, LAST_RANK)
        );
        assert_eq!(tree.all.rate, 10_000_000);
    }

    #[test]
    fn what_is_only_expected_is_no_ceiling() {
        let mut expecting = class("quotes", 10, Processing::OnArrival);
        expecting.expected = Some(Cap {
            packets: 10,
            period: Duration::from_millis(10),
        });
        let tree = Tree::new(&interface(Some(80_000_000)), &[expecting]).expect("it fits");
        let share = tree.branches[0].share;
        assert_eq!((share.rate, share.ceiling), (1_500_000, 10_000_000));
    }

    #[test]
    fn more_than_there_is_cannot_be_kept() {
        let classes = [class("a", 2, periodic(40)), class("b", 1, periodic(27))];
        let error = Tree::new(&interface(Some(80_000_000)), &classes).unwrap_err();
        assert!(matches!(error, KernelError::TooMuch { .. }), "{error}");
        let error = Tree::new(&interface(None), &classes).unwrap_err();
        assert!(matches!(error, KernelError::NoRate), "{error}");
    }

    #[test]
    fn there_are_more_priorities_than_ranks() {
        let classes: Vec<_> = (1..=20).map(|n| class("x", n, FREE)).collect();
        let ranks = ranks(&classes);
        assert_eq!(ranks[19], 0);
        assert_eq!(ranks[18], 1);
        assert_eq!(ranks[0], LAST_RANK - 1);
    }
}
