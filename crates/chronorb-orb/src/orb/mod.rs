//! The ORB as applications see it.

mod names;
mod ready;
mod resolve;
mod rt_orb;
mod shutdown;

#[cfg(feature = "monitor")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::Any;
use chronorb_giop::{Ior, SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Rights, Termination, lock_all, prepare_to_poll, return_great_blocks};
use chronorb_transport::WaitPolicy;
use thiserror::Error;

#[cfg(feature = "schedule")]
use crate::active_schedule::ActiveSchedule;
use crate::call::Call;
use crate::config::{ConfigError, OrbConfig, RealTimeMode};
use crate::core::{Core, Object, RtCurrent, STOPPED, STOPPING};
use crate::failure::{self, LastFailure};
use crate::initial_references::ResolveError;
#[cfg(feature = "monitor")]
use crate::monitor::{ChannelSource, Monitor, MonitorError};
use crate::observe::Snapshot;
use crate::poa::{Poa, PoaCurrent, PoaManagerFactory};
#[cfg(feature = "ssliop")]
use crate::protocol::ProtocolProblem;
use crate::protocol::Registry;
use crate::quota::{Quota, QuotaLimits};
use crate::room::has_memory_for;
use crate::rtcorba::{PolicyCurrent, PolicyManager};
#[cfg(feature = "distributable-threads")]
use crate::rtscheduling::{Scheduler, SchedulingCurrent};
#[cfg(feature = "schedule")]
use crate::schedule::{ClientScheduler, LoadedSchedule, ServerScheduler, StartError};
use crate::server::{self, ListeningEndpoints, ServerState, Watcher};

pub use ready::NotifyError;
pub use rt_orb::RtOrb;

/// An ORB: it calls objects elsewhere and serves objects here.
///
/// A handle; clones are the same ORB. It lives until [`shutdown`](Self::shutdown).
#[derive(Clone, Debug)]
pub struct Orb {
    core: Arc<Core>,
}

/// An error in making an ORB.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InitError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `-ORBRealTime required`, and the process may not use real-time scheduling.
    #[error("real-time scheduling is required and cannot be had: {0}")]
    NoRealTime(String),
    /// `-ORBLockMemory true`, and the memory cannot be locked.
    #[error("memory cannot be locked: {0}")]
    NoMemoryLock(String),
    /// There is no memory for one arena of `-ORBArenaSize`.
    #[error("there is no memory for an arena of {0} octets (-ORBArenaSize)")]
    NoMemoryForArena(usize),
    /// `-ORBSchedule` names a schedule that the ORB cannot start with.
    #[cfg(feature = "schedule")]
    #[error("-ORBSchedule: {0}")]
    Schedule(#[from] StartError),
    /// `-ORBMonitor` asks for a monitor, which cannot be made.
    #[cfg(feature = "monitor")]
    #[error("the monitor cannot be made: {0}")]
    Monitor(#[from] MonitorError),
}

impl Orb {
    /// Makes an ORB from a configuration file, the environment and the `-ORB…` options of a
    /// command line, which are removed from it. See [`OrbConfig`].
    ///
    /// ```
    /// use chronorb_orb::Orb;
    ///
    /// let mut args: Vec<String> = std::env::args().collect();
    /// let orb = Orb::init(&mut args)?;
    /// // `args` now holds what is left for the program.
    /// orb.shutdown(true)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`InitError`] names the setting, its source and the expected value, or the missing right
    /// and how to grant it.
    pub fn init(args: &mut Vec<String>) -> Result<Self, InitError> {
        Self::with_config(OrbConfig::read(args)?)
    }

    /// Makes an ORB from a configuration.
    ///
    /// # Errors
    /// Those of [`init`](Self::init).
    pub fn with_config(config: OrbConfig) -> Result<Self, InitError> {
        crate::stack::announce();
        let config = config.checked()?;
        // Its links have classes of real-time I/O.
        #[cfg(feature = "schedule")]
        let (schedule, config) = LoadedSchedule::of(config)?;
        let protocols = Registry::new(&config).map_err(ConfigError::of_protocols)?;
        config.check_protocols(&protocols)?;
        if config.real_time == RealTimeMode::Required && Rights::probe().max_fifo.is_none() {
            let remedies = Rights::probe()
                .missing()
                .iter()
                .map(|missing| format!("{}; to get it: {}", missing.what, missing.remedy))
                .collect::<Vec<_>>();
            return Err(InitError::NoRealTime(remedies.join("; ")));
        }
        if config.lock_memory {
            lock_all().map_err(|e| InitError::NoMemoryLock(e.to_string()))?;
        } else {
            // Locked memory is meant to stay.
            return_great_blocks();
        }
        if config.client_wait != WaitPolicy::Block {
            prepare_to_poll();
        }
        if !has_memory_for(config.arena_size) {
            return Err(InitError::NoMemoryForArena(config.arena_size));
        }
        #[cfg(feature = "tracing")]
        if config.log.is_some() {
            // A program with a subscriber of its own receives the events there.
            let _ = crate::log::install(&config).map(std::mem::forget);
        }
        let core = Core::new(config, protocols, Box::new(ServerState::default()));
        #[cfg(feature = "schedule")]
        if let Some(schedule) = schedule {
            let active = ActiveSchedule::start(&core, schedule).inspect_err(|_| {
                // The lanes that were made before end.
                let _ = shutdown::shutdown(&core, true);
            })?;
            // No other thread has the ORB yet, so the schedule was not set before.
            let _ = core.schedule.set(active);
        }
        #[cfg(feature = "ssliop")]
        if core.config.ssl.verify == chronorb_transport::tls::Verify::None {
            let incident = crate::incident::Incident::UnsafeSetting;
            core.incidents
                .tell(incident, &"-ORBSSLVerify none", 0, &UNVERIFIED);
        }
        #[cfg(feature = "monitor")]
        if let Some(monitor) = Monitor::start(&core)? {
            // No other thread has the ORB yet, so the monitor was not set before.
            let _ = core.monitor.set(Box::new(monitor));
        }
        Ok(Self { core })
    }

    /// The root POA. The default thread pool serves it, and opens its endpoints with the first
    /// object. If this fails, the activation of that object fails with `NO_RESOURCES`, and the log
    /// has the cause.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` (OMG minor 4) after shutdown.
    pub fn root_poa(&self) -> Result<Poa, SystemException> {
        Poa::root(&self.core)
    }

    /// The target of the request that the calling thread serves (`PortableServer::Current`).
    pub fn poa_current(&self) -> PoaCurrent {
        PoaCurrent::new(self.core.clone())
    }

    /// The factory of POA managers, which also finds them.
    pub fn poa_manager_factory(&self) -> PoaManagerFactory {
        PoaManagerFactory::new(self.core.clone())
    }

    /// The RT ORB, which makes thread pools with lanes.
    pub fn rt(&self) -> RtOrb {
        RtOrb::new(self.core.clone())
    }

    /// The priority of the calling thread.
    pub fn rt_current(&self) -> RtCurrent {
        RtCurrent::new(self.core.clone())
    }

    /// The distributable thread and the segments of the calling thread, `RTScheduler_Current` in
    /// the standard.
    #[cfg(feature = "distributable-threads")]
    pub fn scheduling_current(&self) -> SchedulingCurrent {
        SchedulingCurrent::new(self.core.clone())
    }

    /// The scheduler of distributable threads, `RTScheduler` in the standard.
    #[cfg(feature = "distributable-threads")]
    pub fn scheduler(&self) -> Arc<dyn Scheduler> {
        self.core.scheduling.shared_scheduler()
    }

    /// Sets the scheduler of distributable threads, once, before the first segment begins.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` if it was set before.
    #[cfg(feature = "distributable-threads")]
    pub fn set_scheduler(&self, scheduler: Arc<dyn Scheduler>) -> Result<(), SystemException> {
        if self.core.scheduling.set_scheduler(scheduler) {
            Ok(())
        } else {
            Err(SystemException::no(SystemExceptionKind::BadInvOrder, 0))
        }
    }

    /// The last failure of the calling thread whose cause is known: the address and the operating
    /// system's error, the part of the URL, or the setting that was exceeded.
    ///
    /// [`exception`](LastFailure::exception) tells to which failed call it belongs. A call that
    /// succeeds does not change it. The failure of an asynchronous call is recorded for the thread
    /// that takes its result.
    pub fn last_failure(&self) -> Option<LastFailure> {
        failure::last()
    }

    /// The present state of the ORB's thread pools, lanes and threads. It reads `/proc`, so it is
    /// not for real-time threads.
    pub fn snapshot(&self) -> Snapshot {
        server::snapshot(&self.core)
    }

    /// The scheduler of threads that call, by names of activities; `None` for an ORB that has not
    /// started with a [schedule](OrbConfig::schedule).
    #[cfg(feature = "schedule")]
    pub fn client_scheduler(&self) -> Option<ClientScheduler> {
        ClientScheduler::of(&self.core)
    }

    /// The scheduler of objects, by names of interfaces and operations; `None` for an ORB that has
    /// not started with a [schedule](OrbConfig::schedule).
    #[cfg(feature = "schedule")]
    pub fn server_scheduler(&self) -> Option<ServerScheduler> {
        ServerScheduler::of(&self.core)
    }

    /// Changes the share of requests that are measured: one in `one_in` of each operation, none
    /// for 0. Returns `false`, and changes nothing, for an ORB that began without
    /// [`measure`](OrbConfig::measure) and an overrun policy: its requests have no place for it.
    #[cfg(feature = "schedule")]
    pub fn measure(&self, one_in: u32) -> bool {
        let meter = self.core.meter.as_deref();
        meter.map(|meter| meter.set_one_in(one_in)).is_some()
    }

    /// The endpoints at which the lanes listen now, and the proof that each asks of peers. An ORB
    /// listens from its first object or thread pool on; a pure client does not listen.
    pub fn listening(&self) -> ListeningEndpoints {
        server::listening(&self.core)
    }

    /// Reads certificates, keys and revocation lists again, for connections from now on. Changed
    /// files are also noticed at a handshake, within a second.
    ///
    /// # Errors
    /// [`ConfigError`] names the file and the error in it. The previous content stays in use.
    #[cfg(feature = "ssliop")]
    pub fn reload_certificates(&self) -> Result<(), ConfigError> {
        for protocol in self.core.protocols.iter() {
            let reloaded = protocol.transport().reload();
            reloaded.map_err(|problem| {
                ConfigError::of_protocols(ProtocolProblem::Setting(problem.to_string()))
            })?;
        }
        Ok(())
    }

    /// Turns on or off the measuring of each request's time for [`snapshot`](Self::snapshot). While
    /// the monitor has a client it stays on. It costs two readings of the clock for each request.
    pub fn watch(&self, times: bool) {
        server::take_times(&self.core, Watcher::Application, times);
    }

    /// The socket of the monitor (`-ORBMonitor`), if there is one; see [`monitor`](crate::monitor).
    #[cfg(feature = "monitor")]
    pub fn monitor(&self) -> Option<&Path> {
        self.core.monitor.get().map(|monitor| monitor.path())
    }

    /// Adds an event channel to the reports of the monitor, as long as its source lives.
    #[cfg(feature = "monitor")]
    pub fn monitor_channel(&self, source: std::sync::Weak<dyn ChannelSource>) {
        self.core.channels.add(source);
    }

    /// Makes a quota of a resource, by its name in the plural, for the servants of a service.
    ///
    /// The monitor and [`snapshot`](Self::snapshot) report it as long as it or a charge lives.
    pub fn quota(&self, name: &'static str, limits: QuotaLimits) -> Arc<Quota> {
        let quota = Arc::new(Quota::new(name, limits, self.core.incidents.clone()));
        self.core.quotas.add(&quota);
        quota
    }

    /// The policies of this ORB, for calls of all threads.
    pub fn policy_manager(&self) -> PolicyManager {
        PolicyManager::new(self.core.rt.policies.clone())
    }

    /// The policies of the calling thread, for its calls by references of this ORB.
    pub fn policy_current(&self) -> PolicyCurrent {
        PolicyCurrent::new(self.core.rt.policies.clone())
    }

    /// Whether priorities reach the operating system in this process.
    pub fn is_real_time(&self) -> bool {
        self.core.rt.real_time.is_available()
    }

    /// Converts a text to an object: `IOR:…`, `corbaloc:…`, `corbaname:…`, `file://…`.
    ///
    /// Makes no connection, except for a `corbaname:` with a name: its naming service is called
    /// (`CosNaming::NamingContext::resolve`).
    ///
    /// ```no_run
    /// # use chronorb_orb::{Orb, SystemException};
    /// # fn radar(orb: &Orb) -> Result<(), SystemException> {
    /// let radar = orb.string_to_object("corbaname::names.example#plant/radar.sensor")?;
    /// assert!(!radar.non_existent()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BAD_PARAM` with OMG minor 7 (scheme), 8 (address), 9 (scheme-specific part, or a name that
    /// is no initial reference) or 10 (anything else, such as a name that is not bound);
    /// `INV_OBJREF` for a nil reference; for `corbaname:` also the exceptions of a call, such as
    /// `TRANSIENT`, `COMM_FAILURE` and `TIMEOUT`. [`last_failure`](Self::last_failure) has the
    /// cause: the component of a name, and the naming service.
    pub fn string_to_object(&self, text: &str) -> Result<Object, SystemException> {
        resolve::string_to_object(&self.core, text, 0)
    }

    /// The text form `IOR:…` of a reference, which [`string_to_object`](Self::string_to_object) of
    /// any ORB reads.
    pub fn object_to_string(&self, object: &Object) -> String {
        object.ior().to_string()
    }

    /// Returns the any with this ORB as the owner of object references that are extracted from it.
    /// An any from a call has an ORB already; the view of an `AnyBuf` has none.
    ///
    /// # Errors
    /// `NO_MEMORY` where the arena of the any is full.
    pub fn any<'a>(&'a self, any: Any<'a>) -> Result<Any<'a>, SystemException> {
        Ok(any.with_host(&self.core)?)
    }

    /// Resolves an initial reference by name: one registered here, one of `-ORBInitRef`, or
    /// `-ORBDefaultInitRef` with `/name` appended.
    ///
    /// # Errors
    /// [`ResolveError::InvalidName`] where there is none; else those of
    /// [`string_to_object`](Self::string_to_object).
    pub fn resolve_initial_references(&self, name: &str) -> Result<Object, ResolveError> {
        failure::begin();
        resolve::resolve(&self.core, name, 0)?.ok_or(ResolveError::InvalidName)
    }

    /// Registers an object under a plain name, for
    /// [`resolve_initial_references`](Self::resolve_initial_references) here and for `corbaloc:`
    /// URLs with that name as the key; this ORB forwards their requests to the object.
    ///
    /// # Errors
    /// [`ResolveError::InvalidName`] for an empty name, [`ResolveError::NameTaken`] for one that is
    /// already registered.
    pub fn register_initial_reference(
        &self,
        name: &str,
        object: &Object,
    ) -> Result<(), ResolveError> {
        self.core
            .initial_references
            .register(name, object.ior().clone())
    }

    /// Serves until [`shutdown`](Self::shutdown). Threads of pools serve in any case; the calling
    /// thread serves the POAs of the [main-thread model](crate::poa::ThreadModel::MainThread).
    pub fn run(&self) {
        server::report_unused_endpoints(&self.core);
        server::log_listening(&self.core);
        while self.core.state.get() != STOPPED {
            self.run_for(LOOK_AGAIN);
        }
    }

    /// Whether there is a request for the main thread (`ORB::work_pending`).
    pub fn work_pending(&self) -> bool {
        self.core.main.has_work()
    }

    /// Serves one request for the main thread, if there is one (`ORB::perform_work`). The calling
    /// thread becomes the main thread, unless another one runs the ORB.
    pub fn perform_work(&self) {
        if let Some(main) = self.core.main.claim() {
            main.run_one();
        }
    }

    fn run_for(&self, time: Duration) {
        let is_over = || self.core.state.get() == STOPPED;
        match self.core.main.claim() {
            Some(main) => main.run(time, is_over),
            // Another thread is the main thread.
            None => {
                let state = self.core.state.get();
                if !is_over() {
                    let soon = Deadline::after(time.min(SIGNAL_POLL));
                    self.core.state.wait_while(state, soon);
                }
            }
        }
    }

    /// Catches `SIGINT` (Ctrl-C) and `SIGTERM` from now on, for
    /// [`run_until_signal`](Self::run_until_signal).
    ///
    /// A program calls this before it announces itself, so that it can be ended in order from then
    /// on.
    ///
    /// # Errors
    /// `NO_RESOURCES` where the signals cannot be caught.
    pub fn catch_signals(&self) -> Result<(), SystemException> {
        termination().map(drop)
    }

    /// Serves until [`shutdown`](Self::shutdown), `SIGINT` (Ctrl-C) or `SIGTERM`; a signal shuts
    /// the ORB down in order, a second Ctrl-C ends the process at once.
    ///
    /// # Errors
    /// `NO_RESOURCES` where the signals cannot be caught.
    pub fn run_until_signal(&self) -> Result<(), SystemException> {
        let termination = termination()?;
        server::report_unused_endpoints(&self.core);
        server::log_listening(&self.core);
        while self.core.state.get() != STOPPED {
            if termination.requested() {
                return self.shutdown(true);
            }
            self.run_for(SIGNAL_POLL);
        }
        Ok(())
    }

    /// Tells the service manager that started this program that it is ready: `READY=1` to the
    /// socket in `NOTIFY_SOCKET`, as systemd asks for by `Type=notify` (sd_notify(3)). Returns
    /// `false` where there is no such manager.
    ///
    /// A server calls this when its objects are active, and before it runs.
    ///
    /// ```
    /// use chronorb_orb::Orb;
    ///
    /// let orb = Orb::init(&mut Vec::new())?;
    /// // Servants are activated here.
    /// orb.notify_ready()?;
    /// # orb.shutdown(true)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`NotifyError`] where the socket is malformed or cannot be reached.
    pub fn notify_ready(&self) -> Result<bool, NotifyError> {
        ready::notify()
    }

    /// Ends the ORB: it accepts no further connection or request, answers requests in progress, and
    /// sends peers `CloseConnection`. With `wait`, all threads have ended when this returns. A
    /// second call does nothing.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` (OMG minor 3) with `wait` from a servant of this ORB, which would wait for
    /// itself.
    pub fn shutdown(&self, wait: bool) -> Result<(), SystemException> {
        shutdown::shutdown(&self.core, wait)
    }

    /// Whether [`shutdown`](Self::shutdown) was called.
    pub fn is_shut_down(&self) -> bool {
        matches!(self.core.state.get(), STOPPING | STOPPED)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn from_core(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Makes the object of a reference.
    ///
    /// # Errors
    /// `INV_OBJREF` for a nil reference.
    pub fn ior_to_object(&self, ior: Ior) -> Result<Object, SystemException> {
        Object::from_ior(&self.core, ior)
            .ok_or(SystemException::no(SystemExceptionKind::InvObjref, 0))
    }
}

impl Poa {
    /// The ORB of this POA.
    pub fn orb(&self) -> Orb {
        Orb::from_core(self.core().clone())
    }
}

impl Call<'_> {
    /// The ORB.
    pub fn orb(&self) -> Orb {
        let core = self.orb.downcast_ref::<Arc<Core>>();
        Orb::from_core(core.expect("a call knows its ORB").clone())
    }
}

fn termination() -> Result<&'static Termination, SystemException> {
    Termination::install().map_err(|_| SystemException::no(SystemExceptionKind::NoResources, 0))
}

/// The warning about peers that are not verified.
#[cfg(feature = "ssliop")]
const UNVERIFIED: &str = "TLS is NOT verified: an attacker on the network path can pretend to be \
                          the peer, and read and change everything";
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
/// The longest time until a serving thread notices a signal.
const SIGNAL_POLL: Duration = Duration::from_millis(100);
