//! The measurement of operations on the threads that serve them.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod operations;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{CpuBudget, Monotonic, set_current, thread_cpu_time};

use self::operations::{MeasuredOperation, Operations};
use crate::call::Skeleton;
use crate::config::OrbConfig;
use crate::incident::{Incident, Incidents};
use crate::observe::{OperationSnapshot, Stage, StageProbe};
use crate::schedule_table::{OverrunPolicy, ScheduleTable};

/// Measures the operations of one ORB, and applies overrun policies.
pub(crate) struct Meter {
    /// One request in so many of each operation is measured; none for 0.
    one_in: AtomicU32,
    overrun: Option<OverrunPolicy>,
    table: Option<Arc<ScheduleTable>>,
    operations: Operations,
    incidents: Arc<Incidents>,
}

/// The request that the calling thread serves.
#[derive(Clone, Copy, Default)]
struct Present {
    arrived: Option<Monotonic>,
    step: Step,
}

/// The step of a request's measurement.
#[derive(Clone, Copy, Default)]
enum Step {
    /// No measurement.
    #[default]
    Unmeasured,
    /// The servant runs since this processor time of the thread, with an operation that has this
    /// slot, or none yet.
    Executing(Option<usize>, Duration),
    /// The operation of this slot has ended, and its reply is to be sent.
    Replying(usize),
}

impl Meter {
    #[allow(clippy::disallowed_methods, reason = "once for each ORB")]
    fn new(
        one_in: u32,
        overrun: Option<OverrunPolicy>,
        table: Option<Arc<ScheduleTable>>,
        incidents: Arc<Incidents>,
    ) -> Self {
        Self {
            one_in: AtomicU32::new(one_in),
            overrun,
            table,
            operations: Operations::new(),
            incidents,
        }
    }

    /// Makes the meter that the configuration asks for, and sets it up as the probe of stages, so
    /// that an ORB without one does nothing for it. Returns the configuration with the probe.
    #[allow(clippy::disallowed_methods, reason = "once for each ORB")]
    pub(crate) fn of(
        mut config: OrbConfig,
        incidents: &Arc<Incidents>,
    ) -> (Option<Arc<Self>>, OrbConfig) {
        let table = config.schedule_table.clone();
        let has_policies = table.as_deref().is_some_and(ScheduleTable::has_overruns);
        if config.measure == 0 && config.overrun.is_none() && !has_policies {
            return (None, config);
        }
        let meter = Self::new(config.measure, config.overrun, table, incidents.clone());
        let meter = Arc::new(meter);
        let (this, probe) = (meter.clone(), config.stage_probe.take());
        config.stage_probe = Some(StageProbe::new(move |stage| {
            this.at(stage);
            if let Some(probe) = &probe {
                probe.at(stage);
            }
        }));
        (Some(meter), config)
    }

    /// Changes the share of requests that are measured: one in so many, none for 0.
    pub(crate) fn set_one_in(&self, one_in: u32) {
        self.one_in.store(one_in, Ordering::Relaxed);
    }

    /// Follows a request from one stage to the next.
    pub(crate) fn at(&self, stage: Stage) {
        match stage {
            Stage::Dispatch => PRESENT.set(Present {
                arrived: ARRIVED.take().or_else(|| self.is_on().then(Monotonic::now)),
                step: Step::Unmeasured,
            }),
            Stage::Rest => {
                let present = PRESENT.take();
                if let Step::Replying(slot) = present.step {
                    self.note_response(slot, present.arrived);
                }
            }
            _ => {}
        }
    }

    /// Returns the present time for a request that will be served later, or by another thread.
    pub(crate) fn arrival(&self) -> Option<Monotonic> {
        self.is_on().then(Monotonic::now)
    }

    /// Declares when the next request of this thread arrived.
    pub(crate) fn set_arrival(arrived: Option<Monotonic>) {
        ARRIVED.set(arrived);
    }

    /// Begins an upcall.
    ///
    /// # Errors
    /// `TRANSIENT` where the request is skipped.
    pub(crate) fn enter(
        &self,
        servant: &dyn Skeleton,
        operation: &[u8],
    ) -> Result<(), SystemException> {
        let mut present = PRESENT.get();
        present.step = Step::Unmeasured;
        PRESENT.set(present);
        if !self.is_on() {
            return Ok(());
        }
        let slot = self
            .operations
            .find(servant.repository_id(), operation)
            .or_else(|| self.add_scheduled(servant, operation));
        if let Some((slot, known)) = slot.and_then(|slot| Some((slot, self.operations.get(slot)?)))
        {
            if known.overrun == Some(OverrunPolicy::Skip) && known.pays_by_skipping() {
                return Err(SKIPPED);
            }
            let number = known.requests.fetch_add(1, Ordering::Relaxed);
            if known.overrun.is_none() && !self.is_sample(number) {
                return Ok(());
            }
            if known.overrun == Some(OverrunPolicy::Demote) {
                self.limit(known);
            }
            present.step = Step::Executing(Some(slot), thread_cpu_time());
        } else {
            present.step = Step::Executing(None, thread_cpu_time());
        }
        PRESENT.set(present);
        Ok(())
    }

    /// Ends the upcall that the thread has entered last. An operation is measured from its first
    /// request on that `succeeded`, so that names which no servant knows take no memory. `replied`
    /// is whether no reply follows.
    pub(crate) fn leave(
        &self,
        servant: &dyn Skeleton,
        operation: &[u8],
        succeeded: bool,
        replied: bool,
    ) {
        let mut present = PRESENT.get();
        let Step::Executing(slot, begun) = present.step else {
            return;
        };
        let time = thread_cpu_time().saturating_sub(begun);
        let lowered_from = BUDGET.take().and_then(CpuBudget::end);
        present.step = Step::Unmeasured;
        let slot = slot.or_else(|| {
            let added = succeeded.then(|| self.add(servant, operation)).flatten()?;
            let requests = &self.operations.get(added)?.requests;
            requests.fetch_add(1, Ordering::Relaxed);
            Some(added)
        });
        if let Some((slot, known)) = slot.and_then(|slot| Some((slot, self.operations.get(slot)?)))
        {
            if let Some(before) = lowered_from {
                known.note_demoted();
                // The thread had this scheduling before, so that it is permitted.
                let _ = set_current(before);
            }
            if let Some(excess) = known.note_execution(time) {
                self.report(known, excess);
            }
            if replied {
                self.note_response(slot, present.arrived);
            } else {
                present.step = Step::Replying(slot);
            }
        }
        PRESENT.set(present);
    }

    /// Gives up the measurement of an upcall that panicked.
    pub(crate) fn abandon() {
        PRESENT.take();
        if let Some(before) = BUDGET.take().and_then(CpuBudget::end) {
            let _ = set_current(before);
        }
    }

    /// Returns the measurements so far.
    pub(crate) fn snapshot(&self) -> Vec<OperationSnapshot> {
        self.operations.snapshot()
    }

    fn is_on(&self) -> bool {
        self.one_in.load(Ordering::Relaxed) != 0 || self.overrun.is_some() || self.has_overruns()
    }

    /// Whether the schedule has policies for single operations.
    fn has_overruns(&self) -> bool {
        let table = self.table.as_deref();
        table.is_some_and(ScheduleTable::has_overruns)
    }

    fn is_sample(&self, number: u64) -> bool {
        let one_in = u64::from(self.one_in.load(Ordering::Relaxed));
        one_in != 0 && number.is_multiple_of(one_in)
    }

    fn add(&self, servant: &dyn Skeleton, operation: &[u8]) -> Option<usize> {
        let table = self.table.as_deref();
        self.operations.add(servant, operation, table, self.overrun)
    }

    /// Adds an operation that is in the schedule before its first request.
    #[cold]
    fn add_scheduled(&self, servant: &dyn Skeleton, operation: &[u8]) -> Option<usize> {
        self.table.as_deref()?.find_operation(servant, operation)?;
        self.add(servant, operation)
    }

    /// Limits the execution of an operation to its budget.
    fn limit(&self, operation: &MeasuredOperation) {
        let Some(budget) = operation.budget else {
            return;
        };
        match CpuBudget::begin(budget) {
            Ok(begun) => drop(BUDGET.replace(Some(begun))),
            Err(error) => {
                let detail = format_args!("its thread is not lowered at the end: {error}");
                let name = operation.name();
                let incident = Incident::UnenforcedBudget;
                self.incidents.tell(incident, &name, 0, &detail);
            }
        }
    }

    #[cold]
    fn report(&self, operation: &MeasuredOperation, excess: Duration) {
        let budget = operation.budget.unwrap_or_default();
        let detail = format_args!("{excess:?} above its budget of {budget:?}");
        let number = i64::try_from(excess.as_nanos()).unwrap_or(i64::MAX);
        self.incidents
            .tell(Incident::Overrun, &operation.name(), number, &detail);
    }

    fn note_response(&self, slot: usize, arrived: Option<Monotonic>) {
        if let (Some(operation), Some(arrived)) = (self.operations.get(slot), arrived) {
            operation.note_response(Monotonic::now() - arrived);
        }
    }
}

/// The exception for a request that is skipped to make up for an overrun.
const SKIPPED: SystemException =
    SystemException::no(SystemExceptionKind::Transient, minor::REQUEST_SKIPPED);

thread_local! {
    static PRESENT: Cell<Present> = Cell::default();
    /// The arrival of the next request, if that was before the thread takes it.
    static ARRIVED: Cell<Option<Monotonic>> = const { Cell::new(None) };
    /// The budget of the upcall, if its thread is to be lowered at its end.
    static BUDGET: RefCell<Option<CpuBudget>> = const { RefCell::new(None) };
}
