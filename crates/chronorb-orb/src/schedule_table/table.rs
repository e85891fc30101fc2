//! The run-time scheduler: the look-up of what a schedule gives to an operation.

use std::collections::HashMap;
use std::time::Duration;

use thiserror::Error;

use crate::call::Skeleton;
use crate::operation_table::hash;
use crate::rtcorba::Priority;

use super::{OverrunPolicy, names};

/// The attributes of an operation in a schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OperationSchedule {
    /// The CORBA priority of its requests.
    pub priority: Priority,
    /// The order among operations of one priority; a greater one goes first.
    pub subpriority: u32,
    /// The level of preemption, 0 for the most urgent one: an operation preempts those of greater
    /// levels only.
    pub preemption_level: u32,
    /// The execution time that it is granted, if the schedule has one.
    pub budget: Option<Duration>,
    /// The deadline of its response, from the arrival of the transaction that it belongs to; it is
    /// measured from the arrival of the request.
    pub deadline: Option<Duration>,
    /// The treatment of requests after it exceeded the budget; `None` for that of the ORB.
    pub overrun: Option<OverrunPolicy>,
}

impl OperationSchedule {
    /// The attributes of an operation without a budget and a deadline.
    pub const fn new(priority: Priority, subpriority: u32, preemption_level: u32) -> Self {
        Self {
            priority,
            subpriority,
            preemption_level,
            budget: None,
            deadline: None,
            overrun: None,
        }
    }
}

/// The index of an operation in a [`ScheduleTable`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct OperationHandle(u32);

impl OperationHandle {
    /// Returns the index, from 0 in the order in which the table was made.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The operations of a schedule with their priorities: the run-time scheduler.
///
/// A look-up by [handle](OperationHandle) is one access to an array. A look-up by name compares at
/// most a fixed number of slots. Both take the same time for ten operations and for ten thousand,
/// allocate nothing and take no lock; the table does not change.
///
/// ```
/// use chronorb_orb::rtcorba::Priority;
/// use chronorb_orb::schedule::{OperationSchedule, ScheduleTable};
///
/// let priority = Priority::new(20_000).ok_or("a priority is 0 or more")?;
/// let position = OperationSchedule::new(priority, 1, 0);
/// let table = ScheduleTable::new([("Navigator::position".to_owned(), position)])?;
/// let handle = table.find("Navigator::position").ok_or("it is in the table")?;
/// assert_eq!(table.get(handle).map(|found| found.priority), Some(priority));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScheduleTable {
    entries: Box<[OperationSchedule]>,
    names: Box<[Box<str>]>,
    /// The interface of each operation, as its repository identifier.
    interfaces: Box<[Box<str>]>,
    /// The operations by their names on the wire.
    by_operation: HashMap<Box<str>, Vec<OperationHandle>>,
    /// A power of two. Each name is at most [`LONGEST_PROBE`] slots behind that of its hash.
    slots: Box<[Slot]>,
    seed: u64,
    has_overruns: bool,
}

/// The names of an operation.
#[derive(Clone, Debug)]
pub(crate) struct OperationIdentity {
    /// The name in the schedule.
    pub(crate) name: String,
    /// The repository identifier of the interface.
    pub(crate) interface: String,
    /// The name on the wire.
    pub(crate) operation: String,
}

/// A place of the hash table; `index` is [`FREE`] in one without a name.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The upper half of the name's hash, which spares most comparisons of names.
    tag: u32,
    index: u32,
}

/// A table cannot be made of these operations.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TableError {
    /// Two operations have the same name.
    #[error("the operation {0} is in the schedule twice")]
    Duplicate(String),
    /// There are more operations than a table can have.
    #[error("{0} operations are more than the {MAX_OPERATIONS} of a schedule")]
    TooMany(usize),
}

impl ScheduleTable {
    /// Makes a table of operations by their names, as `Interface::operation`.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn new(
        operations: impl IntoIterator<Item = (String, OperationSchedule)>,
    ) -> Result<Self, TableError> {
        Self::with_identities(operations.into_iter().map(|(name, entry)| {
            let (interface, operation) = name.rsplit_once("::").unwrap_or(("", &name));
            let identity = OperationIdentity {
                interface: format!("IDL:{}:1.0", interface.replace("::", "/")),
                operation: operation.to_owned(),
                name,
            };
            (identity, entry)
        }))
    }

    /// Makes a table of operations whose names need not follow from their identifiers.
    pub(crate) fn with_identities(
        operations: impl IntoIterator<Item = (OperationIdentity, OperationSchedule)>,
    ) -> Result<Self, TableError> {
        let (mut names, mut interfaces, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let mut by_operation: HashMap<_, Vec<_>> = HashMap::new();
        for (index, (identity, entry)) in (0..).zip(operations) {
            names.push(identity.name.into_boxed_str());
            interfaces.push(identity.interface.into_boxed_str());
            let same_name = by_operation.entry(identity.operation.into_boxed_str());
            same_name.or_default().push(OperationHandle(index));
            entries.push(entry);
        }
        if names.len() > MAX_OPERATIONS {
            return Err(TableError::TooMany(names.len()));
        }
        let mut sorted: Vec<&str> = names.iter().map(|name| &**name).collect();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
        if let Some(pair) = twice {
            return Err(TableError::Duplicate(pair[0].to_owned()));
        }
        let (slots, seed) = slots_of(&names);
        Ok(Self {
            has_overruns: entries.iter().any(|entry| entry.overrun.is_some()),
            entries: entries.into(),
            names: names.into(),
            interfaces: interfaces.into(),
            by_operation,
            slots,
            seed,
        })
    }

    /// Returns the attributes of an operation; `None` for a handle of a larger table.
    #[inline]
    pub fn get(&self, handle: OperationHandle) -> Option<&OperationSchedule> {
        self.entries.get(handle.index())
    }

    /// Finds an operation by its name.
    pub fn find(&self, name: &str) -> Option<OperationHandle> {
        let hash = hash(self.seed, name.as_bytes());
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len() - 1;
        for probe in 0..LONGEST_PROBE {
            let slot = self.slots.get((hash as usize).wrapping_add(probe) & mask)?;
            if slot.index == FREE {
                return None;
            }
            let candidate = OperationHandle(slot.index);
            if slot.tag == tag && self.name(candidate) == Some(name) {
                return Some(candidate);
            }
        }
        None
    }

    /// Finds the operation of this name on the wire whose interface a servant has: its own one, or
    /// else one that it inherits from.
    pub(crate) fn find_operation(
        &self,
        servant: &dyn Skeleton,
        operation: &[u8],
    ) -> Option<OperationHandle> {
        let candidates = self
            .by_operation
            .get(std::str::from_utf8(operation).ok()?)?;
        let own = |handle: &&OperationHandle| {
            let interface = self.interfaces.get(handle.index());
            interface.is_some_and(|it| same_interface(it, servant.repository_id()))
        };
        let inherited = |handle: &&OperationHandle| {
            let interface = self.interfaces.get(handle.index());
            interface.is_some_and(|it| servant.is_a(it))
        };
        let found = candidates.iter().find(own);
        found.or_else(|| candidates.iter().find(inherited)).copied()
    }

    /// Returns the name of an operation; `None` for a handle of a larger table.
    pub fn name(&self, handle: OperationHandle) -> Option<&str> {
        self.names.get(handle.index()).map(|name| &**name)
    }

    /// Returns all operations with their names, in order.
    pub fn iter(&self) -> impl Iterator<Item = (OperationHandle, &str, &OperationSchedule)> {
        let named = self.names.iter().zip(&self.entries);
        (0..)
            .map(OperationHandle)
            .zip(named)
            .map(|(handle, (name, entry))| (handle, &**name, entry))
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether an operation has an overrun policy of its own.
    pub(crate) fn has_overruns(&self) -> bool {
        self.has_overruns
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Whether two repository identifiers mean the same interface, where the first may lack the prefix.
fn same_interface(scheduled: &str, servants: &str) -> bool {
    scheduled == servants || names::without_prefix(servants).is_some_and(|id| id == scheduled)
}

/// Places names so that none is further than [`LONGEST_PROBE`] from the slot of its hash. Returns
/// the slots and the seed of the hash.
fn slots_of(names: &[Box<str>]) -> (Box<[Slot]>, u64) {
    let mut capacity = (names.len() * 2).next_power_of_two().max(2);
    loop {
        for seed in 1..=SEEDS {
            if let Some(slots) = place(names, capacity, seed) {
                return (slots, seed);
            }
        }
        capacity *= 2;
    }
}

fn place(names: &[Box<str>], capacity: usize, seed: u64) -> Option<Box<[Slot]>> {
    let mut slots = vec![
        Slot {
            tag: 0,
            index: FREE
        };
        capacity
    ];
    for (index, name) in (0..).zip(names) {
        let hash = hash(seed, name.as_bytes());
        let at = |probe| (hash as usize).wrapping_add(probe) & (capacity - 1);
        let probe = (0..LONGEST_PROBE).find(|&probe| slots[at(probe)].index == FREE)?;
        let tag = (hash >> 32) as u32;
        slots[at(probe)] = Slot { tag, index };
    }
    Some(slots.into())
}

const FREE: u32 = u32::MAX;
/// The slots that a look-up by name compares at most.
const LONGEST_PROBE: usize = 8;
/// The seeds that are tried before the table is doubled.
const SEEDS: u64 = 16;
/// The operations of a table.
const MAX_OPERATIONS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn entry(number: u32) -> OperationSchedule {
        let priority = Priority::new((number % 32_768) as i16).expect("not negative");
        OperationSchedule::new(priority, number, number / 7)
    }

    fn name(number: u32) -> String {
        format!("Module{}::Interface::operation_{number}", number % 13)
    }

    proptest! {
        #[test]
        fn a_table_answers_as_a_map(
            names in prop::collection::hash_set("[a-c:_]{0,24}", 0..300),
            others in prop::collection::vec("[a-c:_]{0,24}", 0..100),
        ) {
            let named: Vec<_> = names.into_iter().zip((0..).map(entry)).collect();
            let map: HashMap<_, _> = named.iter().cloned().collect();
            let table = ScheduleTable::new(named.clone()).expect("no name is there twice");
            prop_assert_eq!(table.len(), map.len());
            for name in named.iter().map(|(name, _)| name).chain(&others) {
                let found = table.find(name).and_then(|handle| table.get(handle));
                prop_assert_eq!(found, map.get(name), "{}", name);
            }
        }
    }

    #[test]
    fn ten_thousand_operations_are_found_within_the_longest_probe() {
        for count in [1, 10, 10_000] {
            let table = ScheduleTable::new((0..count).map(|n| (name(n), entry(n))));
            let table = table.expect("no name is there twice");
            for (number, (handle, known, given)) in (0..).zip(table.iter()) {
                assert_eq!((known, *given), (&*name(number), entry(number)));
                assert_eq!(table.find(known), Some(handle));
            }
            assert_eq!(table.find(&name(count)), None);
            assert_eq!(table.get(OperationHandle(count)), None);
            assert!(table.slots.len() <= 16 * table.len().max(1), "{count}");
        }
    }

    #[test]
    fn a_name_that_is_there_twice_is_named() {
        let twice = [1, 2, 1].map(|n| (name(n), entry(n)));
        let error = ScheduleTable::new(twice).expect_err("the first is the third");
        assert_eq!(error, TableError::Duplicate(name(1)));
    }
}
