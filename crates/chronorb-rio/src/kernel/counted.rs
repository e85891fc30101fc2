//! The kernel's counters of the shares that it enforces. Reading them needs no rights.

use std::collections::HashMap;

use chronorb_net::{AROUND_FRAME, Handle, Netlink, NetlinkError, QueueInfo, Rates, TrafficCounts};

use super::tree::{ALL, OTHERS, Tree};
use super::{INWARD, lookup};
use crate::plan::{Interface, Reservation};

/// The shares of an interface in one direction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InterfaceShares {
    /// The interface of the packets.
    pub interface: String,
    /// Whether these are the shares of incoming packets.
    pub is_inward: bool,
    /// The interface that has the queues: the same one, or the auxiliary one for incoming packets.
    pub queues: String,
    /// The index of the interface that has the queues.
    pub index: u32,
    /// The shares, by number.
    pub shares: Vec<CountedShare>,
}

/// The kernel's counters of a class's share.
///
/// The kernel knows neither the name of the class, nor its connections, nor latencies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CountedShare {
    /// The handle in the kernel.
    pub handle: Handle,
    /// The rates of the share.
    pub rates: Rates,
    /// The packets sent since the share was created.
    pub sent: TrafficCounts,
}

/// Returns the shares of all interfaces in a network namespace that were set up by `chronorb rio
/// setup --kernel`, by any process.
///
/// # Errors
/// [`NetlinkError`]
pub fn counted(netlink: &mut Netlink) -> Result<Vec<InterfaceShares>, NetlinkError> {
    let disciplines = netlink.all_disciplines()?;
    let kept: Vec<u32> = (disciplines.iter())
        .filter(|queue| lookup::is_ours(queue))
        .map(|queue| queue.index)
        .collect();
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let links = netlink.links()?.into_iter();
    let names: HashMap<u32, String> = links.map(|link| (link.index, link.name)).collect();
    let mut all = Vec::new();
    for index in kept {
        // The interface has gone meanwhile.
        let Some(queues) = names.get(&index) else {
            continue;
        };
        let inward_of = queues.strip_prefix(INWARD).and_then(|it| it.parse().ok());
        let inward_of = inward_of.and_then(|index: u32| names.get(&index));
        all.push(InterfaceShares {
            interface: inward_of.unwrap_or(queues).clone(),
            is_inward: inward_of.is_some(),
            queues: queues.clone(),
            index,
            shares: shares(netlink, index)?,
        });
    }
    all.sort_by(|a, b| (&a.interface, a.is_inward).cmp(&(&b.interface, b.is_inward)));
    Ok(all)
}

/// Returns the shares of one interface.
pub(super) fn shares(netlink: &mut Netlink, index: u32) -> Result<Vec<CountedShare>, NetlinkError> {
    let classes = netlink.classes(index)?;
    let mut shares: Vec<_> = classes.iter().filter_map(CountedShare::of).collect();
    shares.sort_unstable_by_key(|share| share.handle);
    Ok(shares)
}

impl InterfaceShares {
    /// Returns the names of the shares' classes according to the plan; `None` if the kernel
    /// enforces another plan.
    pub fn names(&self, plan: &Interface, classes: &[Reservation]) -> Option<Vec<String>> {
        // An inadmissible plan is never enforced.
        let tree = Tree::new(plan, classes).ok()?;
        let name = |share: &CountedShare| {
            let mut branches = tree.branches.iter();
            let branch = branches.find(|branch| branch.handle == share.handle)?;
            Some(branch.name.clone())
        };
        if tree.is_same(&self.shares) {
            self.shares.iter().map(name).collect()
        } else {
            None
        }
    }
}

impl CountedShare {
    /// Returns whether this is the share of all packets that belong to no class of the plan.
    pub const fn is_of_others(&self) -> bool {
        self.handle.minor() == OTHERS
    }

    /// Returns the octets of its packets on the wire, in which its rates are given.
    pub fn wire_octets(&self) -> u64 {
        let around = self.sent.packets.saturating_mul(AROUND_FRAME.into());
        self.sent.octets.saturating_add(around)
    }

    /// Converts a queue of the kernel; `None` if it is not the share of a class.
    fn of(class: &QueueInfo) -> Option<Self> {
        let is_one = class.handle.major() == ALL.major() && class.handle != ALL;
        Some(Self {
            handle: class.handle,
            rates: class.rates.filter(|_| is_one)?,
            sent: class.sent,
        })
    }
}
