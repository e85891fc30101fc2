//! The shares of a plan's classes.

use chronorb_net::{Handle, Share};

use super::{CountedShare, KernelError};
use crate::plan::{Cap, Interface, Policy, Processing, Reservation};

/// The shares of an interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tree {
    /// The total of all classes.
    pub all: Share,
    /// The share of each class in the order of the plan, then that of all other packets.
    pub branches: Vec<Branch>,
    /// The class of packets that match no class of the plan.
    pub default: Handle,
}

/// The share of a class.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Branch {
    /// The name of the class.
    pub name: String,
    /// The handle in the kernel.
    pub handle: Handle,
    /// The share.
    pub share: Share,
    /// The maximum number of waiting packets; `None` for the default of the interface.
    pub queue: Option<u32>,
}

impl Tree {
    /// Computes the shares of a plan.
    ///
    /// A periodic class gets the rate of its budget, and no more. A class on arrival gets the rate
    /// of its expected packets, and more if others leave it. All other classes share the unreserved
    /// rate, and get more if others leave it, up to their caps. Unused rate is distributed by the
    /// priorities of the classes.
    pub(super) fn new(interface: &Interface, classes: &[Reservation]) -> Result<Self, KernelError> {
        let rate = interface.rate.ok_or(KernelError::NoRate)? / 8;
        let takes = |class: &Reservation, bound: Cap| {
            let packet = class.packet.unwrap_or(interface.mtu);
            octets_per_second(bound, interface.wire_octets(packet))
        };
        let promised = |class: &Reservation| match class.processing {
            Processing::OnDemand { .. } => None,
            Processing::OnArrival | Processing::Periodic { .. } => class.bound(),
        };
        let reserved = |class: &Reservation| promised(class).map(|bound| takes(class, bound));
        let asked = classes
            .iter()
            .filter_map(reserved)
            .fold(0, u64::saturating_add);
        if asked > rate {
            return Err(KernelError::TooMuch {
                asked: asked.saturating_mul(8),
                rate: rate.saturating_mul(8),
            });
        }
        // The share of all other packets is one of them.
        let parts = classes
            .iter()
            .filter(|class| promised(class).is_none())
            .count() as u64
            + 1;
        let part = ((rate - asked) / parts).max(LEAST);
        let frame = interface.wire_octets(interface.mtu);
        let share = |own: u64, ceiling: u64, priority| Share {
            rate: own.min(ceiling),
            ceiling,
            burst: bounded((ceiling / BURSTS_PER_SECOND).max(2 * frame)),
            priority,
            quantum: bounded(frame),
        };
        let mut branches: Vec<_> = (classes.iter().zip(ranks(classes)).zip(FIRST..))
            .map(|((class, rank), minor)| {
                let cap = class.processing.cap();
                let ceiling = cap.map_or(rate, |cap| takes(class, cap).max(LEAST));
                Branch {
                    name: class.name.clone(),
                    handle: Handle::new(DISCIPLINE.major(), minor),
                    share: share(reserved(class).unwrap_or(part), ceiling, rank),
                    queue: Some(bounded(class.queue as u64)),
                }
            })
            .collect();
        let default = Handle::new(DISCIPLINE.major(), OTHERS);
        branches.push(Branch {
            name: "others".to_owned(),
            handle: default,
            share: share(part, rate, LAST_RANK),
            queue: None,
        });
        Ok(Self {
            all: share(rate, rate, 0),
            branches,
            default,
        })
    }

    /// Returns whether the kernel's shares are those of this tree.
    pub(super) fn is_same(&self, there: &[CountedShare]) -> bool {
        there.len() == self.branches.len()
            && self.branches.iter().all(|branch| {
                let its = there.iter().find(|share| share.handle == branch.handle);
                its.is_some_and(|its| {
                    (its.rates.rate, its.rates.ceiling) == (branch.share.rate, branch.share.ceiling)
                })
            })
    }
}

/// Returns the rank of each class. Classes of a rank get unreserved rate before those of the next
/// one: real-time classes by priority, all others last.
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

/// Returns the octets per second of packets that take `of_each` octets each.
fn octets_per_second(bound: Cap, of_each: u64) -> u64 {
    let all = u128::from(bound.packets) * u128::from(of_each) * 1_000_000_000;
    let octets = all.div_ceil(bound.period.as_nanos().max(1));
    u64::try_from(octets).unwrap_or(u64::MAX)
}

fn bounded(octets: u64) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}

/// The handle of RIO's queueing discipline, by which it is recognized. It is below 0x8000, because
/// sockets name classes by a signed number.
pub(super) const DISCIPLINE: Handle = Handle::new(0x10b0, 0);
/// The class that contains all others.
pub(super) const ALL: Handle = Handle::new(0x10b0, 1);
/// The minor number of the first class of the plan.
const FIRST: u16 = 0x10;
pub(super) const OTHERS: u16 = 0xff;
/// The last priority among classes in the kernel.
const LAST_RANK: u32 = 7;
/// The divisor of the rate that gives the burst size: a thousandth of a second.
const BURSTS_PER_SECOND: u64 = 1000;
/// The minimum rate of a class in octets per second, which keeps its connections alive.
const LEAST: u64 = 1000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
        // 10 frames of 1462 octets, and 42 around each, in 10 ms are 1,504,000 octets in a second.
        assert_eq!(
            (control.share.rate, control.share.ceiling),
            (1_504_000, 1_504_000)
        );
        assert_eq!(
            (bulk.share.rate, bulk.share.ceiling),
            (4_248_000, 10_000_000)
        );
        assert_eq!(
            (others.share.rate, others.handle),
            (4_248_000, tree.default)
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
        assert_eq!((share.rate, share.ceiling), (1_504_000, 10_000_000));
    }

    #[test]
    fn a_cap_is_a_ceiling_and_no_promise() {
        let capped = |packets| Processing::OnDemand {
            cap: Some(Cap {
                packets,
                period: Duration::from_millis(10),
            }),
        };
        let classes = [class("small", 2, capped(1)), class("great", 1, capped(60))];
        let tree = Tree::new(&interface(Some(80_000_000)), &classes).expect("it fits");
        let [small, great, others] = &tree.branches[..] else {
            panic!("{tree:?}");
        };
        assert_eq!((small.share.rate, small.share.ceiling), (150_400, 150_400));
        assert_eq!(
            (great.share.rate, great.share.ceiling),
            (3_333_333, 9_024_000)
        );
        assert_eq!(others.share.rate, 3_333_333);
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
