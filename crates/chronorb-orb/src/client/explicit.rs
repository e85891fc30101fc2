//! Explicit binding: the work of first calls is done in advance.

use chronorb_giop::{SystemException, SystemExceptionKind};
use chronorb_rt::Deadline;

use super::attempt::Attempt;
use super::binding::failover::prepare_standbys;
use super::binding::{self, BindingKey};
use super::connection::Failure;
use super::invocation::{Invocation, locate};
use super::route::onward_priority;
use super::route::{self, NoRoute, Route};
use crate::core::{BindError, Object};
use crate::rtcorba::ClientPolicy;
use crate::scope::Scope;
use crate::upcall::stays_within;

/// See [`Object::validate_connection`].
pub(crate) fn bind_explicitly(object: &Object) -> Result<(), BindError> {
    let core = object.core();
    core.check_running()?;
    let present = onward_priority(core)?;
    if object
        .key_within()
        .is_some_and(|key| stays_within(core, key, present))
    {
        return Ok(());
    }
    let profile = binding::usable_profile(object)?;
    let effective = binding::policies(object, profile).map_err(BindError::Inconsistent)?;
    let bands = effective.bands.as_ref();
    if let (Some(bands), Err(NoRoute::OutsideOfBands)) = (bands, Route::of(profile, bands, present))
    {
        let bands = ClientPolicy::PriorityBandedConnection(bands.clone());
        return Err(BindError::Inconsistent(vec![bands]));
    }
    let standbys = effective.failover.map_or(0, |policy| policy.standbys);
    let deadline = Deadline::after_nanos(object.time_out());
    let others = route::priorities(profile, bands).into_iter().map(Some);
    let others = others.filter(|priority| *priority != present);
    Scope::with(|scope| {
        std::iter::once(present)
            .chain(others.collect::<Vec<_>>())
            .try_for_each(|priority| {
                let key = BindingKey::of_calls(object, priority);
                let call = Invocation::new(key, deadline, Attempt::explicit());
                bind_one(object, call, scope)?;
                if standbys > 0 {
                    prepare_standbys(key, object, deadline);
                }
                Ok::<_, SystemException>(())
            })
    })?;
    Ok(())
}

/// Makes the connection to a group ready, whose members answer no questions.
#[cfg(feature = "miop")]
pub(crate) fn bind_group(group: &Object) -> Result<(), SystemException> {
    let mut call = Invocation::begin(group, BindingKey::of_calls)?;
    call.attempt = Attempt::explicit();
    call.bind(group).map(drop)
}

/// Binds at one priority, and asks the server whether it has the object, so that forwards are
/// followed in advance.
pub(super) fn bind_one(
    object: &Object,
    mut call: Invocation,
    scope: &mut Scope,
) -> Result<(), SystemException> {
    let mut first = true;
    loop {
        let binding = call.bind(object)?;
        let located = match locate(&binding, scope, call.deadline.get()) {
            // An earlier connection may have ended since; a second question does no harm.
            Err(Failure::Exception(e)) if first && e.kind == SystemExceptionKind::CommFailure => {
                first = false;
                Err(Failure::NotProcessed)
            }
            located => located,
        };
        if call.on_outcome(object, &binding, located)?.is_some() {
            return Ok(());
        }
    }
}
