//! Operations and dependencies as clients register them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chronorb::quota::{Charge, QuotaLimits};

use crate::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use crate::idl::rtec_scheduler::{CriticalityT, ImportanceT, InfoTypeT, RtInfoEnabledTypeT};

/// The bounds of what clients can register, and of the work that a computation does with it.
///
/// A default of a quota gives one origin half of the total.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of operations. They cannot be removed, so their charges stay.
    pub operations: QuotaLimits,
    /// The number of dependencies. Each is charged to the client that added it, until it is
    /// removed.
    pub dependencies: QuotaLimits,
    /// The octets of all names of operations, which stay like these.
    pub texts: QuotaLimits,
    /// The number of computations at a time, which leave threads for other calls.
    pub computations: QuotaLimits,
    /// The number of rates of an operation.
    pub rates: usize,
    /// The octets of a name.
    pub name: usize,
    /// The number of different periods at which an operation runs, by itself or called.
    pub periods: usize,
    /// The steps of a computation for each operation, rate and dependency, beyond 4 million for
    /// all.
    pub steps: u64,
    /// The octets of an answer.
    pub answer: usize,
}

impl Default for Limits {
    /// 10,000 operations with 8 rates and 1,024 octets each, 4 MiB of names, and 100,000
    /// dependencies, of which one client may use half; 4 computations at a time, 2 of one client;
    /// 64 periods, 256 steps, and answers of 16 MiB.
    fn default() -> Self {
        Self {
            operations: QuotaLimits::shared(10_000, 2),
            dependencies: QuotaLimits::shared(100_000, 2),
            texts: QuotaLimits::shared(4 << 20, 2),
            computations: QuotaLimits::shared(4, 2),
            rates: 8,
            name: 1_024,
            periods: 64,
            steps: 256,
            answer: 16 << 20,
        }
    }
}

/// A rate at which an operation may run, with its other needs. Times are in units of 100 ns.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Rate {
    pub(crate) criticality: CriticalityT,
    pub(crate) importance: ImportanceT,
    pub(crate) worst: u64,
    pub(crate) typical: u64,
    pub(crate) cached: u64,
    /// Zero if the operation runs only when it is called.
    pub(crate) period: u32,
    pub(crate) quantum: u64,
    pub(crate) threads: u32,
    pub(crate) kind: InfoTypeT,
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) name: Arc<str>,
    /// In the order in which they were set.
    pub(crate) rates: Vec<Rate>,
    pub(crate) enabled: RtInfoEnabledTypeT,
}

/// The failure of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ChangeError {
    DuplicateName,
    UnknownTask,
    /// A number that is negative or above its limit.
    BadNumber,
    /// A limit of [`Limits`].
    TooMany,
    /// No memory is left.
    Memory,
}

/// The identity of a dependency: its operations, calls and type, and a number in the order of
/// registration, since there may be several equal ones.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct DependencyKey {
    like: EqualDependencies,
    number: u64,
}

/// The dependencies of an operation are neighbours in this order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct EqualDependencies {
    rt_info: i32,
    depended_on: i32,
    calls: i32,
    is_two_way: bool,
}

/// The changeable part of a dependency, and its charge.
#[derive(Debug)]
struct Dependency {
    enabled: DependencyEnabledTypeT,
    _charge: Charge,
}

/// All operations and dependencies. The handle of an operation is its index plus one.
#[derive(Debug, Default)]
pub(crate) struct Model {
    operations: Vec<Arc<Operation>>,
    dependencies: BTreeMap<DependencyKey, Dependency>,
    by_name: HashMap<Arc<str>, usize>,
    /// Those of the operations.
    charges: Vec<[Charge; 2]>,
    /// The dependencies that were added so far.
    added: u64,
    /// The changes so far.
    version: u64,
    limits: Limits,
}

/// The rule for the rates that were set before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Before {
    Keep,
    Remove,
}

impl Model {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The number of changes so far.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// Creates an operation. `charges` are one operation and the octets of the name.
    pub(crate) fn create(&mut self, name: &str, charges: [Charge; 2]) -> Result<i32, ChangeError> {
        if self.by_name.contains_key(name) {
            return Err(ChangeError::DuplicateName);
        }
        if name.len() > self.limits.name {
            return Err(ChangeError::TooMany);
        }
        let index = self.operations.len();
        let handle = i32::try_from(index + 1).map_err(|_| ChangeError::TooMany)?;
        let room = self.by_name.try_reserve(1);
        let room = room.and_then(|()| self.operations.try_reserve(1));
        room.and_then(|()| self.charges.try_reserve(1))
            .map_err(|_| ChangeError::Memory)?;
        let name: Arc<str> = name.into();
        self.by_name.insert(name.clone(), index);
        self.operations.push(Arc::new(Operation {
            name,
            rates: Vec::new(),
            enabled: RtInfoEnabledTypeT::RtInfoEnabled,
        }));
        self.charges.push(charges);
        self.version += 1;
        Ok(handle)
    }

    pub(crate) fn lookup(&self, name: &str) -> Result<i32, ChangeError> {
        // The hash of a text that no operation can have is not worth its time.
        if name.len() > self.limits.name {
            return Err(ChangeError::UnknownTask);
        }
        let index = self.by_name.get(name).ok_or(ChangeError::UnknownTask)?;
        i32::try_from(index + 1).map_err(|_| ChangeError::UnknownTask)
    }

    /// The index of a handle.
    pub(crate) fn index(&self, handle: i32) -> Result<usize, ChangeError> {
        let index = usize::try_from(handle)
            .ok()
            .and_then(|it| it.checked_sub(1));
        let index = index.filter(|index| *index < self.operations.len());
        index.ok_or(ChangeError::UnknownTask)
    }

    /// Sets the rates of several operations, or of none if one of them is wrong.
    pub(crate) fn set_all(
        &mut self,
        rates: &[(i32, Rate)],
        before: Before,
    ) -> Result<(), ChangeError> {
        self.check_rates(rates, before)?;
        if before == Before::Remove {
            for (handle, _) in rates {
                let index = self.index(*handle)?;
                self.operation(index).rates.clear();
            }
        }
        for (handle, rate) in rates {
            let index = self.index(*handle)?;
            if !self.operations[index].rates.contains(rate) {
                self.operation(index).rates.push(*rate);
            }
        }
        self.version += 1;
        Ok(())
    }

    /// Sets the rates of several operations, and removes those of all others.
    pub(crate) fn replace_all(&mut self, rates: &[(i32, Rate)]) -> Result<(), ChangeError> {
        self.check_rates(rates, Before::Remove)?;
        for index in 0..self.operations.len() {
            self.operation(index).rates.clear();
        }
        self.set_all(rates, Before::Keep)
    }

    /// An operation, to change it. A computation keeps the present one.
    fn operation(&mut self, index: usize) -> &mut Operation {
        Arc::make_mut(&mut self.operations[index])
    }

    fn check_rates(&self, rates: &[(i32, Rate)], before: Before) -> Result<(), ChangeError> {
        let mut counts = HashMap::<usize, usize>::new();
        for (handle, _) in rates {
            let index = self.index(*handle)?;
            let present = match before {
                Before::Keep => self.operations[index].rates.len(),
                Before::Remove => 0,
            };
            let count = counts.entry(index).or_insert(present);
            *count += 1;
            if *count > self.limits.rates {
                return Err(ChangeError::TooMany);
            }
        }
        Ok(())
    }

    /// Adds a dependency. `charge` is one dependency.
    pub(crate) fn add_dependency(
        &mut self,
        added: DependencyInfo,
        charge: Charge,
    ) -> Result<(), ChangeError> {
        let like = self.check_dependency(&added)?;
        let number = self.added;
        self.added += 1;
        let dependency = Dependency {
            enabled: added.enabled,
            _charge: charge,
        };
        self.dependencies
            .insert(DependencyKey { like, number }, dependency);
        self.version += 1;
        Ok(())
    }

    /// Removes one dependency of these operations, calls and type. Without one nothing happens.
    pub(crate) fn remove_dependency(&mut self, like: &DependencyInfo) -> Result<(), ChangeError> {
        let like = self.check_dependency(like)?;
        let first = self.dependencies.range(like.all()).next();
        if let Some(key) = first.map(|(key, _)| *key) {
            self.dependencies.remove(&key);
            self.version += 1;
        }
        Ok(())
    }

    /// Enables or disables all dependencies like these, or none if one of them is wrong.
    pub(crate) fn enable_dependencies(
        &mut self,
        states: &[DependencyInfo],
    ) -> Result<(), ChangeError> {
        if states.len() as u64 > self.limits.dependencies.total {
            return Err(ChangeError::TooMany);
        }
        // The last state of equal ones holds, so each dependency is visited once.
        let mut last = BTreeMap::new();
        for state in states {
            last.insert(self.check_dependency(state)?, state.enabled);
        }
        for (like, enabled) in last {
            for (_, one) in self.dependencies.range_mut(like.all()) {
                one.enabled = enabled;
            }
        }
        self.version += 1;
        Ok(())
    }

    /// Enables or disables operations, or none if one of them does not exist.
    pub(crate) fn enable_operations(
        &mut self,
        states: impl Iterator<Item = (i32, RtInfoEnabledTypeT)> + Clone,
    ) -> Result<(), ChangeError> {
        for (handle, _) in states.clone() {
            self.index(handle)?;
        }
        for (handle, enabled) in states {
            let index = self.index(handle)?;
            self.operation(index).enabled = enabled;
        }
        self.version += 1;
        Ok(())
    }

    /// Checks the operations and calls of a dependency.
    pub(crate) fn check_dependency(
        &self,
        dependency: &DependencyInfo,
    ) -> Result<EqualDependencies, ChangeError> {
        self.index(dependency.rt_info)?;
        self.index(dependency.rt_info_depended_on)?;
        if dependency.number_of_calls < 1 {
            return Err(ChangeError::BadNumber);
        }
        Ok(EqualDependencies {
            rt_info: dependency.rt_info,
            depended_on: dependency.rt_info_depended_on,
            calls: dependency.number_of_calls,
            is_two_way: dependency.dependency_type == DependencyTypeT::TwoWayCall,
        })
    }

    /// An operation, and what it depends on.
    pub(crate) fn one(&self, index: usize) -> Result<Snapshot, ChangeError> {
        let handle = i32::try_from(index + 1).map_err(|_| ChangeError::UnknownTask)?;
        let like = |rt_info| EqualDependencies {
            rt_info,
            depended_on: 0,
            calls: 0,
            is_two_way: false,
        };
        let range = like(handle).first()..like(handle.saturating_add(1)).first();
        let operation = self.operations.get(index);
        let operation = operation.ok_or(ChangeError::UnknownTask)?;
        Ok(Snapshot {
            operations: vec![operation.clone()],
            dependencies: collect(self.dependencies.range(range))?,
        })
    }

    /// All operations and dependencies as they are now.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, ChangeError> {
        let mut operations = Vec::new();
        let room = operations.try_reserve_exact(self.operations.len());
        room.map_err(|_| ChangeError::Memory)?;
        operations.extend(self.operations.iter().cloned());
        Ok(Snapshot {
            operations,
            dependencies: self.all_dependencies()?,
        })
    }

    pub(crate) fn all_dependencies(&self) -> Result<Vec<DependencyEntry>, ChangeError> {
        let mut all = Vec::new();
        let room = all.try_reserve_exact(self.dependencies.len());
        room.map_err(|_| ChangeError::Memory)?;
        all.extend(self.dependencies.iter().map(numbered));
        Ok(all)
    }
}

impl EqualDependencies {
    const fn first(self) -> DependencyKey {
        DependencyKey {
            like: self,
            number: 0,
        }
    }

    const fn all(self) -> std::ops::RangeInclusive<DependencyKey> {
        let last = DependencyKey {
            like: self,
            number: u64::MAX,
        };
        self.first()..=last
    }
}

/// A dependency with its number in the order of registration.
pub(crate) type DependencyEntry = (u64, DependencyInfo);

fn numbered((key, one): (&DependencyKey, &Dependency)) -> DependencyEntry {
    let DependencyKey { like, number } = *key;
    let dependency = DependencyInfo {
        dependency_type: if like.is_two_way {
            DependencyTypeT::TwoWayCall
        } else {
            DependencyTypeT::OneWayCall
        },
        number_of_calls: like.calls,
        rt_info: like.rt_info,
        rt_info_depended_on: like.depended_on,
        enabled: one.enabled,
    };
    (number, dependency)
}

fn collect<'a>(
    each: impl Iterator<Item = (&'a DependencyKey, &'a Dependency)>,
) -> Result<Vec<DependencyEntry>, ChangeError> {
    let mut all = Vec::new();
    for one in each {
        all.try_reserve(1).map_err(|_| ChangeError::Memory)?;
        all.push(numbered(one));
    }
    Ok(all)
}

/// Operations and dependencies at one time, which computations and answers read without a lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) operations: Vec<Arc<Operation>>,
    /// By the operation that depends on another one.
    pub(crate) dependencies: Vec<DependencyEntry>,
}

impl Snapshot {
    /// The index of the operation that has a handle.
    fn index(&self, handle: i32) -> Option<usize> {
        let index = usize::try_from(handle).ok()?.checked_sub(1)?;
        (index < self.operations.len()).then_some(index)
    }

    /// Whether an operation takes part in the schedule.
    pub(crate) fn is_enabled(&self, index: usize) -> bool {
        self.operations[index].enabled != RtInfoEnabledTypeT::RtInfoDisabled
    }

    /// The calls between enabled operations: caller, callee, number and type.
    pub(crate) fn calls(&self) -> Vec<CallEdge> {
        let disabled = DependencyEnabledTypeT::DependencyDisabled;
        let enabled = self.dependencies.iter().map(|(_, one)| one);
        let enabled = enabled.filter(|one| one.enabled != disabled);
        let edge = |one: &DependencyInfo| {
            let depending = self.index(one.rt_info)?;
            let depended_on = self.index(one.rt_info_depended_on)?;
            let (caller, callee) = match one.dependency_type {
                DependencyTypeT::TwoWayCall => (depending, depended_on),
                DependencyTypeT::OneWayCall => (depended_on, depending),
            };
            let edge = CallEdge {
                caller,
                callee,
                calls: u64::try_from(one.number_of_calls).ok()?,
                is_two_way: one.dependency_type == DependencyTypeT::TwoWayCall,
            };
            (self.is_enabled(caller) && self.is_enabled(callee)).then_some(edge)
        };
        enabled.filter_map(edge).collect()
    }
}

/// Calls of an operation by another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CallEdge {
    pub(crate) caller: usize,
    pub(crate) callee: usize,
    /// The calls for each execution of the caller.
    pub(crate) calls: u64,
    pub(crate) is_two_way: bool,
}

impl CallEdge {
    /// The operation that depends on the other one, and the other one.
    pub(crate) fn dependency(&self) -> (usize, usize) {
        if self.is_two_way {
            (self.caller, self.callee)
        } else {
            (self.callee, self.caller)
        }
    }
}
