//! Bindings that last as long as a value of the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronorb::{Object, SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Gate, SpawnError, Thread, ThreadBuilder};
use thiserror::Error;

use crate::idl::chronorb_naming::{
    LeasingContext, RebindWithLeaseErrorBuf, RenewErrorBuf, leasing_context,
};
use crate::idl::cos_naming::naming_context::{CannotProceedBuf, NotFoundBuf};
use crate::idl::cos_naming::{NameComponent, NameComponentBuf};
use crate::name::{NameTextError, name_from_text};

/// An error in binding an object for the life of a guard.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LifeError {
    /// The text is not a name.
    #[error("the name is malformed")]
    Text(#[from] NameTextError),
    /// A context of the name does not exist, or something else than an object is bound to it.
    #[error("the name cannot be bound: {:?} at component {:?}", .0.why, first(&.0.rest_of_name))]
    NotFound(NotFoundBuf),
    /// A context of the name belongs to a server that cannot be reached.
    #[error("the server of a context of the name cannot be reached")]
    CannotProceed(CannotProceedBuf),
    /// The server refuses the name.
    #[error("the server refuses the name")]
    InvalidName,
    /// The server refuses the time to live.
    #[error("the time to live is not from {} to {} seconds", .0.least, .0.greatest)]
    InvalidTimeToLive(leasing_context::InvalidTimeToLive),
    /// The server has no leases, or refuses the request.
    #[error(transparent)]
    System(#[from] SystemException),
    /// There is no thread for renewals.
    #[error("the thread that renews the lease cannot be made")]
    Thread(#[from] SpawnError),
}

fn first(rest: &[NameComponentBuf]) -> &str {
    rest.first().map_or("", |component| &component.id)
}

/// Binds an object until the guard is dropped or the program ends.
///
/// A thread renews the binding three times in each `time_to_live`, which is at least one second. If
/// the program ends without dropping the guard, the server removes the binding after that time. If
/// the server is not reached, or has lost the binding, the thread binds the object again as soon as
/// it can. The object replaces an object that is bound to the name, as an earlier run of the same
/// program has left it.
///
/// `context` should be a reference that survives a restart of the server, as that of a `corbaloc:`
/// URL.
///
/// ```no_run
/// use std::time::Duration;
/// use chronorb::prelude::*;
/// use chronorb_naming::bind_for_life;
///
/// # fn example(orb: &Orb, mixer: &Object) -> Result<(), Box<dyn std::error::Error>> {
/// let names = orb.string_to_object("corbaloc::localhost:2809/NameService")?;
/// let _bound = bind_for_life(&names, "plant/mixer.device", mixer, Duration::from_secs(30))?;
/// orb.run_until_signal()?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`LifeError`] if the server refuses the binding. A server that cannot be reached yet is no
/// error: the thread binds later, and [`LifeGuard::is_bound`] tells.
pub fn bind_for_life(
    context: &Object,
    name: &str,
    object: &Object,
    time_to_live: Duration,
) -> Result<LifeGuard, LifeError> {
    let seconds = u32::try_from(time_to_live.as_secs()).unwrap_or(u32::MAX);
    let period = Duration::from_secs(seconds.max(1).into()) / 3;
    let context = LeasingContext::unchecked_narrow(&context.with_timeout(period));
    let life = Life {
        context,
        name: name_from_text(name)?,
        object: object.clone(),
        seconds,
        lease: AtomicU64::new(NO_LEASE),
        stop: Gate::new(RUNNING),
    };
    match life.bind() {
        Ok(()) => {}
        Err(LifeError::System(exception)) if is_passing(exception) => {}
        Err(error) => return Err(error),
    }
    let life = Arc::new(life);
    let of_thread = life.clone();
    let thread = ThreadBuilder::new("naming-life").spawn(move || of_thread.run(period))?;
    let thread = Some(thread);
    Ok(LifeGuard { life, thread })
}

/// A binding that is removed when this is dropped. See [`bind_for_life`].
#[derive(Debug)]
pub struct LifeGuard {
    life: Arc<Life>,
    thread: Option<Thread<()>>,
}

impl LifeGuard {
    /// Whether the object is bound, as far as the last renewal shows.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.life.lease.load(Ordering::Relaxed) != NO_LEASE
    }
}

impl Drop for LifeGuard {
    fn drop(&mut self) {
        self.life.stop.set(STOPPED);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by its hook.
            let _ = thread.join();
        }
        let lease = self.life.lease.load(Ordering::Relaxed);
        if lease != NO_LEASE {
            // If the server is not reached, the lease ends by itself.
            let _ = self.life.context.release(&self.life.name(), lease);
        }
    }
}

#[derive(Debug)]
struct Life {
    context: LeasingContext,
    name: Vec<NameComponentBuf>,
    object: Object,
    seconds: u32,
    lease: AtomicU64,
    stop: Gate,
}

impl Life {
    fn name(&self) -> Vec<NameComponent<'_>> {
        self.name.iter().map(NameComponentBuf::as_view).collect()
    }

    fn bind(&self) -> Result<(), LifeError> {
        use RebindWithLeaseErrorBuf as Remote;
        let object = Some(&self.object);
        let bound = self
            .context
            .rebind_with_lease(&self.name(), object, self.seconds);
        let lease = bound.map_err(|error| match error {
            Remote::NotFound(error) => LifeError::NotFound(error),
            Remote::CannotProceed(error) => LifeError::CannotProceed(error),
            Remote::InvalidName(_) => LifeError::InvalidName,
            Remote::InvalidTimeToLive(error) => LifeError::InvalidTimeToLive(error),
            Remote::System(exception) => LifeError::System(exception),
        })?;
        self.lease.store(lease, Ordering::Relaxed);
        Ok(())
    }

    /// Renews the lease, and binds again if it is lost, until the guard is dropped.
    fn run(&self, period: Duration) {
        while self.stop.wait_while(RUNNING, Deadline::after(period)) == RUNNING {
            let lease = self.lease.load(Ordering::Relaxed);
            if lease != NO_LEASE && !self.is_lost(lease) {
                continue;
            }
            self.lease.store(NO_LEASE, Ordering::Relaxed);
            // If that fails, the next period tries again.
            let _ = self.bind();
        }
    }

    /// Renews a lease, and returns whether it is lost.
    fn is_lost(&self, lease: u64) -> bool {
        match self.context.renew(&self.name(), lease) {
            Ok(()) => false,
            // The server may have the binding still.
            Err(RenewErrorBuf::System(exception)) => !is_passing(exception),
            Err(_) => true,
        }
    }
}

/// Whether a server that fails so may be there later.
fn is_passing(exception: SystemException) -> bool {
    use SystemExceptionKind::{CommFailure, ObjectNotExist, Timeout, Transient};
    let passing = [CommFailure, ObjectNotExist, Timeout, Transient];
    passing.contains(&exception.kind)
}

const RUNNING: u32 = 0;
const STOPPED: u32 = 1;
/// The number of no lease; servers give numbers from 1 on.
const NO_LEASE: u64 = 0;
