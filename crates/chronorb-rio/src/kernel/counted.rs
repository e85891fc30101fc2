//! What the kernel counts of the shares that it keeps, for anyone who may look: no right is needed
//! for it.

use std::collections::HashMap;

use chronorb_net::{AROUND_FRAME, Handle, Netlink, NetlinkError, QueueInfo, Rates, Sent};

use super::tree::{ALL, OTHERS, Tree};
use super::{INWARD, found};
use crate::plan::{Interface, Reservation};

/// The shares of an interface that the kernel keeps, one way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Counted {
    /// The interface whose packets they are.
    pub interface: String,
    /// Whether they are those of what comes in.
    pub is_inward: bool,
    /// The interface that has the queues: the same one, or the one by which packets come in.
    pub queues: String,
    /// Its number.
    pub index: u32,
    /// The shares, by their numbers.
    pub shares: Vec<CountedShare>,
}

/// What the kernel counts of the share of a class.
///
/// It knows neither the name of the class, nor its connections, nor latencies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CountedShare {
    /// Its number in the kernel.
    pub handle: Handle,
    /// What it has.
    pub rates: Rates,
    /// What it has sent since it is there.
    pub sent: Sent,
}

/// The shares that the kernel keeps on the interfaces of a network namespace: all that `chronorb
/// rio setup --kernel` has set up there, by whomever it runs.
///
/// # Errors
/// [`NetlinkError`]
pub fn counted(netlink: &mut Netlink) -> Result<Vec<Counted>, NetlinkError> {
    let disciplines = netlink.all_disciplines()?;
    let kept: Vec<u32> = (disciplines.iter())
        .filter(|queue| found::is_ours(queue))
        .map(|queue| queue.index)
        .collect();
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let links = netlink.links()?.into_iter();
    let names: HashMap<u32, String> = links.map(|link| (link.index, link.name)).collect();
    let mut all = Vec::new();
    for index in kept {
        // It has gone meanwhile.
        let Some(queues) = names.get(&index) else {
            continue;
        };
        let inward_of = queues.strip_prefix(INWARD).and_then(|it| it.parse().ok());
        let inward_of = inward_of.and_then(|index: u32| names.get(&index));
        all.push(Counted {
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

/// Those of one interface.
pub(super) fn shares(netlink: &mut Netlink, index: u32) -> Result<Vec<CountedShare>, NetlinkError> {
    let classes = netlink.classes(index)?;
    let mut shares: Vec<_> = classes.iter().filter_map(CountedShare::of).collect();
    shares.sort_unstable_by_key(|share| share.handle);
    Ok(shares)
}

impl Counted {
    /// The names of the classes of its shares, by the plan that is kept; `None` where that is
    /// another one.
    pub fn names(&self, plan: &Interface, classes: &[Reservation]) -> Option<Vec<String>> {
        // What cannot be kept is not kept.
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
    /// Whether it is the share of all packets that are of no class of the plan.
    pub const fn is_of_others(&self) -> bool {
        self.handle.minor() == OTHERS
    }

    /// Octets of its packets on a cable, by which its rates are meant.
    pub fn wire_octets(&self) -> u64 {
        let around = self.sent.packets.saturating_mul(AROUND_FRAME.into());
        self.sent.octets.saturating_add(around)
    }

    /// `None` for what is no share of a class.
    fn of(class: &QueueInfo) -> Option<Self> {
        let is_one = class.handle.major() == ALL.major() && class.handle != ALL;
        Some(Self {
            handle: class.handle,
            rates: class.rates.filter(|_| is_one)?,
            sent: class.sent,
        })
    }
}
