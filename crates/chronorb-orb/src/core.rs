//! What all parts of one ORB share.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Gate, PiMutex, Rights, Scheduling};
use chronorb_transport::{SocketOptions, Transport, tcp::Tcp};

use crate::config::{OrbConfig, RealTimeMode};
use crate::monitor::Monitor;
use crate::poa::{Managers, PoaTable};
use crate::resolver::Resolver;
use crate::rtcorba::{Priority, PriorityMapping};
use crate::server::{MainThread, Pools, Stage};

/// The inside of an ORB. Object references, POAs and threads hold it together.
pub(crate) struct Core {
    /// Tells ORBs of one process apart in tables of threads.
    pub(crate) number: u64,
    /// Tells object references of this ORB from those of an earlier run.
    pub(crate) incarnation: u64,
    pub(crate) config: OrbConfig,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) real_time: RealTime,
    pub(crate) pools: PiMutex<Pools>,
    /// Lanes whose threads have not all ended.
    pub(crate) live_lanes: AtomicUsize,
    /// Who wants the lanes to take times, a bit each.
    pub(crate) watchers: AtomicU8,
    pub(crate) monitor: OnceLock<Monitor>,
    pub(crate) poas: PoaTable,
    pub(crate) managers: Managers,
    /// The number of the next object whose id is not a slot.
    pub(crate) next_object: AtomicU64,
    pub(crate) main: MainThread,
    pub(crate) resolver: Resolver,
    /// [`RUNNING`], [`STOPPING`] or [`STOPPED`].
    pub(crate) state: Gate,
}

pub(crate) const RUNNING: u32 = 0;
pub(crate) const STOPPING: u32 = 1;
pub(crate) const STOPPED: u32 = 2;

impl Core {
    pub(crate) fn new(config: OrbConfig) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // Nanoseconds of the start, told apart within the process by the number's low bits.
        let incarnation = (since_epoch.as_nanos() as u64) ^ (number << 54);
        Arc::new(Self {
            number,
            incarnation,
            real_time: RealTime::new(&config),
            transport: Box::new(Tcp),
            pools: PiMutex::new(Pools::default()),
            live_lanes: AtomicUsize::new(0),
            watchers: AtomicU8::new(0),
            monitor: OnceLock::new(),
            poas: PoaTable::new(config.poa_demultiplexing),
            managers: Managers::default(),
            next_object: AtomicU64::new(0),
            main: MainThread::new(config.max_main_thread_requests, config.max_buffered_octets),
            resolver: Resolver::new(&config),
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

    /// Whether an object id is an incarnation and a number that this ORB has given out.
    pub(crate) fn is_own_number(&self, id: &[u8]) -> bool {
        let Some((incarnation, rest)) = id.split_first_chunk() else {
            return false;
        };
        let number = rest.try_into().map(u64::from_be_bytes);
        u64::from_be_bytes(*incarnation) == self.incarnation
            && number.is_ok_and(|number| number < self.next_object.load(Ordering::Relaxed))
    }

    /// Tells the probe, if there is one, what the calling thread is about to do.
    #[inline]
    pub(crate) fn at(&self, stage: Stage) {
        if let Some(probe) = &self.config.stage_probe {
            probe.at(stage);
        }
    }

    pub(crate) fn socket_options(&self) -> SocketOptions {
        SocketOptions::default()
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

/// What this process may do about scheduling, and how priorities are mapped.
pub(crate) struct RealTime {
    mode: RealTimeMode,
    max_native: Option<u8>,
    mapping: Box<dyn PriorityMapping>,
    warned: AtomicBool,
}

impl RealTime {
    fn new(config: &OrbConfig) -> Self {
        let max_native = match config.real_time {
            RealTimeMode::Off => None,
            RealTimeMode::Required | RealTimeMode::Preferred => Rights::probe().max_fifo,
        };
        Self {
            mode: config.real_time,
            max_native,
            mapping: config.priority_mapping.mapping(),
            warned: AtomicBool::new(false),
        }
    }

    /// Whether priorities reach the operating system.
    pub(crate) fn is_available(&self) -> bool {
        self.max_native.is_some()
    }

    /// The native scheduling of a CORBA priority.
    ///
    /// Without the right to it this is the ordinary one, and the first time it says so loudly.
    ///
    /// # Errors
    /// `DATA_CONVERSION` (OMG minor 2) where the mapping has no native priority for it;
    /// `INITIALIZE` (OMG minor 1) where real-time scheduling is required, and the process may not
    /// use that native priority.
    pub(crate) fn scheduling(&self, priority: Priority) -> Result<Scheduling, SystemException> {
        let native = self.mapping.to_native(priority).ok_or_else(|| {
            SystemException::no(
                SystemExceptionKind::DataConversion,
                minor::PRIORITY_MAPPING_FAILED,
            )
        })?;
        if native == 0 {
            return Ok(Scheduling::OTHER);
        }
        match self.max_native {
            Some(max) if native <= max => Ok(Scheduling::fifo(native)),
            _ if self.mode == RealTimeMode::Required => Err(SystemException::no(
                SystemExceptionKind::Initialize,
                minor::PRIORITY_RANGE_TOO_SMALL,
            )),
            _ => {
                self.warn();
                Ok(Scheduling::OTHER)
            }
        }
    }

    fn warn(&self) {
        if self.mode == RealTimeMode::Off || self.warned.swap(true, Ordering::Relaxed) {
            return;
        }
        eprintln!("chronorb: WARNING: priorities are NOT real-time in this process.");
        for missing in Rights::probe().missing() {
            eprintln!("chronorb:   {}: {}", missing.what, missing.cost);
            eprintln!("chronorb:   to get it: {}", missing.remedy);
        }
        eprintln!(
            "chronorb:   -ORBRealTime off says that this is meant; -ORBRealTime required refuses to run like this."
        );
    }
}
