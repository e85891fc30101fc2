//! The event channel as programs make it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chronorb::config::{ConnectionStrategy, OrbConfig};
use chronorb::outbox::OutboxThread;
use chronorb::poa::{
    ActivateError, CreatePoaError, IdAssignment, Lifespan, ObjectError, ObjectId, Poa, Policy,
};
use chronorb::rtcorba::{WorkLane, WorkLaneSpec};
use chronorb::{Object, Orb, ResolveError, SystemException};
use chronorb_channel::{Clock, Lane, SystemClock};
use chronorb_consumers::{Checks, start_checks, start_links};
use chronorb_rt::{Deadline, PiMutex, SpawnError, Thread};
use thiserror::Error;

use crate::admission::{Admission, AdmissionPolicy, OperationSource};
use crate::event::Body;
use crate::fan_out::send_deferred;
use crate::idl::chronorb_events::{ChannelStatisticsBuf, MonitoredChannelSkeleton};
use crate::idl::rtec_event_channel_admin::{
    ConsumerAdminSkeleton, SupplierAdminSkeleton, SupplierQOS,
};
use crate::local::LocalSupplier;
use crate::options::{ChannelOptions, LaneOptions};
use crate::servants::{AdminServant, ChannelServant};
use crate::state::{
    CHANNEL_ID, CONSUMER_ADMIN_ID, Channel, DESTROYED, Poas, RUNNING, SUPPLIER_ADMIN_ID,
};
use crate::statistics::StatisticsPage;
use crate::threads::check;

/// An event channel that is to be served.
///
/// # Example
/// ```
/// use chronorb::prelude::*;
/// use chronorb_rtec::EventServer;
/// use chronorb_rtec::idl::rtec_event_channel_admin::EventChannel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut args = vec!["p".into(), "-ORBListenEndpoints".into(), "iiop://127.0.0.1:0".into()];
/// let orb = Orb::init(&mut args)?;
/// let root = orb.root_poa()?;
/// let service = EventServer::new().serve_in(&root)?;
/// root.manager().activate()?;
/// let channel = EventChannel::unchecked_narrow(service.channel());
/// assert!(channel.for_consumers()?.is_some());
/// # orb.shutdown(true)?;
/// # Ok(())
/// # }
/// ```
pub struct EventServer {
    name: String,
    options: ChannelOptions,
    policies: Vec<Policy>,
    clock: Option<Arc<dyn Clock>>,
    admission: Option<Admission>,
}

/// An error in serving an event channel.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A POA of the channel cannot be made.
    #[error("a POA of the event channel cannot be made")]
    Poa(#[from] CreatePoaError),
    /// A servant cannot be activated.
    #[error("a servant of the event channel cannot be activated")]
    Servant(#[from] ActivateError),
    /// The channel has no reference.
    #[error("the event channel has no reference")]
    Reference(#[from] ObjectError),
    /// The initial reference cannot be registered.
    #[error("the initial reference of the event channel cannot be registered")]
    Name(#[from] ResolveError),
    /// There is no thread for outboxes.
    #[error("the outboxes of the event channel have no thread: {0}")]
    Outboxes(SystemException),
    /// There is no thread for a lane.
    #[error("a lane of the event channel cannot be made: {0}")]
    Lane(SystemException),
    /// There is no thread for checks.
    #[error("a thread of the event channel cannot be made")]
    Thread(#[from] SpawnError),
}

impl EventServer {
    /// Returns a channel with the name `EventService` and the default options.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name: NAME.to_owned(),
            options: ChannelOptions::default(),
            policies: Vec::new(),
            clock: None,
            admission: None,
        }
    }

    /// Sets the name of the initial reference and of the POA. Channels of one ORB have different
    /// names.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: ChannelOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds policies to those of the POAs, such as a thread pool and a priority model.
    #[must_use]
    pub fn policies(mut self, policies: &[Policy]) -> Self {
        self.policies = policies.to_vec();
        self
    }

    /// Sets the clock of the timers. Then no thread fires them: the program calls
    /// [`EventService::run_timers`].
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Admits clients by the response times of consumers. Then the `rt_info` of a consumer is the
    /// handle of its operation, which names its lane, and no number of a lane; that of a
    /// publication is the handle of the supplier's operation.
    ///
    /// A supplier that names more than 64 different operations is refused with `BAD_PARAM`. A
    /// client gets `NO_RESOURCES` also if its analysis takes too many steps, or if its origin has
    /// half of the 4,096 streams of events to consumers, or of the 8,192 publications with periods.
    /// The exception is `TRANSIENT` if other clients changed during each of eight analyses.
    #[must_use]
    pub fn admission(mut self, operations: impl OperationSource, policy: AdmissionPolicy) -> Self {
        self.admission = Some(Admission {
            operations: Arc::new(operations),
            policy,
        });
        self
    }

    /// Serves in a child of `poa`, with its manager, and registers the channel as an initial
    /// reference. Clients reach it by `corbaloc:iiop:HOST:PORT/EventService`.
    ///
    /// # Errors
    /// [`ServeError::Poa`] if `poa` has a child of this name; [`ServeError::Name`] if the name is
    /// taken; others for a lack of resources.
    pub fn serve_in(self, poa: &Poa) -> Result<EventService, ServeError> {
        let manager = poa.manager();
        let mut policies = vec![Policy::IdAssignment(IdAssignment::User)];
        policies.extend(self.policies);
        let mut persistent = policies.clone();
        persistent.push(Policy::Lifespan(Lifespan::Persistent));
        let own = poa.create_poa(&self.name, Some(manager), &persistent)?;
        let poas = Poas {
            consumers: own.create_poa("Consumers", Some(manager), &policies)?,
            suppliers: own.create_poa("Suppliers", Some(manager), &policies)?,
            channel: own.clone(),
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let orb = poa.orb();
        // Without lanes the only one fires timers, and serves consumers with queues.
        let mut lanes = self.options.lanes.clone();
        if lanes.is_empty() {
            lanes.push(LaneOptions::default());
        }
        let mut builder = chronorb_channel::Channel::<Body>::builder()
            .limits(self.options.limits.subscription)
            .rules(self.options.rules)
            .subscriptions(self.options.limits.consumers.total as usize)
            .octets_of(Body::octets)
            .send_deferred(send_deferred);
        for index in 0..lanes.len() {
            builder = builder.lane(Lane::new(lane_name(index)));
        }
        let events = builder.without_threads(clock.clone());
        let mut outboxes = Vec::new();
        if self.options.outboxes.is_some() {
            for lane in &lanes {
                let thread = OutboxThread::start(&orb, lane.priority);
                outboxes.push(thread.map_err(ServeError::Outboxes)?);
            }
        }
        let work = start_lanes(&orb, &events, &lanes)?;
        let period = self.options.peers.check_period;
        let channel = Channel::new(
            self.name,
            self.options,
            self.admission,
            clock,
            poas,
            (events, outboxes.into()),
        );
        own.activate_object_with_id(
            ObjectId::from(CONSUMER_ADMIN_ID),
            ConsumerAdminSkeleton::new(AdminServant(channel.clone())),
        )?;
        own.activate_object_with_id(
            ObjectId::from(SUPPLIER_ADMIN_ID),
            SupplierAdminSkeleton::new(AdminServant(channel.clone())),
        )?;
        let id = ObjectId::from(CHANNEL_ID);
        let servant = ChannelServant(channel.clone());
        own.activate_object_with_id(id.clone(), MonitoredChannelSkeleton::new(servant))?;
        let object = own.id_to_reference(&id)?;
        poa.orb()
            .register_initial_reference(&channel.name, &object)?;
        let source = Arc::downgrade(&channel);
        orb.monitor_channel(source);
        let mut service = EventService {
            channel,
            object,
            checks: PiMutex::new(Checks::default()),
            threads: Vec::new(),
            _lanes: work,
        };
        service.threads.push(start_links(service.channel.clone())?);
        if let Some(period) = period {
            let thread = start_checks(service.channel.clone(), period, check)?;
            service.threads.push(thread);
        }
        Ok(service)
    }
}

/// Starts the threads of lanes, which serve them until the channel is closed.
fn start_lanes(
    orb: &Orb,
    events: &chronorb_channel::Channel<Body>,
    lanes: &[LaneOptions],
) -> Result<Vec<WorkLane<usize>>, ServeError> {
    let mut started = Vec::with_capacity(lanes.len());
    for (index, lane) in lanes.iter().enumerate() {
        let spec = WorkLaneSpec {
            priority: lane.priority,
            capacity: 1,
            ..WorkLaneSpec::new(lane_name(index))
        };
        let served = events.clone();
        let work = orb
            .rt()
            .start_work_lane(&spec, move |lane| served.serve_lane(lane));
        let work = work.map_err(ServeError::Lane).and_then(|work| {
            let posted = work.post(index);
            posted.map_err(|refused| ServeError::Lane(refused.exception))?;
            Ok(work)
        });
        match work {
            Ok(work) => started.push(work),
            Err(error) => {
                events.close();
                return Err(error);
            }
        }
    }
    Ok(started)
}

fn lane_name(index: usize) -> String {
    format!("events.{index}")
}

impl Default for EventServer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EventServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventServer")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// An event channel that is served until it is destroyed or its ORB is shut down.
///
/// Dropping it ends the regular work: timers do not fire, and clients are not checked.
pub struct EventService {
    channel: Arc<Channel>,
    object: Object,
    checks: PiMutex<Checks>,
    threads: Vec<Thread<()>>,
    /// The threads of the lanes, which end with the channel.
    _lanes: Vec<WorkLane<usize>>,
}

impl EventService {
    /// The object of the channel: a `RtecEventChannelAdmin::EventChannel`, and a
    /// `ChronorbEvents::MonitoredChannel`.
    #[must_use]
    pub fn channel(&self) -> &Object {
        &self.object
    }

    /// Returns the state of the channel and of its clients.
    #[must_use]
    pub fn statistics(&self) -> ChannelStatisticsBuf {
        self.channel.statistics(StatisticsPage::ALL)
    }

    /// Connects a supplier of this process.
    ///
    /// # Errors
    /// `BAD_PARAM` for too many publications or operations; `IMP_LIMIT` with as many suppliers as
    /// the channel may have; `NO_RESOURCES` or `TRANSIENT` if it is not
    /// [admitted](EventServer::admission); `OBJECT_NOT_EXIST` if the channel is destroyed.
    pub fn supplier(&self, qos: &SupplierQOS<'_>) -> Result<LocalSupplier, SystemException> {
        LocalSupplier::connect(&self.channel, qos)
    }

    /// Fires the timers that are due, by the clock of the channel. Returns the time at which the
    /// next one is due, in nanoseconds of that clock.
    pub fn run_timers(&self) -> Option<u64> {
        self.channel.events.run_timers()
    }

    /// Waits until the events that the channel has taken are pushed, at most for `limit`. Returns
    /// whether they are. Without lanes they always are. Those in outboxes may still wait there.
    pub fn flush(&self, limit: Duration) -> bool {
        self.channel.events.flush(limit)
    }

    /// Checks all clients once, as the thread of the channel does regularly: clients that were
    /// idle since the last check of this kind are asked whether they exist.
    pub fn check_clients(&self) {
        check(&mut self.checks.lock(), &self.channel, LONGEST_CHECK);
    }

    /// Disconnects and calls back all clients. The references of the channel are not valid any
    /// more.
    ///
    /// # Errors
    /// `OBJECT_NOT_EXIST` if the channel was destroyed before.
    pub fn destroy(&self) -> Result<(), SystemException> {
        self.channel.destroy()
    }

    /// Waits until the channel is destroyed, at most for `limit`. Returns whether it is.
    pub fn wait_until_destroyed(&self, limit: Duration) -> bool {
        let deadline = Deadline::after(limit);
        self.channel.life.wait_while(RUNNING, deadline) == DESTROYED
    }
}

impl Drop for EventService {
    fn drop(&mut self) {
        self.channel.stop();
        for thread in self.threads.drain(..) {
            // A panic of the thread was printed by its hook.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for EventService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventService")
            .field("channel", &self.object)
            .finish_non_exhaustive()
    }
}

/// Sets the settings by which the ORB of a channel, and those of its consumers, keep the order of
/// events: connections are served in order (`-ORBOrderedConnections`), and all threads send by one
/// connection (`-ORBClientConnection`).
///
/// With other settings the events of a supplier can overtake each other.
pub fn keep_order(config: &mut OrbConfig) {
    config.ordered_connections = true;
    if config.client_connection == ConnectionStrategy::Exclusive {
        config.client_connection = ConnectionStrategy::Leader;
    }
}

/// The longest wait for the answers of clients that the program has checked.
const LONGEST_CHECK: Duration = Duration::from_secs(3600);
/// The name of a channel: its initial reference, its POA, and its name in a name server.
const NAME: &str = "EventService";
