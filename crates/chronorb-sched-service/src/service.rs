//! The scheduling service as programs make it.

use chronorb::poa::{
    ActivateError, CreatePoaError, IdAssignment, Lifespan, ObjectError, ObjectId, Poa, Policy,
};
use chronorb::{Object, ResolveError};
use chronorb_sched::LevelStrategy;
use thiserror::Error;

use crate::idl::rtec_scheduler::SchedulerSkeleton;
use crate::model::Limits;
use crate::servant::Scheduler;

/// The name of the service: its initial reference, its POA, and its name in a name server.
const NAME: &str = "ScheduleService";

/// A scheduling service that is to be served.
///
/// # Example
/// ```
/// use chronorb::prelude::*;
/// use chronorb_sched_service::SchedulingService;
/// use chronorb_sched_service::idl::rtec_scheduler::Scheduler;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut args = vec!["p".into(), "-ORBListenEndpoints".into(), "iiop://127.0.0.1:0".into()];
/// let orb = Orb::init(&mut args)?;
/// let root = orb.root_poa()?;
/// let object = SchedulingService::new().serve_in(&root)?;
/// root.manager().activate()?;
/// let scheduler = Scheduler::unchecked_narrow(&object);
/// assert_eq!(scheduler.create("navigation")?, 1);
/// # orb.shutdown(true)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SchedulingService {
    strategy: LevelStrategy,
    limits: Limits,
}

/// An error in serving a scheduling service.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The POA of the service cannot be made.
    #[error("the POA of the scheduling service cannot be made")]
    Poa(#[from] CreatePoaError),
    /// The servant cannot be activated.
    #[error("the servant of the scheduling service cannot be activated")]
    Servant(#[from] ActivateError),
    /// The object has no reference.
    #[error("the scheduling service has no reference")]
    Reference(#[from] ObjectError),
    /// The initial reference `ScheduleService` cannot be registered.
    #[error("the initial reference {NAME} cannot be registered")]
    Name(#[from] ResolveError),
}

impl SchedulingService {
    /// Returns a service without operations, by maximum urgency first.
    #[must_use]
    pub fn new() -> Self {
        Self {
            strategy: LevelStrategy::MaximumUrgency,
            limits: Limits::default(),
        }
    }

    /// Sets the strategy that divides operations into levels of dispatching.
    #[must_use]
    pub fn strategy(mut self, strategy: LevelStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets the bounds of what clients can register.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves in a child of `poa`, with its manager, and registers the object as the initial
    /// reference `ScheduleService`. Clients reach it by `corbaloc:iiop:HOST:PORT/ScheduleService`.
    ///
    /// # Errors
    /// [`ServeError::Poa`] if `poa` has such a child; [`ServeError::Name`] if the name is taken;
    /// others for a lack of resources.
    pub fn serve_in(self, poa: &Poa) -> Result<Object, ServeError> {
        let policies = [
            Policy::IdAssignment(IdAssignment::User),
            Policy::Lifespan(Lifespan::Persistent),
        ];
        let own = poa.create_poa(NAME, Some(poa.manager()), &policies)?;
        let scheduler = Scheduler::new(self.strategy, self.limits, &poa.orb());
        let id = ObjectId::from(NAME);
        own.activate_object_with_id(id.clone(), SchedulerSkeleton::new(scheduler))?;
        let object = own.id_to_reference(&id)?;
        poa.orb().register_initial_reference(NAME, &object)?;
        Ok(object)
    }
}

impl Default for SchedulingService {
    fn default() -> Self {
        Self::new()
    }
}
