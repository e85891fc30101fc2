//! The real-time rights of the process, and the mapping of its priorities to native ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Policy, Rights, Scheduling};

use super::{MappingKind, NativePriority, Priority, PriorityMapping};
use crate::failure::because;
use crate::incident::{Incident, Incidents};

/// Whether real-time scheduling is wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RealTimeMode {
    /// Without the right to it, [`Orb::init`](crate::Orb::init) fails.
    Required,
    /// Without the right, the ORB runs, and reports once which right is missing and how to grant
    /// it.
    Preferred,
    /// Never ask for it; priorities still choose lanes and connections.
    Off,
}

/// The real-time rights of this process, and the mapping of priorities.
pub(crate) struct RealTime {
    mode: RealTimeMode,
    policy: Policy,
    pub(crate) max_native: Option<NativePriority>,
    pub(crate) mapping: Arc<dyn PriorityMapping>,
    warned: AtomicBool,
    incidents: Arc<Incidents>,
}

impl RealTime {
    pub(crate) fn new(
        mode: RealTimeMode,
        policy: Policy,
        mapping: &MappingKind,
        incidents: Arc<Incidents>,
    ) -> Self {
        let max_native = match (mode, policy) {
            (RealTimeMode::Off, _) | (_, Policy::Other) => None,
            // The kernel grants the same priorities for both real-time policies.
            (_, Policy::Fifo | Policy::RoundRobin) => Rights::probe().max_fifo,
        };
        Self {
            mode,
            policy,
            max_native,
            mapping: mapping.mapping(),
            warned: AtomicBool::new(false),
            incidents,
        }
    }

    /// Whether priorities reach the operating system.
    pub(crate) fn is_available(&self) -> bool {
        self.max_native.is_some()
    }

    /// The native scheduling of a CORBA priority.
    ///
    /// Without the right this is ordinary scheduling, with a warning the first time.
    ///
    /// # Errors
    /// `DATA_CONVERSION` (OMG minor 2) where the mapping has no native priority for it, or one that
    /// the system does not have; `INTERNAL` where the application's mapping panicked; `INITIALIZE`
    /// (OMG minor 1) where real-time scheduling is required, and the process may not use that
    /// native priority.
    pub(crate) fn scheduling(&self, priority: Priority) -> Result<Scheduling, SystemException> {
        let native = ask_application(|| self.mapping.to_native(priority))
            .map_err(|exception| unmapped(exception, priority))?;
        if native == 0 {
            return Ok(Scheduling::OTHER);
        }
        match self.max_native {
            _ if native > MOST_URGENT => Err(unmapped(NOT_MAPPED, priority)),
            Some(max) if native <= max => Ok(Scheduling {
                policy: self.policy,
                priority: native,
            }),
            most if self.mode == RealTimeMode::Required => Err(too_urgent(native, most)),
            _ => {
                self.warn();
                Ok(Scheduling::OTHER)
            }
        }
    }

    fn warn(&self) {
        let unwanted = self.mode == RealTimeMode::Off || self.policy == Policy::Other;
        if unwanted || self.warned.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut what = "priorities are NOT real-time in this process: ";
        for missing in Rights::probe().missing() {
            let (cost, remedy) = (missing.cost, missing.remedy);
            let detail = format_args!("{what}{cost}; to get it: {remedy}; {CHOICE}");
            let incidents = &self.incidents;
            incidents.tell(Incident::MissingRights, &missing.what, 0, &detail);
            what = "";
        }
    }
}

/// Names the priority that has no native one.
#[cold]
fn unmapped(exception: SystemException, priority: Priority) -> SystemException {
    let priority = priority.value();
    because(
        exception,
        format_args!("CORBA priority {priority} has {NO_NATIVE}"),
    )
}

/// Names the native priority that the process may not use.
#[cold]
fn too_urgent(native: NativePriority, most: Option<NativePriority>) -> SystemException {
    let kind = SystemExceptionKind::Initialize;
    let exception = SystemException::no(kind, minor::PRIORITY_RANGE_TOO_SMALL);
    let most = most.unwrap_or(0);
    because(
        exception,
        format_args!(
            "native priority {native} is needed, and this process may use {most} at most \
             (-ORBRealTime required)"
        ),
    )
}

/// Calls a mapping or a transform of the application.
///
/// # Errors
/// `DATA_CONVERSION` (OMG minor 2) if it returns `None`; `INTERNAL` if it panics.
pub(super) fn ask_application<T>(ask: impl FnOnce() -> Option<T>) -> Result<T, SystemException> {
    let answer = catch_unwind(AssertUnwindSafe(ask));
    answer.map_err(|_| PANICKED)?.ok_or(NOT_MAPPED)
}

const NO_NATIVE: &str = "no native priority by the mapping: with -ORBPriorityMapping direct they \
    are 1 to 99, with linear 0 to 32767";
const CHOICE: &str = "-ORBRealTime off says that this is meant, required refuses to run so";
/// The highest native priority of Linux (`sched_get_priority_max`).
const MOST_URGENT: NativePriority = 99;
const NOT_MAPPED: SystemException = SystemException::no(
    SystemExceptionKind::DataConversion,
    minor::PRIORITY_MAPPING_FAILED,
);
/// A priority mapping or transform panicked.
const PANICKED: SystemException =
    SystemException::no(SystemExceptionKind::Internal, minor::MAPPING_PANICKED);
