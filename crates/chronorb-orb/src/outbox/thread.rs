//! The thread that sends for outboxes what their peers did not take at once.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use chronorb_giop::{SystemException, SystemExceptionKind};
use chronorb_rt::{PiMutex, Scheduling, ThreadBuilder, Wake};
use chronorb_transport::{Interest, Reactor};

use super::{Outbox, OutboxInner, OutboxLimits};
use crate::call::Operation;
use crate::client::OnewayPath;
use crate::core::Object;
use crate::failure::because;
use crate::orb::Orb;
use crate::rtcorba::Priority;

/// A thread that sends for [outboxes](Outbox) what their peers did not take at once.
///
/// A handle; the thread ends when the last handle and the last outbox are dropped. Outboxes of
/// different priorities have threads of their own.
#[derive(Clone)]
pub struct OutboxThread(Arc<Handle>);

struct Handle {
    priority: Option<Priority>,
    registry: Arc<OutboxRegistry>,
}

/// The outboxes of a thread, and what it waits for.
struct OutboxRegistry {
    reactor: Reactor,
    stop: Wake,
    outboxes: PiMutex<HashMap<u64, Weak<OutboxInner>>>,
    next_token: AtomicU64,
}

impl OutboxThread {
    /// Starts a thread at a priority, or with ordinary scheduling.
    ///
    /// # Errors
    /// `NO_RESOURCES` where the thread cannot be started; those of a priority that has no native
    /// one, as `DATA_CONVERSION` (OMG minor 2).
    pub fn start(orb: &Orb, priority: Option<Priority>) -> Result<Self, SystemException> {
        let core = orb.core();
        core.check_running()?;
        let scheduling = priority.map(|priority| core.rt.real_time.scheduling(priority));
        let scheduling = scheduling.transpose()?.unwrap_or(Scheduling::OTHER);
        let registry = OutboxRegistry::new().map_err(|error| no_thread(&error))?;
        let registry = Arc::new(registry);
        let for_thread = registry.clone();
        let spawned = ThreadBuilder::new(format!("outbox {}", core.config.orb_id))
            .scheduling(scheduling)
            .stack_size(STACK_SIZE)
            .prefault_stack(true)
            .spawn(move || for_thread.run());
        spawned.map_err(|error| no_thread(&error))?;
        Ok(Self(Arc::new(Handle { priority, registry })))
    }

    /// Opens an outbox for a oneway operation of an object. Connects to it at the thread's priority
    /// and asks the server for the object, on the calling thread and within the time of a call.
    ///
    /// The requests have no end times, and do not wait for their server. The connection is never
    /// made again: where it has ended, the owner drops the outbox and opens another one.
    ///
    /// # Errors
    /// Those of a call. `NO_IMPLEMENT` (OMG minor 3) where encoded bodies fit no request: to a
    /// group of objects, by datagrams, and of GIOP 1.0 or 1.1. Such objects are called by
    /// [`Object::invoke_oneway`].
    pub fn open(
        &self,
        object: &Object,
        operation: &Operation,
        limits: OutboxLimits,
    ) -> Result<Outbox, SystemException> {
        let handle = &*self.0;
        let (path, head) = OnewayPath::open(object, operation, handle.priority)?;
        let inner = Arc::new(OutboxInner::new(path, head, limits));
        let registry = &handle.registry;
        let token = registry.next_token.fetch_add(1, Ordering::Relaxed);
        registry
            .outboxes
            .lock()
            .insert(token, Arc::downgrade(&inner));
        let outbox = Outbox {
            inner,
            limits,
            thread: self.clone(),
            token,
        };
        let transport = outbox.inner.path.transport();
        let added = registry.reactor.add(transport, token, Interest::ReadWrite);
        added.map_err(|error| no_thread(&error))?;
        Ok(outbox)
    }

    /// Forgets an outbox that is dropped.
    pub(super) fn forget(&self, token: u64) {
        self.0.registry.outboxes.lock().remove(&token);
    }
}

impl OutboxRegistry {
    fn new() -> io::Result<Self> {
        let (reactor, stop) = (Reactor::new()?, Wake::new()?);
        reactor.add(&stop, STOP, Interest::Everyone)?;
        Ok(Self {
            reactor,
            stop,
            outboxes: PiMutex::default(),
            next_token: AtomicU64::new(STOP + 1),
        })
    }

    fn run(&self) {
        loop {
            match self.reactor.wait(None) {
                Ok(None) => {}
                Ok(Some(event)) if event.token == STOP => return,
                Ok(Some(event)) => {
                    let outbox = self
                        .outboxes
                        .lock()
                        .get(&event.token)
                        .and_then(Weak::upgrade);
                    if let Some(outbox) = outbox {
                        outbox.on_event(event.hang_up);
                    }
                }
                // Only a bug breaks an epoll set. The callers go on sending what waits.
                Err(_) => return,
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.registry.stop.notify();
    }
}

impl fmt::Debug for OutboxThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxThread")
            .field("priority", &self.0.priority)
            .field("outboxes", &self.0.registry.outboxes.lock().len())
            .finish()
    }
}

fn no_thread(error: &dyn fmt::Display) -> SystemException {
    let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
    because(exception, format_args!("no thread for outboxes: {error}"))
}

/// The token of the wake-up that ends the thread.
const STOP: u64 = 0;
const STACK_SIZE: usize = 128 << 10;
