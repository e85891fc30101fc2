//! The measured operations of an ORB: a table that only grows, and is read without a lock.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb_rt::PiMutex;

use crate::call::Skeleton;
use crate::observe::{OperationSnapshot, TimeHistogram};
use crate::operation_table::hash;
use crate::schedule_table::{self, OverrunPolicy, ScheduleTable};

/// The operations that have been measured, at most [`MAX_OPERATIONS`].
pub(super) struct Operations {
    /// Each operation is in the first slot from that of its hash that was free.
    slots: Box<[OnceLock<Box<MeasuredOperation>>]>,
    /// The number of operations; held while one is added.
    count: PiMutex<usize>,
}

/// An operation of the servants of one interface, and its measurements.
pub(super) struct MeasuredOperation {
    /// The repository identifier of the servants' most derived interface.
    interface: &'static str,
    operation: Box<[u8]>,
    scheduled_as: Option<Box<str>>,
    pub(super) budget: Option<Duration>,
    deadline: Option<Duration>,
    pub(super) overrun: Option<OverrunPolicy>,
    pub(super) requests: AtomicU64,
    execution: TimeHistogram,
    worst_execution: AtomicU64,
    response: TimeHistogram,
    worst_response: AtomicU64,
    lateness: TimeHistogram,
    overruns: AtomicU64,
    demoted: AtomicU64,
    skipped: AtomicU64,
    /// Nanoseconds of overruns for which no request was skipped yet.
    debt: AtomicU64,
}

impl Operations {
    #[allow(clippy::disallowed_methods, reason = "once for each ORB")]
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| OnceLock::new()).collect(),
            count: PiMutex::new(0),
        }
    }

    pub(super) fn get(&self, slot: usize) -> Option<&MeasuredOperation> {
        self.slots.get(slot)?.get().map(|operation| &**operation)
    }

    /// Finds an operation of a servant of this interface, and returns its slot.
    pub(super) fn find(&self, interface: &str, operation: &[u8]) -> Option<usize> {
        self.place(interface, operation).ok()
    }

    /// Adds an operation, unless another thread has just done so. Returns its slot; `None` where
    /// there are as many as there may be.
    #[cold]
    #[allow(clippy::disallowed_methods, reason = "once for each operation")]
    pub(super) fn add(
        &self,
        servant: &dyn Skeleton,
        operation: &[u8],
        table: Option<&ScheduleTable>,
        overrun: Option<OverrunPolicy>,
    ) -> Option<usize> {
        let interface = servant.repository_id();
        let mut count = self.count.lock();
        let free = match self.place(interface, operation) {
            Ok(slot) => return Some(slot),
            Err(free) if *count < MAX_OPERATIONS => free?,
            Err(_) => return None,
        };
        let made = MeasuredOperation::new(servant, operation, table, overrun);
        // The lock is held, so that the slot is still free.
        self.slots.get(free)?.set(Box::new(made)).ok()?;
        *count += 1;
        Some(free)
    }

    /// Returns the slot of an operation, or else the first free one.
    fn place(&self, interface: &str, operation: &[u8]) -> Result<usize, Option<usize>> {
        let seed = interface.len() as u64;
        let first = hash(seed, operation) ^ hash(seed, interface.as_bytes());
        for probe in 0..SLOTS {
            let slot = (first as usize).wrapping_add(probe) % SLOTS;
            match self.get(slot) {
                None => return Err(Some(slot)),
                Some(known) if known.is(interface, operation) => return Ok(slot),
                Some(_) => {}
            }
        }
        Err(None)
    }

    /// Returns the measurements, in the order of names.
    #[allow(clippy::disallowed_methods, reason = "for people")]
    pub(super) fn snapshot(&self) -> Vec<OperationSnapshot> {
        let operations = self.slots.iter().filter_map(OnceLock::get);
        let mut all: Vec<_> = operations.map(|operation| operation.snapshot()).collect();
        all.sort_by(|a, b| (&a.interface, &a.operation).cmp(&(&b.interface, &b.operation)));
        all
    }
}

impl MeasuredOperation {
    #[allow(clippy::disallowed_methods, reason = "once for each operation")]
    fn new(
        servant: &dyn Skeleton,
        operation: &[u8],
        table: Option<&ScheduleTable>,
        overrun: Option<OverrunPolicy>,
    ) -> Self {
        let scheduled = table.and_then(|table| {
            let handle = table.find_operation(servant, operation)?;
            Some((table.name(handle)?, table.get(handle)?))
        });
        let entry = scheduled.map(|(_, entry)| entry);
        let budget = entry.and_then(|entry| entry.budget);
        let overrun = entry.and_then(|entry| entry.overrun).or(overrun);
        Self {
            interface: servant.repository_id(),
            operation: operation.into(),
            scheduled_as: scheduled.map(|(name, _)| name.into()),
            budget,
            deadline: entry.and_then(|entry| entry.deadline),
            overrun: overrun.filter(|_| budget.is_some()),
            requests: AtomicU64::new(0),
            execution: TimeHistogram::new(),
            worst_execution: AtomicU64::new(0),
            response: TimeHistogram::new(),
            worst_response: AtomicU64::new(0),
            lateness: TimeHistogram::new(),
            overruns: AtomicU64::new(0),
            demoted: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            debt: AtomicU64::new(0),
        }
    }

    fn is(&self, interface: &str, operation: &[u8]) -> bool {
        let same_text = || self.interface == interface;
        (std::ptr::eq(self.interface, interface) || same_text()) && *self.operation == *operation
    }

    /// Notes an execution time. Returns the time by which it exceeds the budget, if it does.
    pub(super) fn note_execution(&self, time: Duration) -> Option<Duration> {
        self.execution.note_shared(time);
        raise(&self.worst_execution, time);
        let budget = self.budget.filter(|&budget| time > budget)?;
        self.overruns.fetch_add(1, Ordering::Relaxed);
        let excess = time - budget;
        if self.overrun == Some(OverrunPolicy::Skip) {
            self.debt.fetch_add(nanoseconds(excess), Ordering::Relaxed);
        }
        Some(excess)
    }

    pub(super) fn note_demoted(&self) {
        self.demoted.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a response time, and its lateness if it exceeds the deadline.
    pub(super) fn note_response(&self, time: Duration) {
        self.response.note_shared(time);
        raise(&self.worst_response, time);
        if let Some(deadline) = self.deadline.filter(|&deadline| time > deadline) {
            self.lateness.note_shared(time - deadline);
        }
    }

    /// Whether the next request is to be skipped, which pays one budget of the debt.
    pub(super) fn pays_by_skipping(&self) -> bool {
        if self.debt.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let budget = self.budget.map_or(u64::MAX, nanoseconds).max(1);
        let (order, pay) = (Ordering::Relaxed, |debt: u64| {
            (debt > 0).then(|| debt.saturating_sub(budget))
        });
        let paid = self.debt.fetch_update(order, order, pay).is_ok();
        if paid {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        paid
    }

    #[allow(clippy::disallowed_methods, reason = "for people")]
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.operation).into_owned()
    }

    #[allow(clippy::disallowed_methods, reason = "for people")]
    fn snapshot(&self) -> OperationSnapshot {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |worst: &AtomicU64| Duration::from_nanos(count(worst));
        let times = |histogram| TimeHistogram::sums(std::iter::once(histogram));
        OperationSnapshot {
            interface: schedule_table::scoped(self.interface)
                .unwrap_or_else(|| self.interface.to_owned()),
            operation: self.name(),
            scheduled_as: self.scheduled_as.as_deref().map(str::to_owned),
            requests: count(&self.requests),
            execution: times(&self.execution),
            worst_execution: time(&self.worst_execution),
            response: times(&self.response),
            worst_response: time(&self.worst_response),
            lateness: times(&self.lateness),
            budget: self.budget,
            deadline: self.deadline,
            overruns: count(&self.overruns),
            demoted: count(&self.demoted),
            skipped: count(&self.skipped),
        }
    }
}

fn raise(worst: &AtomicU64, time: Duration) {
    worst.fetch_max(nanoseconds(time), Ordering::Relaxed);
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The operations that are measured; further ones are not. Each takes about 3.5 KiB.
const MAX_OPERATIONS: usize = 10_000;
/// The slots: enough for short searches.
const SLOTS: usize = 16_384;
