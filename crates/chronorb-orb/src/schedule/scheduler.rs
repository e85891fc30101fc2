//! The scheduling service of RT-CORBA: priorities by the names of activities and objects.

use std::fmt;
use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind};
use chronorb_schedule::Sessions;
use thiserror::Error;

use super::load::{StartError, sessions_of};
use crate::active_schedule::{ActiveSchedule, ObjectPriority, ProcessorPool};
use crate::call::Servant;
use crate::core::{Core, Object};
use crate::failure::because;
use crate::lanes::PriorityModel;
use crate::poa::{ActivateError, CreatePoaError, ObjectError, Poa, PoaManager, Policy};
use crate::rtcorba::scheduling::Constraint;
use crate::rtcorba::{Priority, RtCurrent};
use crate::schedule_table::ScheduleTable;

/// `RTCosScheduling::ClientScheduler`: priorities for threads that call (RT-CORBA 1.2,
/// “Real-Time CORBA Scheduling Service”).
///
/// A client names its activities, and their priorities are in the schedule that the program has
/// started with (`-ORBSchedule`).
///
/// ```no_run
/// use chronorb_orb::Orb;
///
/// let orb = Orb::init(&mut std::env::args().collect())?;
/// let scheduler = orb.client_scheduler().ok_or("start it with -ORBSchedule FILE")?;
/// // From here on, calls of this thread have the priority of the activity.
/// scheduler.schedule_activity("Navigator::update")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ClientScheduler {
    core: Arc<Core>,
}

/// `RTCosScheduling::ServerScheduler`: POAs and objects of a schedule (RT-CORBA 1.2,
/// “Real-Time CORBA Scheduling Service”).
///
/// ```no_run
/// use chronorb_orb::{Orb, Skeleton};
///
/// # fn example(servant: std::sync::Arc<dyn Skeleton>) -> Result<(), Box<dyn std::error::Error>> {
/// let orb = Orb::init(&mut std::env::args().collect())?;
/// let scheduler = orb.server_scheduler().ok_or("start it with -ORBSchedule FILE")?;
/// let root = orb.root_poa()?;
/// let poa = scheduler.create_poa(&root, "flight", Some(root.manager()), &[])?;
/// let navigator = scheduler.serve(&poa, "Navigator", servant)?;
/// root.manager().activate()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServerScheduler {
    core: Arc<Core>,
    /// The pool of the POAs, among those of the node; `None` before one of several is chosen.
    pool: Option<usize>,
}

/// `RTCosScheduling::UnknownName`: the schedule has no such name for the node.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("the schedule {file} has no {kind} {name} on node {node}")]
pub struct UnknownName {
    name: String,
    kind: &'static str,
    node: String,
    file: String,
}

/// An activity could not be scheduled.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScheduleActivityError {
    /// The schedule has no such activity.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// The priority cannot be set: see [`RtCurrent::set_priority`].
    #[error(transparent)]
    System(#[from] SystemException),
}

/// An object could not be scheduled.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScheduleObjectError {
    /// The schedule has no such interface or operation.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// The operations of the interface have different priorities.
    #[error(
        "the operations of {0} have different priorities: serve an object for each, by the \
         operation's name"
    )]
    SeveralPriorities(String),
    /// The reference does not name an object of a POA of this ORB.
    #[error("the reference is not that of an object of this ORB")]
    Foreign,
    /// The POA does not give objects priorities of their own.
    #[error("the POA was not made by ServerScheduler::create_poa, or with another PriorityModel")]
    WrongPolicy,
    /// The object cannot be activated.
    #[error(transparent)]
    Activate(#[from] ActivateError),
    /// The POA has ended, or the object has another priority already (`BAD_INV_ORDER`, OMG minor
    /// 18).
    #[error(transparent)]
    System(#[from] SystemException),
}

impl ClientScheduler {
    /// Returns the scheduler of an ORB that has started with a schedule.
    pub(crate) fn of(core: &Arc<Core>) -> Option<Self> {
        let core = core.clone();
        core.schedule.get().is_some().then_some(Self { core })
    }

    /// Gives the calling thread the priority of an activity, which is the name of a transaction, or
    /// of the operation that starts it. It is a look-up and
    /// [`RtCurrent::set_priority`].
    ///
    /// If the schedule has lanes with an order, this also releases the activity: its calls have its
    /// deadline from now on, its execution time, criticality and importance. So a thread has to
    /// call this for each release. They replace the constraint that the thread had, and last until
    /// the next activity. An activity that is only served in the order of arrival has none.
    ///
    /// # Errors
    /// [`UnknownName`] where the node of this program has no such activity; those of setting the
    /// priority.
    pub fn schedule_activity(&self, name: &str) -> Result<(), ScheduleActivityError> {
        let schedule = schedule_of(&self.core)?;
        let activity = schedule.activities.get(name);
        let activity = activity.ok_or_else(|| unknown(schedule, "activity", name))?;
        RtCurrent::new(self.core.clone()).set_priority(activity.priority)?;
        if schedule.has_constraints {
            Constraint::begin_activity(activity.constraint);
        }
        Ok(())
    }

    /// Returns the operations of the schedule, with their priorities.
    pub fn table(&self) -> Option<&ScheduleTable> {
        self.core.schedule.get().map(|schedule| &*schedule.table)
    }
}

impl ServerScheduler {
    /// Returns the scheduler of an ORB that has started with a schedule.
    pub(crate) fn of(core: &Arc<Core>) -> Option<Self> {
        let core = core.clone();
        let pools = core.schedule.get()?.pools.len();
        let pool = (pools == 1).then_some(0);
        Some(Self { core, pool })
    }

    /// Returns the scheduler for one processor of the node. One is needed where the node has lanes
    /// on several.
    ///
    /// # Errors
    /// [`UnknownName`] where the node has no lane on it.
    pub fn on_processor(&self, processor: &str) -> Result<Self, UnknownName> {
        let schedule = schedule_of(&self.core).ok();
        let found = schedule.and_then(|schedule| {
            let mut pools = schedule.pools.iter();
            pools.position(|pool| pool.processor == processor)
        });
        match (found, schedule) {
            (Some(pool), _) => Ok(Self {
                core: self.core.clone(),
                pool: Some(pool),
            }),
            (None, Some(schedule)) => Err(unknown(schedule, "processor", processor)),
            (None, None) => unreachable!("a scheduler has a schedule"),
        }
    }

    /// Makes a POA that the lanes of the schedule serve. It has the policies given, and unless they
    /// are among these, the thread pool of the node, the bands of the schedule, and a
    /// server-declared priority model, by which [objects](Self::serve) have priorities.
    ///
    /// # Errors
    /// Those of [`Poa::create_poa`]. `BAD_PARAM` where the node has lanes on several processors and
    /// none was [chosen](Self::on_processor), or no lanes.
    pub fn create_poa(
        &self,
        parent: &Poa,
        name: &str,
        manager: Option<&PoaManager>,
        policies: &[Policy],
    ) -> Result<Poa, CreatePoaError> {
        let pool = self.pool()?;
        let mut all = policies.to_vec();
        let has = |is: fn(&Policy) -> bool| policies.iter().any(is);
        if !has(|policy| matches!(policy, Policy::Threadpool(_))) {
            all.push(Policy::Threadpool(pool.pool));
        }
        if !has(|policy| matches!(policy, Policy::PriorityModel(..))) {
            let model = PriorityModel::ServerDeclared;
            all.push(Policy::PriorityModel(model, pool.least));
        }
        if !has(|policy| matches!(policy, Policy::PriorityBandedConnection(_))) {
            let by_clients = |policy: &Policy| {
                matches!(
                    policy,
                    Policy::PriorityModel(PriorityModel::ClientPropagated, _)
                )
            };
            let bands = if has(by_clients) {
                &pool.bands
            } else {
                &pool.declared_bands
            };
            all.push(Policy::PriorityBandedConnection(bands.clone()));
        }
        parent.create_poa(name, manager, &all)
    }

    /// Gives an object the priority of a name: that of an interface, as `Flight::Navigator`, whose
    /// operations all have one priority, or of an operation. The object must not be active yet, or
    /// have that priority. References that are made from then on contain it.
    ///
    /// # Errors
    /// [`ScheduleObjectError`].
    pub fn schedule_object(&self, object: &Object, name: &str) -> Result<(), ScheduleObjectError> {
        let priority = self.priority_of(name)?;
        let of = Poa::of_reference(&self.core, object);
        let (poa, id) = of.ok_or(ScheduleObjectError::Foreign)?;
        match poa.schedule(&id, priority) {
            Ok(()) => Ok(()),
            Err(ObjectError::System(exception)) => Err(exception.into()),
            Err(_) => Err(ScheduleObjectError::WrongPolicy),
        }
    }

    /// Activates a servant with the priority of a name, as
    /// [`schedule_object`](Self::schedule_object) has it, and returns its reference.
    ///
    /// # Errors
    /// [`ScheduleObjectError`].
    pub fn serve(
        &self,
        poa: &Poa,
        name: &str,
        servant: Servant,
    ) -> Result<Object, ScheduleObjectError> {
        let priority = self.priority_of(name)?;
        let id = poa.activate_object_with_priority(servant, priority)?;
        poa.id_to_reference(&id).map_err(|error| match error {
            ObjectError::System(exception) => exception.into(),
            _ => ScheduleObjectError::WrongPolicy,
        })
    }

    /// Returns the operations of the schedule, with their priorities.
    pub fn table(&self) -> Option<&ScheduleTable> {
        self.core.schedule.get().map(|schedule| &*schedule.table)
    }

    /// Returns the admission of sessions: of further clients that call operations of the schedule
    /// with periods and deadlines of their own, while its programs run.
    ///
    /// This call reads the schedule beside the lock file again, and analyses it. One process admits
    /// all sessions of a schedule, and keeps the returned value for that.
    ///
    /// ```no_run
    /// use chronorb_orb::schedule::{ServerScheduler, SessionCall};
    ///
    /// # fn example(scheduler: &ServerScheduler) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut sessions = scheduler.sessions()?;
    /// let video = sessions.open(&[SessionCall {
    ///     operation: "Map::draw".to_owned(),
    ///     period: 40_000_000,
    ///     deadline: 40_000_000,
    /// }])?;
    /// sessions.close(video);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StartError`] if the schedule cannot be read, is not that of the lock file, or does not fit
    /// by itself.
    pub fn sessions(&self) -> Result<Sessions, StartError> {
        let schedule = self.core.schedule.get();
        let schedule = schedule.unwrap_or_else(|| unreachable!("a scheduler has a schedule"));
        sessions_of(&schedule.path, &schedule.digest)
    }

    fn pool(&self) -> Result<&ProcessorPool, SystemException> {
        let schedule = schedule_of(&self.core)?;
        let pool = self.pool.and_then(|pool| schedule.pools.get(pool));
        pool.ok_or_else(|| {
            let (node, count) = (&schedule.node, schedule.pools.len());
            let cause = format_args!(
                "node {node} has lanes on {count} processors; ServerScheduler::on_processor \
                 chooses one"
            );
            because(BAD_PARAM, cause)
        })
    }

    fn priority_of(&self, name: &str) -> Result<Priority, ScheduleObjectError> {
        let schedule = schedule_of(&self.core)?;
        match schedule.objects.get(name) {
            Some(ObjectPriority::One(priority)) => Ok(*priority),
            Some(ObjectPriority::Several) => {
                Err(ScheduleObjectError::SeveralPriorities(name.to_owned()))
            }
            None => Err(unknown(schedule, "object", name).into()),
        }
    }
}

impl fmt::Debug for ClientScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientScheduler").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerScheduler")
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// Returns the schedule, which every ORB with a scheduler has.
fn schedule_of(core: &Core) -> Result<&ActiveSchedule, SystemException> {
    let none = SystemException::no(SystemExceptionKind::Internal, 0);
    core.schedule.get().ok_or(none)
}

fn unknown(schedule: &ActiveSchedule, kind: &'static str, name: &str) -> UnknownName {
    UnknownName {
        name: name.to_owned(),
        kind,
        node: schedule.node.clone(),
        file: schedule.path.display().to_string(),
    }
}

const BAD_PARAM: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);
