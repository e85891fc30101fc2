//! The servant of the scheduling service.

use std::sync::Arc;

use chronorb::quota::{Charge, Quota, QuotaError};
use chronorb::{Call, Orb, SystemException, SystemExceptionKind};
use chronorb_rt::PiMutex;
use chronorb_sched::LevelStrategy;

use crate::compute::{Computation, Place, Schedule, compute};
use crate::idl::rtec_base::{
    DependencyEnabledTypeT, DependencyInfo, DependencyTypeT, HandleT, OsPriority,
    PreemptionPriorityT, PreemptionSubpriorityT,
};
use crate::idl::rtec_scheduler::{
    AddDependencyError, AnomalySeverity, ComputeSchedulingError, ComputeSchedulingOutBuf,
    ConfigInfoBuf, ConfigInfoSetBuf, CreateError, CriticalityT, DependencySet, DependencySetBuf,
    DispatchConfigurationError, DispatchingTypeT, DuplicateName, EntryPointPriorityError,
    GetConfigInfoSetError, GetConfigInfosError, GetDependencySetError, GetError, GetRtInfoSetError,
    ImportanceT, InfoTypeT, LastScheduledPriorityError, LookupError, NotScheduled, PeriodT,
    PriorityError, QuantumT, RecomputeSchedulingError, RemoveDependencyError, ReplaceSeqError,
    ResetError, ResetSeqError, RtInfo, RtInfoBuf, RtInfoEnableStatePairSet, RtInfoEnabledTypeT,
    RtInfoSet, RtInfoSetBuf, SchedulerOwnedServant, SchedulingAnomalyBuf, SchedulingAnomalySetBuf,
    SetDependencyEnableStateError, SetDependencyEnableStateSeqError, SetError,
    SetRtInfoEnableStateError, SetRtInfoEnableStateSeqError, SetSeqError, ThreadsT, Time,
    UnknownPriorityLevel, UnknownTask,
};
use crate::model::{
    Before, ChangeError, DependencyEntry, Limits, Model, Operation, Rate, Snapshot,
};

/// The registered operations, and the schedule that is in force: the last one that was computed.
///
/// No lock is held for a computation or an answer: they read a copy.
pub(crate) struct Scheduler {
    strategy: LevelStrategy,
    limits: Limits,
    state: PiMutex<State>,
    operations: Arc<Quota>,
    texts: Arc<Quota>,
    dependencies: Arc<Quota>,
    computations: Arc<Quota>,
}

#[derive(Default)]
struct State {
    model: Model,
    computed: Option<Arc<ComputationResult>>,
    /// The result with a schedule that began last. It is in force, also if a later computation
    /// had a fatal anomaly.
    in_force: Option<Arc<ComputationResult>>,
    /// The computations that began so far.
    began: u64,
}

/// The result of the computation that began last among those that have ended.
struct ComputationResult {
    /// The number of the computation.
    began: u64,
    /// The version of the model, and the priorities, that it was made of.
    version: u64,
    range: (i32, i32),
    schedule: Option<Schedule>,
    anomalies: SchedulingAnomalySetBuf,
}

/// A computation that has begun.
struct ComputationStart {
    number: u64,
    version: u64,
    range: (i32, i32),
    snapshot: Snapshot,
    /// The result, if the last computation was of the same.
    known: Option<Arc<ComputationResult>>,
}

type Priorities = (OsPriority, PreemptionSubpriorityT, PreemptionPriorityT);

impl Scheduler {
    pub(crate) fn new(strategy: LevelStrategy, limits: Limits, orb: &Orb) -> Self {
        let state = State {
            model: Model::new(limits),
            ..State::default()
        };
        Self {
            strategy,
            limits,
            state: PiMutex::new(state),
            operations: orb.quota("operations", limits.operations),
            texts: orb.quota("octets of operation names", limits.texts),
            dependencies: orb.quota("dependencies of operations", limits.dependencies),
            computations: orb.quota("computations of schedules", limits.computations),
        }
    }

    fn change<E: From<UnknownTask> + From<SystemException>>(
        &self,
        change: impl FnOnce(&mut Model) -> Result<(), ChangeError>,
    ) -> Result<(), E> {
        change(&mut self.state.lock().model).map_err(refusal)
    }

    /// Computes a schedule of the operations as they are now. Without one, that of before stays in
    /// force. Changes meanwhile are kept, and take effect at the next computation. Of
    /// several computations at a time, the one that began last decides.
    fn compute(
        &self,
        call: &Call<'_>,
        range: (i32, i32),
    ) -> Result<(Snapshot, Arc<ComputationResult>), SystemException> {
        let _running = charge(&self.computations, call, 1)?;
        let begun = self.begin(range)?;
        if let Some(computed) = begun.known {
            return Ok((begun.snapshot, computed));
        }
        let computation = compute(&begun.snapshot, &self.limits, self.strategy, range);
        Ok(self.end(begun, computation))
    }

    fn begin(&self, range: (i32, i32)) -> Result<ComputationStart, SystemException> {
        let mut state = self.state.lock();
        state.began += 1;
        let version = state.model.version();
        // The result follows from the operations and the priorities alone.
        let is_same = |it: &&Arc<ComputationResult>| it.version == version && it.range == range;
        Ok(ComputationStart {
            number: state.began,
            version,
            range,
            known: state.computed.as_ref().filter(is_same).cloned(),
            snapshot: state.model.snapshot().map_err(unavailable)?,
        })
    }

    fn end(
        &self,
        begun: ComputationStart,
        mut computation: Computation,
    ) -> (Snapshot, Arc<ComputationResult>) {
        let has_schedule = computation.schedule.is_some();
        if !has_schedule && self.in_force().is_some() {
            computation.anomalies.push(SchedulingAnomalyBuf {
                description: KEPT.to_owned(),
                severity: AnomalySeverity::AnomalyWarning,
            });
        }
        let computed = Arc::new(ComputationResult {
            began: begun.number,
            version: begun.version,
            range: begun.range,
            schedule: computation.schedule,
            anomalies: computation.anomalies,
        });
        // The others are dropped without the lock.
        let mut others = [
            Some(computed.clone()),
            has_schedule.then(|| computed.clone()),
        ];
        let mut state = self.state.lock();
        let State {
            computed: last,
            in_force,
            ..
        } = &mut *state;
        for (present, new) in [last, in_force].into_iter().zip(&mut others) {
            let is_later = present.as_ref().is_none_or(|it| it.began < begun.number);
            if is_later && new.is_some() {
                std::mem::swap(present, new);
            }
        }
        drop(state);
        (begun.snapshot, computed)
    }

    fn in_force(&self) -> Option<Arc<ComputationResult>> {
        self.state.lock().in_force.clone()
    }

    /// Returns the result of a computation if it has a schedule, and else the one that is in
    /// force.
    fn in_force_after(&self, computed: &Arc<ComputationResult>) -> Option<Arc<ComputationResult>> {
        let is_own = computed.schedule.is_some();
        is_own.then(|| computed.clone()).or_else(|| self.in_force())
    }

    fn priorities<E: From<UnknownTask> + From<NotScheduled>>(
        &self,
        handle: impl FnOnce(&Model) -> Result<HandleT, ChangeError>,
    ) -> Result<Priorities, E> {
        let state = self.state.lock();
        let index = handle(&state.model).and_then(|handle| state.model.index(handle));
        let index = index.map_err(|_| UnknownTask)?;
        let in_force = state.in_force.as_ref().ok_or(NotScheduled)?;
        let schedule = in_force.schedule.as_ref().ok_or(NotScheduled)?;
        let place = schedule.places.get(index).copied().flatten();
        let place = place.ok_or(NotScheduled)?;
        Ok((place.thread, place.subpriority, place.level))
    }

    /// Refuses an answer of more octets than the limit, before it is built.
    fn check_answer(&self, octets: usize) -> Result<(), SystemException> {
        if octets.saturating_add(HEADER) > self.limits.answer {
            return Err(system(SystemExceptionKind::NoResources));
        }
        Ok(())
    }

    /// Returns the levels of the schedule; `None` without one.
    fn levels(&self) -> Result<Option<ConfigInfoSetBuf>, SystemException> {
        let in_force = self.in_force();
        let schedule = in_force.as_ref().and_then(|it| it.schedule.as_ref());
        let Some(schedule) = schedule else {
            return Ok(None);
        };
        self.check_answer(octets_of_levels(&schedule.levels))?;
        Ok(Some(schedule.levels.clone()))
    }

    /// Returns the needs and places of all operations.
    fn infos(
        &self,
        snapshot: &Snapshot,
        schedule: Option<&Schedule>,
    ) -> Result<RtInfoSetBuf, SystemException> {
        let mut infos = room(snapshot.operations.len())?;
        let mut rest = &*snapshot.dependencies;
        for (index, operation) in snapshot.operations.iter().enumerate() {
            // The dependencies have the order of the operations.
            let is_own = |(_, one): &&DependencyEntry| one.rt_info <= handle(index);
            let (own, later) = rest.split_at(rest.iter().take_while(is_own).count());
            rest = later;
            infos.push(info(index, operation, own, schedule)?);
        }
        Ok(infos)
    }
}

impl Schedule {
    /// Returns the place of an operation, unless its rate was removed since.
    fn current_place(&self, index: usize, operation: &Operation) -> Option<Place> {
        let rate = self.rates.get(index)?;
        let is_current = rate.is_none_or(|rate| operation.rates.contains(&rate));
        self.places[index].filter(|_| is_current)
    }
}

impl ComputationResult {
    fn levels(&self) -> &[ConfigInfoBuf] {
        self.schedule.as_ref().map_or(&[], |it| &it.levels)
    }
}

/// The warning beside a fatal anomaly, if there is a schedule of an earlier computation.
const KEPT: &str =
    "the schedule of before stays in force; operations that were added since have no priority";
/// The greatest number of octets of a reply without its results.
const HEADER: usize = 1 << 10;
/// The octets of a dependency in an answer.
const DEPENDENCY: usize = 20;

/// The octets of all operations in an answer, at most.
fn octets_of_infos(snapshot: &Snapshot) -> usize {
    let names = snapshot.operations.iter().map(|it| 128 + it.name.len());
    names.sum::<usize>() + snapshot.dependencies.len() * DEPENDENCY
}

/// The octets of levels in an answer, at most.
fn octets_of_levels(levels: &[ConfigInfoBuf]) -> usize {
    let each = levels.iter().map(|it| 16 + 4 * it.timer_periods.len());
    each.sum()
}

/// The octets of anomalies in an answer, at most.
fn octets_of_anomalies(anomalies: &[SchedulingAnomalyBuf]) -> usize {
    anomalies.iter().map(|it| 16 + it.description.len()).sum()
}

/// The handle of an index.
fn handle(index: usize) -> HandleT {
    HandleT::try_from(index + 1).unwrap_or(HandleT::MAX)
}

/// The needs and the place of an operation. Period and criticality are those at which it runs, as
/// in TAO: of an operation without a period of its own, the period of its callers.
fn info(
    index: usize,
    operation: &Operation,
    own: &[DependencyEntry],
    schedule: Option<&Schedule>,
) -> Result<RtInfoBuf, SystemException> {
    let rate = schedule.and_then(|it| *it.rates.get(index)?);
    let rate = rate.filter(|rate| operation.rates.contains(rate));
    // Without a rate that was admitted, the one that was set last.
    let rate = rate.or_else(|| operation.rates.last().copied());
    let rate = rate.unwrap_or_default();
    let place = schedule.and_then(|it| *it.places.get(index)?);
    let priorities = |place: Place| (place.thread, place.subpriority, place.level);
    let (thread, subpriority, level) = place.map_or((0, 0, 0), priorities);
    let effective = schedule.and_then(|it| it.current_place(index, operation));
    let set = (rate.period, rate.criticality);
    let (period, criticality) = effective.map_or(set, |it| (it.period, it.criticality));
    Ok(RtInfoBuf {
        entry_point: operation.name.as_ref().to_owned(),
        handle: handle(index),
        worst_case_execution_time: rate.worst,
        typical_execution_time: rate.typical,
        cached_execution_time: rate.cached,
        period: period.cast_signed(),
        criticality,
        importance: rate.importance,
        quantum: rate.quantum,
        threads: rate.threads.cast_signed(),
        dependencies: in_order(own)?,
        priority: thread,
        preemption_subpriority: subpriority,
        preemption_priority: level,
        info_type: rate.kind,
        enabled: operation.enabled,
        volatile_token: 0,
    })
}

/// Dependencies in the order in which they were registered.
fn in_order(dependencies: &[DependencyEntry]) -> Result<DependencySetBuf, SystemException> {
    let mut sorted = room(dependencies.len())?;
    sorted.extend_from_slice(dependencies);
    sorted.sort_unstable_by_key(|(number, _)| *number);
    let mut all = room(dependencies.len())?;
    all.extend(sorted.into_iter().map(|(_, one)| one));
    Ok(all)
}

/// An empty list with room for as many items.
fn room<T>(items: usize) -> Result<Vec<T>, SystemException> {
    let mut list = Vec::new();
    let reserved = list.try_reserve_exact(items);
    reserved.map_err(|_| system(SystemExceptionKind::NoMemory))?;
    Ok(list)
}

/// Charges the origin of a call.
fn charge(quota: &Arc<Quota>, call: &Call<'_>, amount: u64) -> Result<Charge, SystemException> {
    let charged = quota.charge(call.origin(), amount);
    charged.map_err(|error| {
        system(match error {
            QuotaError::Memory { .. } => SystemExceptionKind::NoMemory,
            _ => SystemExceptionKind::NoResources,
        })
    })
}

/// The exception of a refused change.
fn refusal<E: From<UnknownTask> + From<SystemException>>(error: ChangeError) -> E {
    match error {
        ChangeError::UnknownTask => UnknownTask.into(),
        error => unavailable(error).into(),
    }
}

/// The system exception of a refused change.
const fn unavailable(error: ChangeError) -> SystemException {
    system(match error {
        ChangeError::BadNumber | ChangeError::DuplicateName | ChangeError::UnknownTask => {
            SystemExceptionKind::BadParam
        }
        ChangeError::TooMany => SystemExceptionKind::NoResources,
        ChangeError::Memory => SystemExceptionKind::NoMemory,
    })
}

const fn system(kind: SystemExceptionKind) -> SystemException {
    SystemException::no(kind, 0)
}

fn not_negative(number: i32) -> Result<u32, SystemException> {
    u32::try_from(number).map_err(|_| system(SystemExceptionKind::BadParam))
}

fn rate_of(info: &RtInfo<'_>) -> Result<Rate, SystemException> {
    Ok(Rate {
        criticality: info.criticality,
        importance: info.importance,
        worst: info.worst_case_execution_time,
        typical: info.typical_execution_time,
        cached: info.cached_execution_time,
        period: not_negative(info.period)?,
        quantum: info.quantum,
        threads: not_negative(info.threads)?,
        kind: info.info_type,
    })
}

fn rates_of(
    infos: RtInfoSet<'_>,
    limits: &Limits,
) -> Result<Vec<(HandleT, Rate)>, SystemException> {
    let most = limits.operations.total.saturating_mul(limits.rates as u64);
    if infos.len() as u64 > most {
        return Err(system(SystemExceptionKind::NoResources));
    }
    let mut rates = room(infos.len())?;
    for info in infos {
        rates.push((info.handle, rate_of(info)?));
    }
    Ok(rates)
}

fn dependency(
    rt_info: HandleT,
    rt_info_depended_on: HandleT,
    number_of_calls: i32,
    dependency_type: DependencyTypeT,
    enabled: DependencyEnabledTypeT,
) -> DependencyInfo {
    DependencyInfo {
        dependency_type,
        number_of_calls,
        rt_info,
        rt_info_depended_on,
        enabled,
    }
}

const ENABLED: DependencyEnabledTypeT = DependencyEnabledTypeT::DependencyEnabled;

impl SchedulerOwnedServant for Scheduler {
    fn create(&self, call: &Call<'_>, entry_point: &str) -> Result<HandleT, CreateError> {
        // A name that exists is no refusal of a quota.
        if self.state.lock().model.lookup(entry_point).is_ok() {
            return Err(DuplicateName.into());
        }
        let charges = [
            charge(&self.operations, call, 1)?,
            charge(&self.texts, call, entry_point.len() as u64)?,
        ];
        let created = self.state.lock().model.create(entry_point, charges);
        created.map_err(|error| match error {
            ChangeError::DuplicateName => DuplicateName.into(),
            error => unavailable(error).into(),
        })
    }

    fn lookup(&self, _: &Call<'_>, entry_point: &str) -> Result<HandleT, LookupError> {
        let found = self.state.lock().model.lookup(entry_point);
        found.map_err(|_| UnknownTask.into())
    }

    fn get(&self, _: &Call<'_>, handle: HandleT) -> Result<RtInfoBuf, GetError> {
        let (index, one, in_force) = {
            let state = self.state.lock();
            let index = state.model.index(handle).map_err(|_| UnknownTask)?;
            let one = state.model.one(index).map_err(unavailable)?;
            (index, one, state.in_force.clone())
        };
        self.check_answer(octets_of_infos(&one))?;
        let schedule = in_force.as_ref().and_then(|it| it.schedule.as_ref());
        let operation = one.operations.first().ok_or(UnknownTask)?;
        Ok(info(index, operation, &one.dependencies, schedule)?)
    }

    fn set(
        &self,
        _: &Call<'_>,
        handle: HandleT,
        criticality: CriticalityT,
        worst: Time,
        typical: Time,
        cached: Time,
        period: PeriodT,
        importance: ImportanceT,
        quantum: QuantumT,
        threads: ThreadsT,
        kind: InfoTypeT,
    ) -> Result<(), SetError> {
        let rate = Rate {
            criticality,
            importance,
            worst,
            typical,
            cached,
            period: not_negative(period)?,
            quantum,
            threads: not_negative(threads)?,
            kind,
        };
        self.change(|model| model.set_all(&[(handle, rate)], Before::Keep))
    }

    fn reset(
        &self,
        _: &Call<'_>,
        handle: HandleT,
        criticality: CriticalityT,
        worst: Time,
        typical: Time,
        cached: Time,
        period: PeriodT,
        importance: ImportanceT,
        quantum: QuantumT,
        threads: ThreadsT,
        kind: InfoTypeT,
    ) -> Result<(), ResetError> {
        let rate = Rate {
            criticality,
            importance,
            worst,
            typical,
            cached,
            period: not_negative(period)?,
            quantum,
            threads: not_negative(threads)?,
            kind,
        };
        self.change(|model| model.set_all(&[(handle, rate)], Before::Remove))
    }

    fn set_seq(&self, _: &Call<'_>, infos: RtInfoSet<'_>) -> Result<(), SetSeqError> {
        let rates = rates_of(infos, &self.limits)?;
        self.change(|model| model.set_all(&rates, Before::Keep))
    }

    fn reset_seq(&self, _: &Call<'_>, infos: RtInfoSet<'_>) -> Result<(), ResetSeqError> {
        let rates = rates_of(infos, &self.limits)?;
        self.change(|model| model.set_all(&rates, Before::Remove))
    }

    fn replace_seq(&self, _: &Call<'_>, infos: RtInfoSet<'_>) -> Result<(), ReplaceSeqError> {
        let rates = rates_of(infos, &self.limits)?;
        self.change(|model| model.replace_all(&rates))
    }

    fn add_dependency(
        &self,
        call: &Call<'_>,
        handle: HandleT,
        on: HandleT,
        calls: i32,
        kind: DependencyTypeT,
    ) -> Result<(), AddDependencyError> {
        let added = dependency(handle, on, calls, kind, ENABLED);
        self.change::<AddDependencyError>(|model| model.check_dependency(&added).map(|_| ()))?;
        let charge = charge(&self.dependencies, call, 1)?;
        self.change(|model| model.add_dependency(added, charge))
    }

    fn remove_dependency(
        &self,
        _: &Call<'_>,
        handle: HandleT,
        on: HandleT,
        calls: i32,
        kind: DependencyTypeT,
    ) -> Result<(), RemoveDependencyError> {
        let like = dependency(handle, on, calls, kind, ENABLED);
        self.change(|model| model.remove_dependency(&like))
    }

    fn set_dependency_enable_state(
        &self,
        _: &Call<'_>,
        handle: HandleT,
        on: HandleT,
        calls: i32,
        kind: DependencyTypeT,
        enabled: DependencyEnabledTypeT,
    ) -> Result<(), SetDependencyEnableStateError> {
        let state = dependency(handle, on, calls, kind, enabled);
        self.change(|model| model.enable_dependencies(&[state]))
    }

    fn set_dependency_enable_state_seq(
        &self,
        _: &Call<'_>,
        dependencies: DependencySet<'_>,
    ) -> Result<(), SetDependencyEnableStateSeqError> {
        self.change(|model| model.enable_dependencies(dependencies))
    }

    fn set_rt_info_enable_state(
        &self,
        _: &Call<'_>,
        handle: HandleT,
        enabled: RtInfoEnabledTypeT,
    ) -> Result<(), SetRtInfoEnableStateError> {
        self.change(|model| model.enable_operations(std::iter::once((handle, enabled))))
    }

    fn set_rt_info_enable_state_seq(
        &self,
        _: &Call<'_>,
        pairs: RtInfoEnableStatePairSet<'_>,
    ) -> Result<(), SetRtInfoEnableStateSeqError> {
        let states = pairs.iter().map(|pair| (pair.handle, pair.enabled));
        self.change(|model| model.enable_operations(states))
    }

    fn priority(&self, _: &Call<'_>, handle: HandleT) -> Result<Priorities, PriorityError> {
        self.priorities(|_| Ok(handle))
    }

    fn entry_point_priority(
        &self,
        _: &Call<'_>,
        entry_point: &str,
    ) -> Result<Priorities, EntryPointPriorityError> {
        self.priorities(|model| model.lookup(entry_point))
    }

    fn compute_scheduling(
        &self,
        call: &Call<'_>,
        minimum: i32,
        maximum: i32,
    ) -> Result<ComputeSchedulingOutBuf, ComputeSchedulingError> {
        let (snapshot, computed) = self.compute(call, (minimum, maximum))?;
        let in_force = self.in_force_after(&computed);
        let schedule = in_force.as_ref().and_then(|it| it.schedule.as_ref());
        let levels = schedule.map_or(&[][..], |it| &it.levels);
        let octets = octets_of_infos(&snapshot)
            + snapshot.dependencies.len() * DEPENDENCY
            + octets_of_levels(levels)
            + octets_of_anomalies(&computed.anomalies);
        self.check_answer(octets)?;
        Ok(ComputeSchedulingOutBuf {
            infos: self.infos(&snapshot, schedule)?,
            dependencies: in_order(&snapshot.dependencies)?,
            configs: levels.to_vec(),
            anomalies: computed.anomalies.clone(),
        })
    }

    fn recompute_scheduling(
        &self,
        call: &Call<'_>,
        minimum: i32,
        maximum: i32,
    ) -> Result<SchedulingAnomalySetBuf, RecomputeSchedulingError> {
        let (_, computed) = self.compute(call, (minimum, maximum))?;
        self.check_answer(octets_of_anomalies(&computed.anomalies))?;
        Ok(computed.anomalies.clone())
    }

    fn get_rt_info_set(&self, _: &Call<'_>) -> Result<RtInfoSetBuf, GetRtInfoSetError> {
        let (snapshot, in_force) = {
            let state = self.state.lock();
            let snapshot = state.model.snapshot().map_err(unavailable)?;
            (snapshot, state.in_force.clone())
        };
        self.check_answer(octets_of_infos(&snapshot))?;
        let schedule = in_force.as_ref().and_then(|it| it.schedule.as_ref());
        Ok(self.infos(&snapshot, schedule)?)
    }

    fn get_dependency_set(&self, _: &Call<'_>) -> Result<DependencySetBuf, GetDependencySetError> {
        let all = self.state.lock().model.all_dependencies();
        let all = all.map_err(unavailable)?;
        self.check_answer(all.len() * DEPENDENCY)?;
        Ok(in_order(&all)?)
    }

    fn get_config_info_set(&self, _: &Call<'_>) -> Result<ConfigInfoSetBuf, GetConfigInfoSetError> {
        Ok(self.levels()?.unwrap_or_default())
    }

    fn dispatch_configuration(
        &self,
        _: &Call<'_>,
        level: PreemptionPriorityT,
    ) -> Result<(OsPriority, DispatchingTypeT), DispatchConfigurationError> {
        let in_force = self.in_force().ok_or(NotScheduled)?;
        let schedule = in_force.schedule.as_ref().ok_or(NotScheduled)?;
        let index = usize::try_from(level).ok();
        let level = index.and_then(|index| schedule.levels.get(index));
        let level = level.ok_or(UnknownPriorityLevel)?;
        Ok((level.thread_priority, level.dispatching_type))
    }

    fn last_scheduled_priority(
        &self,
        _: &Call<'_>,
    ) -> Result<PreemptionPriorityT, LastScheduledPriorityError> {
        let in_force = self.in_force().ok_or(NotScheduled)?;
        let last = in_force.levels().last().ok_or(NotScheduled)?;
        Ok(last.preemption_priority)
    }

    fn get_config_infos(&self, _: &Call<'_>) -> Result<ConfigInfoSetBuf, GetConfigInfosError> {
        Ok(self.levels()?.ok_or(NotScheduled)?)
    }
}

#[cfg(test)]
mod tests {
    use chronorb::config::OrbConfig;
    use chronorb::quota::Origin;

    use super::*;

    const RANGE: (i32, i32) = (1, 98);

    fn scheduler() -> Scheduler {
        let orb = Orb::with_config(OrbConfig::default()).unwrap();
        Scheduler::new(LevelStrategy::MaximumUrgency, Limits::default(), &orb)
    }

    fn add(scheduler: &Scheduler, name: &str) -> HandleT {
        let charge = |quota: &Arc<Quota>| quota.charge(Origin::Process, 1).unwrap();
        let charges = [charge(&scheduler.operations), charge(&scheduler.texts)];
        let mut state = scheduler.state.lock();
        let handle = state.model.create(name, charges).unwrap();
        let rate = Rate {
            worst: 1,
            period: 100,
            ..Rate::default()
        };
        state
            .model
            .set_all(&[(handle, rate)], Before::Keep)
            .unwrap();
        handle
    }

    fn run(scheduler: &Scheduler, begun: ComputationStart) -> Arc<ComputationResult> {
        let limits = Limits::default();
        let computation = compute(&begun.snapshot, &limits, scheduler.strategy, RANGE);
        scheduler.end(begun, computation).1
    }

    fn priority(scheduler: &Scheduler, name: &str) -> Result<Priorities, PriorityError> {
        scheduler.priorities(|model| model.lookup(name))
    }

    #[test]
    fn a_computation_holds_no_lock_and_loses_no_change() {
        let scheduler = scheduler();
        add(&scheduler, "before");
        let begun = scheduler.begin(RANGE).unwrap();
        // With the lock these would wait for ever.
        add(&scheduler, "meanwhile");
        assert_eq!(scheduler.state.lock().model.lookup("meanwhile"), Ok(2));
        assert!(run(&scheduler, begun).schedule.is_some());
        assert_eq!(priority(&scheduler, "before").unwrap(), (98, 0, 0));
        let unplaced = priority(&scheduler, "meanwhile").unwrap_err();
        assert_eq!(unplaced, PriorityError::NotScheduled(NotScheduled));
        let next = scheduler.begin(RANGE).unwrap();
        run(&scheduler, next);
        assert_eq!(priority(&scheduler, "meanwhile").unwrap(), (98, 0, 0));
        assert_eq!(priority(&scheduler, "before").unwrap(), (98, 1, 0));
    }

    #[test]
    fn the_computation_that_began_last_decides() {
        let scheduler = scheduler();
        add(&scheduler, "a");
        let first = scheduler.begin(RANGE).unwrap();
        add(&scheduler, "b");
        let second = scheduler.begin(RANGE).unwrap();
        run(&scheduler, second);
        let late = run(&scheduler, first);
        assert_eq!(late.schedule.as_ref().unwrap().places.len(), 1);
        assert_eq!(priority(&scheduler, "b").unwrap(), (98, 0, 0));
    }

    #[test]
    fn a_fatal_computation_keeps_the_schedule_of_one_that_ends_later() {
        let scheduler = scheduler();
        add(&scheduler, "a");
        let first = scheduler.begin(RANGE).unwrap();
        let bad = add(&scheduler, "b");
        let without_period = Rate {
            threads: 1,
            ..Rate::default()
        };
        let set = [(bad, without_period)];
        let mut state = scheduler.state.lock();
        state.model.set_all(&set, Before::Remove).unwrap();
        drop(state);
        let second = scheduler.begin(RANGE).unwrap();
        let fatal = run(&scheduler, second);
        assert!(fatal.schedule.is_none());
        assert_eq!(fatal.anomalies.len(), 1, "there was no schedule before");
        run(&scheduler, first);
        assert_eq!(priority(&scheduler, "a").unwrap(), (98, 0, 0));
        let known = scheduler.begin(RANGE).unwrap().known.unwrap();
        assert!(Arc::ptr_eq(&known, &fatal));
    }

    #[test]
    fn a_result_is_known_until_a_change() {
        let scheduler = scheduler();
        add(&scheduler, "a");
        let begun = scheduler.begin(RANGE).unwrap();
        assert!(begun.known.is_none());
        let computed = run(&scheduler, begun);
        let again = scheduler.begin(RANGE).unwrap().known.unwrap();
        assert!(Arc::ptr_eq(&computed, &again));
        assert!(scheduler.begin((1, 99)).unwrap().known.is_none());
        add(&scheduler, "b");
        assert!(scheduler.begin(RANGE).unwrap().known.is_none());
    }
}
