//! The servant of the scheduling service.

use chronorb::{Call, SystemException, SystemExceptionKind};
use chronorb_rt::PiMutex;
use chronorb_sched::LevelStrategy;

use crate::compute::{Place, Schedule, compute};
use crate::idl::rtec_base::{
    DependencyEnabledTypeT, DependencyInfo, DependencyTypeT, HandleT, OsPriority,
    PreemptionPriorityT, PreemptionSubpriorityT,
};
use crate::idl::rtec_scheduler::{
    AddDependencyError, ComputeSchedulingError, ComputeSchedulingOutBuf, ConfigInfoSetBuf,
    CreateError, CriticalityT, DependencySet, DependencySetBuf, DispatchConfigurationError,
    DispatchingTypeT, DuplicateName, EntryPointPriorityError, GetConfigInfoSetError,
    GetConfigInfosError, GetDependencySetError, GetError, GetRtInfoSetError, ImportanceT,
    InfoTypeT, LastScheduledPriorityError, LookupError, NotScheduled, PeriodT, PriorityError,
    QuantumT, RecomputeSchedulingError, RemoveDependencyError, ReplaceSeqError, ResetError,
    ResetSeqError, RtInfo, RtInfoBuf, RtInfoEnableStatePairSet, RtInfoEnabledTypeT, RtInfoSet,
    RtInfoSetBuf, SchedulerOwnedServant, SchedulingAnomalySetBuf, SetDependencyEnableStateError,
    SetDependencyEnableStateSeqError, SetError, SetRtInfoEnableStateError,
    SetRtInfoEnableStateSeqError, SetSeqError, ThreadsT, Time, UnknownPriorityLevel, UnknownTask,
};
use crate::model::{Before, ChangeError, Limits, Model, Rate};

/// The registered operations, and the schedule that was computed last.
pub(crate) struct Scheduler {
    strategy: LevelStrategy,
    state: PiMutex<State>,
}

#[derive(Default)]
struct State {
    model: Model,
    schedule: Option<Schedule>,
}

type Priorities = (OsPriority, PreemptionSubpriorityT, PreemptionPriorityT);

impl Scheduler {
    pub(crate) fn new(strategy: LevelStrategy, limits: Limits) -> Self {
        let state = State {
            model: Model::new(limits),
            schedule: None,
        };
        Self {
            strategy,
            state: PiMutex::new(state),
        }
    }

    fn change<E: From<UnknownTask> + From<SystemException>>(
        &self,
        change: impl FnOnce(&mut Model) -> Result<(), ChangeError>,
    ) -> Result<(), E> {
        change(&mut self.state.lock().model).map_err(refusal)
    }

    /// Computes a schedule. Without one, that of before does not hold any more.
    fn compute(&self, range: (i32, i32)) -> (Results, SchedulingAnomalySetBuf) {
        let mut state = self.state.lock();
        let computation = compute(&state.model, self.strategy, range);
        state.schedule = computation.schedule;
        let result = Results {
            infos: state.infos(),
            dependencies: state.model.dependencies.clone(),
            levels: state.levels().unwrap_or_default(),
        };
        (result, computation.anomalies)
    }
}

/// The results of a computation.
struct Results {
    infos: RtInfoSetBuf,
    dependencies: DependencySetBuf,
    levels: ConfigInfoSetBuf,
}

impl State {
    fn info(&self, index: usize) -> RtInfoBuf {
        let operation = &self.model.operations[index];
        let handle = index as HandleT + 1;
        let scheduled = self.schedule.as_ref();
        let rate = scheduled.and_then(|it| *it.rates.get(index)?);
        let rate = rate.filter(|rate| operation.rates.contains(rate));
        // Without a rate that was admitted, the one that was set last.
        let rate = rate.or_else(|| operation.rates.last().copied());
        let rate = rate.unwrap_or_default();
        let place = scheduled.and_then(|it| *it.places.get(index)?);
        let place = place.unwrap_or(Place {
            thread: 0,
            subpriority: 0,
            level: 0,
        });
        let dependencies = self.model.dependencies.iter();
        RtInfoBuf {
            entry_point: operation.name.clone(),
            handle,
            worst_case_execution_time: rate.worst,
            typical_execution_time: rate.typical,
            cached_execution_time: rate.cached,
            period: rate.period.cast_signed(),
            criticality: rate.criticality,
            importance: rate.importance,
            quantum: rate.quantum,
            threads: rate.threads.cast_signed(),
            dependencies: dependencies
                .filter(|one| one.rt_info == handle)
                .copied()
                .collect(),
            priority: place.thread,
            preemption_subpriority: place.subpriority,
            preemption_priority: place.level,
            info_type: rate.kind,
            enabled: operation.enabled,
            volatile_token: 0,
        }
    }

    fn infos(&self) -> RtInfoSetBuf {
        (0..self.model.operations.len())
            .map(|index| self.info(index))
            .collect()
    }

    fn levels(&self) -> Option<ConfigInfoSetBuf> {
        self.schedule
            .as_ref()
            .map(|schedule| schedule.levels.clone())
    }

    fn priorities<E: From<UnknownTask> + From<NotScheduled>>(
        &self,
        handle: Result<HandleT, ChangeError>,
    ) -> Result<Priorities, E> {
        let index = handle.and_then(|handle| self.model.index(handle));
        let index = index.map_err(|_| UnknownTask)?;
        let schedule = self.schedule.as_ref().ok_or(NotScheduled)?;
        let place = schedule.places.get(index).copied().flatten();
        let place = place.ok_or(NotScheduled)?;
        Ok((place.thread, place.subpriority, place.level))
    }
}

/// The exception of a refused change.
fn refusal<E: From<UnknownTask> + From<SystemException>>(error: ChangeError) -> E {
    match error {
        ChangeError::UnknownTask => UnknownTask.into(),
        ChangeError::BadNumber | ChangeError::DuplicateName => {
            system(SystemExceptionKind::BadParam).into()
        }
        ChangeError::TooMany => system(SystemExceptionKind::NoResources).into(),
    }
}

const fn system(kind: SystemExceptionKind) -> SystemException {
    SystemException::no(kind, 0)
}

fn not_negative(number: i32) -> Result<u32, SystemException> {
    u32::try_from(number).map_err(|_| system(SystemExceptionKind::BadParam))
}

fn rates_of(infos: RtInfoSet<'_>) -> Result<Vec<(HandleT, Rate)>, SystemException> {
    let rate = |info: &RtInfo<'_>| {
        let rate = Rate {
            criticality: info.criticality,
            importance: info.importance,
            worst: info.worst_case_execution_time,
            typical: info.typical_execution_time,
            cached: info.cached_execution_time,
            period: not_negative(info.period)?,
            quantum: info.quantum,
            threads: not_negative(info.threads)?,
            kind: info.info_type,
        };
        Ok((info.handle, rate))
    };
    infos.iter().map(rate).collect()
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
    fn create(&self, _: &Call<'_>, entry_point: &str) -> Result<HandleT, CreateError> {
        let created = self.state.lock().model.create(entry_point);
        created.map_err(|error| match error {
            ChangeError::DuplicateName => DuplicateName.into(),
            _ => system(SystemExceptionKind::NoResources).into(),
        })
    }

    fn lookup(&self, _: &Call<'_>, entry_point: &str) -> Result<HandleT, LookupError> {
        let found = self.state.lock().model.lookup(entry_point);
        found.map_err(|_| UnknownTask.into())
    }

    fn get(&self, _: &Call<'_>, handle: HandleT) -> Result<RtInfoBuf, GetError> {
        let state = self.state.lock();
        let index = state.model.index(handle).map_err(|_| UnknownTask)?;
        Ok(state.info(index))
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
        let rates = rates_of(infos)?;
        self.change(|model| model.set_all(&rates, Before::Keep))
    }

    fn reset_seq(&self, _: &Call<'_>, infos: RtInfoSet<'_>) -> Result<(), ResetSeqError> {
        let rates = rates_of(infos)?;
        self.change(|model| model.set_all(&rates, Before::Remove))
    }

    fn replace_seq(&self, _: &Call<'_>, infos: RtInfoSet<'_>) -> Result<(), ReplaceSeqError> {
        let rates = rates_of(infos)?;
        self.change(|model| model.replace_all(&rates))
    }

    fn add_dependency(
        &self,
        _: &Call<'_>,
        handle: HandleT,
        on: HandleT,
        calls: i32,
        kind: DependencyTypeT,
    ) -> Result<(), AddDependencyError> {
        let added = dependency(handle, on, calls, kind, ENABLED);
        self.change(|model| model.add_dependency(added))
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
        self.change(|model| model.enable_operations(&[(handle, enabled)]))
    }

    fn set_rt_info_enable_state_seq(
        &self,
        _: &Call<'_>,
        pairs: RtInfoEnableStatePairSet<'_>,
    ) -> Result<(), SetRtInfoEnableStateSeqError> {
        let states: Vec<_> = pairs
            .iter()
            .map(|pair| (pair.handle, pair.enabled))
            .collect();
        self.change(|model| model.enable_operations(&states))
    }

    fn priority(&self, _: &Call<'_>, handle: HandleT) -> Result<Priorities, PriorityError> {
        self.state.lock().priorities(Ok(handle))
    }

    fn entry_point_priority(
        &self,
        _: &Call<'_>,
        entry_point: &str,
    ) -> Result<Priorities, EntryPointPriorityError> {
        let state = self.state.lock();
        state.priorities(state.model.lookup(entry_point))
    }

    fn compute_scheduling(
        &self,
        _: &Call<'_>,
        minimum: i32,
        maximum: i32,
    ) -> Result<ComputeSchedulingOutBuf, ComputeSchedulingError> {
        let (results, anomalies) = self.compute((minimum, maximum));
        Ok(ComputeSchedulingOutBuf {
            infos: results.infos,
            dependencies: results.dependencies,
            configs: results.levels,
            anomalies,
        })
    }

    fn recompute_scheduling(
        &self,
        _: &Call<'_>,
        minimum: i32,
        maximum: i32,
    ) -> Result<SchedulingAnomalySetBuf, RecomputeSchedulingError> {
        Ok(self.compute((minimum, maximum)).1)
    }

    fn get_rt_info_set(&self, _: &Call<'_>) -> Result<RtInfoSetBuf, GetRtInfoSetError> {
        Ok(self.state.lock().infos())
    }

    fn get_dependency_set(&self, _: &Call<'_>) -> Result<DependencySetBuf, GetDependencySetError> {
        Ok(self.state.lock().model.dependencies.clone())
    }

    fn get_config_info_set(&self, _: &Call<'_>) -> Result<ConfigInfoSetBuf, GetConfigInfoSetError> {
        Ok(self.state.lock().levels().unwrap_or_default())
    }

    fn dispatch_configuration(
        &self,
        _: &Call<'_>,
        level: PreemptionPriorityT,
    ) -> Result<(OsPriority, DispatchingTypeT), DispatchConfigurationError> {
        let state = self.state.lock();
        let schedule = state.schedule.as_ref().ok_or(NotScheduled)?;
        let index = usize::try_from(level).ok();
        let level = index.and_then(|index| schedule.levels.get(index));
        let level = level.ok_or(UnknownPriorityLevel)?;
        Ok((level.thread_priority, level.dispatching_type))
    }

    fn last_scheduled_priority(
        &self,
        _: &Call<'_>,
    ) -> Result<PreemptionPriorityT, LastScheduledPriorityError> {
        let levels = self.state.lock().levels().ok_or(NotScheduled)?;
        let last = levels.last().ok_or(NotScheduled)?;
        Ok(last.preemption_priority)
    }

    fn get_config_infos(&self, _: &Call<'_>) -> Result<ConfigInfoSetBuf, GetConfigInfosError> {
        Ok(self.state.lock().levels().ok_or(NotScheduled)?)
    }
}
