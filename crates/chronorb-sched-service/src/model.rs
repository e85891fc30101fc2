//! Operations and dependencies as clients register them.

use std::collections::HashMap;

use crate::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use crate::idl::rtec_scheduler::{CriticalityT, ImportanceT, InfoTypeT, RtInfoEnabledTypeT};

/// The bounds of what clients can register.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of operations.
    pub operations: usize,
    /// The number of dependencies.
    pub dependencies: usize,
    /// The number of rates of an operation.
    pub rates: usize,
    /// The octets of a name.
    pub name: usize,
}

impl Default for Limits {
    /// 10,000 operations with 8 rates and 1,024 octets each, and 100,000 dependencies.
    fn default() -> Self {
        Self {
            operations: 10_000,
            dependencies: 100_000,
            rates: 8,
            name: 1_024,
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
    pub(crate) name: String,
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
}

/// All operations and dependencies. The handle of an operation is its index plus one.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) operations: Vec<Operation>,
    pub(crate) dependencies: Vec<DependencyInfo>,
    by_name: HashMap<String, usize>,
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

    pub(crate) fn create(&mut self, name: &str) -> Result<i32, ChangeError> {
        if self.by_name.contains_key(name) {
            return Err(ChangeError::DuplicateName);
        }
        if self.operations.len() >= self.limits.operations || name.len() > self.limits.name {
            return Err(ChangeError::TooMany);
        }
        let index = self.operations.len();
        let handle = i32::try_from(index + 1).map_err(|_| ChangeError::TooMany)?;
        self.by_name.insert(name.to_owned(), index);
        self.operations.push(Operation {
            name: name.to_owned(),
            rates: Vec::new(),
            enabled: RtInfoEnabledTypeT::RtInfoEnabled,
        });
        Ok(handle)
    }

    pub(crate) fn lookup(&self, name: &str) -> Result<i32, ChangeError> {
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
                self.operations[index].rates.clear();
            }
        }
        for (handle, rate) in rates {
            let index = self.index(*handle)?;
            let present = &mut self.operations[index].rates;
            if !present.contains(rate) {
                present.push(*rate);
            }
        }
        Ok(())
    }

    /// Sets the rates of several operations, and removes those of all others.
    pub(crate) fn replace_all(&mut self, rates: &[(i32, Rate)]) -> Result<(), ChangeError> {
        self.check_rates(rates, Before::Remove)?;
        for operation in &mut self.operations {
            operation.rates.clear();
        }
        self.set_all(rates, Before::Keep)
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

    pub(crate) fn add_dependency(&mut self, dependency: DependencyInfo) -> Result<(), ChangeError> {
        self.check_dependency(&dependency)?;
        if self.dependencies.len() >= self.limits.dependencies {
            return Err(ChangeError::TooMany);
        }
        self.dependencies.push(dependency);
        Ok(())
    }

    /// Removes one dependency of these operations, calls and type. Without one nothing happens.
    pub(crate) fn remove_dependency(&mut self, like: &DependencyInfo) -> Result<(), ChangeError> {
        self.check_dependency(like)?;
        let place = self.dependencies.iter().position(|one| is_same(one, like));
        if let Some(place) = place {
            self.dependencies.remove(place);
        }
        Ok(())
    }

    /// Enables or disables all dependencies like these, or none if one of them is wrong.
    pub(crate) fn enable_dependencies(
        &mut self,
        states: &[DependencyInfo],
    ) -> Result<(), ChangeError> {
        for state in states {
            self.check_dependency(state)?;
        }
        for state in states {
            let all = self.dependencies.iter_mut();
            for one in all.filter(|one| is_same(one, state)) {
                one.enabled = state.enabled;
            }
        }
        Ok(())
    }

    /// Enables or disables operations, or none if one of them does not exist.
    pub(crate) fn enable_operations(
        &mut self,
        states: &[(i32, RtInfoEnabledTypeT)],
    ) -> Result<(), ChangeError> {
        for (handle, _) in states {
            self.index(*handle)?;
        }
        for (handle, enabled) in states {
            let index = self.index(*handle)?;
            self.operations[index].enabled = *enabled;
        }
        Ok(())
    }

    fn check_dependency(&self, dependency: &DependencyInfo) -> Result<(), ChangeError> {
        self.index(dependency.rt_info)?;
        self.index(dependency.rt_info_depended_on)?;
        if dependency.number_of_calls < 1 {
            return Err(ChangeError::BadNumber);
        }
        Ok(())
    }

    /// Whether an operation takes part in the schedule.
    pub(crate) fn is_enabled(&self, index: usize) -> bool {
        self.operations[index].enabled != RtInfoEnabledTypeT::RtInfoDisabled
    }

    /// The calls between enabled operations: caller, callee, number and type.
    pub(crate) fn calls(&self) -> Vec<CallEdge> {
        let disabled = DependencyEnabledTypeT::DependencyDisabled;
        let enabled = self
            .dependencies
            .iter()
            .filter(|one| one.enabled != disabled);
        let edge = |one: &DependencyInfo| {
            let depending = self.index(one.rt_info).ok()?;
            let depended_on = self.index(one.rt_info_depended_on).ok()?;
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

fn is_same(one: &DependencyInfo, other: &DependencyInfo) -> bool {
    let key = |it: &DependencyInfo| {
        let operations = (it.rt_info, it.rt_info_depended_on);
        (operations, it.number_of_calls, it.dependency_type)
    };
    key(one) == key(other)
}
