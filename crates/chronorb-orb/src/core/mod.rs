//! The state that all parts of one ORB share.

#[cfg(feature = "miop")]
mod group;
mod host;
mod object;
mod rt_current;

use std::any::Any;
use std::fmt;
#[cfg(feature = "monitor")]
use std::path::Path;
use std::sync::Arc;
#[cfg(any(feature = "monitor", feature = "schedule"))]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
#[cfg(feature = "monitor")]
use chronorb_rt::Deadline;
use chronorb_rt::{Gate, Scheduling};
use chronorb_transport::{Setup, SocketOptions};

#[cfg(feature = "schedule")]
use crate::active_schedule::ActiveSchedule;
#[cfg(feature = "bidir")]
use crate::bidirectional::{BidirectionalState, CallbackPool};
use crate::client_state::ClientState;
use crate::config::OrbConfig;
#[cfg(feature = "distributable-threads")]
use crate::dynamic_scheduling::SchedulingState;
#[cfg(feature = "monitor")]
use crate::event_channels::MonitoredChannels;
#[cfg(feature = "miop")]
use crate::group_members::Groups;
use crate::incident::Incidents;
use crate::initial_references::InitialReferences;
use crate::lanes::{PoolHandle, PoolUse, ThreadpoolId};
use crate::main_thread::MainThread;
#[cfg(feature = "schedule")]
use crate::meter::Meter;
use crate::poa::PoaTable;
use crate::profile::ProfileReader;
use crate::protocol::{self, PluggableProtocol, Registry, Way};
use crate::quota::Quotas;
use crate::rtcorba::policies::{OrbPolicies, Protocols};
use crate::rtcorba::{NamedMutexes, Priority, RealTime, RtState, Transform};
use crate::stage::Stage;

pub(crate) use host::Host;
pub(crate) use object::OBJECT_ID;
pub use object::{BindError, Interface, Object, narrow};
pub use rt_current::RtCurrent;

/// The state of an ORB. Object references, POAs and threads keep it alive.
pub(crate) struct Core {
    /// Distinguishes the ORBs of one process in tables of threads.
    pub(crate) number: u64,
    /// Distinguishes object references of this ORB from those of an earlier run.
    pub(crate) incarnation: u64,
    pub(crate) config: OrbConfig,
    pub(crate) protocols: Registry,
    pub(crate) rt: RtState,
    pub(crate) server: Box<dyn Serving>,
    #[cfg(feature = "monitor")]
    pub(crate) monitor: OnceLock<Box<dyn MonitorHandle>>,
    /// The event channels that the monitor reports.
    #[cfg(feature = "monitor")]
    pub(crate) channels: MonitoredChannels,
    /// Counts of faults and of refused peers, by cause.
    pub(crate) incidents: Arc<Incidents>,
    pub(crate) quotas: Quotas,
    pub(crate) poas: PoaTable,
    #[cfg(feature = "miop")]
    pub(crate) groups: Groups,
    pub(crate) main: MainThread,
    pub(crate) initial_references: InitialReferences,
    pub(crate) client: ClientState,
    /// The scheduler of distributable threads.
    #[cfg(feature = "distributable-threads")]
    pub(crate) scheduling: SchedulingState,
    /// The schedule that it has started with.
    #[cfg(feature = "schedule")]
    pub(crate) schedule: OnceLock<ActiveSchedule>,
    /// Measures operations, where a setting asks for it.
    #[cfg(feature = "schedule")]
    pub(crate) meter: Option<Arc<Meter>>,
    /// The connections on which both sides send requests.
    #[cfg(feature = "bidir")]
    pub(crate) bidirectional: BidirectionalState,
    /// [`RUNNING`], [`STOPPING`] or [`STOPPED`].
    pub(crate) state: Gate,
}

/// The server's part of an ORB: thread pools and endpoints.
pub(crate) trait Serving: Any + Send + Sync {
    /// Returns the pool of POAs that name none; the first call makes it.
    fn default_pool(&self, core: &Arc<Core>) -> Result<Arc<PoolHandle>, SystemException>;

    /// Returns the pool of this number, which cannot be destroyed before the result is dropped.
    fn use_pool(&self, id: ThreadpoolId) -> Option<PoolUse>;

    /// Returns a pool as the reader of connections that this ORB opens, unless it was destroyed.
    #[cfg(feature = "bidir")]
    fn callback_pool(&self, pool: &PoolHandle) -> Option<Arc<dyn CallbackPool>>;

    /// Whether one of the addresses leads to this ORB.
    fn is_published(&self, ways: &[Way]) -> bool;

    /// Logs the endpoints at which the ORB listens, if they have changed since the last time.
    fn log_listening(&self, core: &Core);

    /// Closes a connection of a client that is idle, in order, since no descriptor is left for a
    /// connection to a server; returns whether there was one.
    fn make_room_for_file(&self) -> bool;
}

/// The monitor of an ORB, as the ORB has it.
#[cfg(feature = "monitor")]
pub(crate) trait MonitorHandle: Send + Sync {
    /// The path of its socket.
    fn path(&self) -> &Path;

    /// Signals its thread to end.
    fn stop(&self);

    /// Waits until its thread has ended and the socket is removed.
    fn wait_until_ended(&self, deadline: Deadline);
}

pub(crate) const RUNNING: u32 = 0;
pub(crate) const STOPPING: u32 = 1;
pub(crate) const STOPPED: u32 = 2;

impl Core {
    pub(crate) fn new(
        config: OrbConfig,
        protocols: Registry,
        server: Box<dyn Serving>,
    ) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // The start time in nanoseconds; the low bits of the number distinguish ORBs of a process.
        let incarnation = (since_epoch.as_nanos() as u64) ^ (number << 54);
        let incidents: Arc<Incidents> = Arc::default();
        let tags = protocols.iter().map(PluggableProtocol::tag);
        #[cfg(feature = "schedule")]
        let (meter, config) = Meter::of(config, &incidents);
        Arc::new(Self {
            #[cfg(feature = "distributable-threads")]
            scheduling: SchedulingState::new(),
            #[cfg(feature = "schedule")]
            schedule: OnceLock::new(),
            #[cfg(feature = "schedule")]
            meter,
            number,
            incarnation,
            rt: RtState {
                real_time: RealTime::new(
                    config.real_time,
                    config.scheduling_policy,
                    &config.priority_mapping,
                    incidents.clone(),
                ),
                transform: Transform::default(),
                mutexes: NamedMutexes::default(),
                policies: Arc::new(OrbPolicies::new(config.request_timeout, tags.collect())),
            },
            server,
            protocols,
            #[cfg(feature = "monitor")]
            monitor: OnceLock::new(),
            #[cfg(feature = "monitor")]
            channels: MonitoredChannels::default(),
            incidents,
            quotas: Quotas::default(),
            poas: PoaTable::new(&config, incarnation),
            #[cfg(feature = "miop")]
            groups: Groups::default(),
            main: MainThread::new(config.max_main_thread_requests, config.max_buffered_octets),
            initial_references: InitialReferences::new(&config),
            client: ClientState::new(config.max_client_connections),
            #[cfg(feature = "bidir")]
            bidirectional: BidirectionalState::default(),
            state: Gate::new(RUNNING),
            config,
        })
    }

    /// # Errors
    /// `BAD_INV_ORDER` (OMG minor 4) after shutdown.
    pub(crate) fn check_running(&self) -> Result<(), SystemException> {
        if self.state.get() == RUNNING {
            Ok(())
        } else {
            Err(SystemException::no(
                SystemExceptionKind::BadInvOrder,
                minor::ORB_SHUT_DOWN,
            ))
        }
    }

    /// Suspects an address of a server for a time, so that calls with a fail-over policy prefer
    /// others: all bindings are made again.
    #[cold]
    #[inline(never)]
    pub(crate) fn suspect(&self, way: &Way, time: Duration) {
        if self.client.suspect(way, time) {
            self.rt.policies.renew_bindings();
        }
    }

    /// Returns the parts by which it reads the profiles of references.
    pub(crate) fn profile_reader(&self) -> ProfileReader<'_> {
        ProfileReader {
            config: &self.config,
            protocols: &self.protocols,
        }
    }

    /// Reports to the probe, if there is one, what the calling thread is about to do.
    #[inline]
    pub(crate) fn at(&self, stage: Stage) {
        if let Some(probe) = &self.config.stage_probe {
            probe.at(stage);
        }
    }

    /// The setup of connections that a lane of this priority accepts by a protocol, according to
    /// the ORB's server protocols. The first call fixes these.
    pub(crate) fn server_setup(
        &self,
        protocol: u32,
        priority: Option<Priority>,
        scheduling: Scheduling,
    ) -> Setup {
        let protocols = self.rt.policies.server_protocols();
        Setup {
            options: SocketOptions {
                peer_timeout: self.config.peer_timeout,
                ..Protocols::socket_options(protocols, protocol, priority)
            },
            messages: protocol::messages(self.config.max_message_size),
            urgency: Some(scheduling),
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb")
            .field("id", &self.config.orb_id)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
