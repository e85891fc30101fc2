//! The binding of an object at further addresses: after a failure, and in advance.

use chronorb_giop::{SystemException, SystemExceptionKind};
use chronorb_rt::Deadline;

#[cfg(feature = "access")]
use super::REFUSED_BY_RULES;
use super::{
    BINDINGS, Binding, BindingKey, NO_USABLE_PROFILE, Selection, TOO_MANY_CONNECTIONS,
    establish_at_any, prepare,
};
use crate::client::attempt::{Destination, may_move};
use crate::client::connection::{ChannelKind, ConnectionKey, HeartbeatPeer, NoConnection, open};
use crate::client::request;
use crate::core::Object;
use crate::failure::because;
use crate::protocol::Way;
use crate::rtcorba::FailoverPolicy;
use crate::scope;

/// Binds further calls of this thread at another address than `way`, where a call ended with an
/// exception. Returns whether there is one that can be reached, and time and budget for it.
#[cold]
#[inline(never)]
pub(in crate::client) fn fail_over(
    key: BindingKey,
    called: &Object,
    from: Destination,
    (way, exception): (&Way, SystemException),
    is_first: bool,
    deadline: Deadline,
) -> bool {
    let core = called.core();
    let Some(failover) = from.failover else {
        return false;
    };
    if deadline.has_passed() || !core.client.health.may_retry(failover.policy.retries) {
        return false;
    }
    if exception.kind == SystemExceptionKind::Timeout {
        core.suspect(way, failover.policy.suspicion);
    }
    let mut selection = Selection::default();
    if !is_first {
        selection.tried.clone_from(&failover.tried);
    }
    selection.tried.push(way.clone());
    let mut targets = vec![(from.target, from.forwarded)];
    if from.forwarded {
        targets.push((called.clone(), false));
    }
    let replicas = called.replicas().into_iter();
    targets.extend(replicas.map(|replica| (replica, true)));
    let origin = targets[0].0.clone();
    targets.retain(|(target, _)| may_move(from.rebind, &origin, target));
    establish_at_any(key, &mut targets, &mut selection, deadline).is_ok()
}

/// Connects to up to so many addresses at which the binding does not have its connection yet, for
/// fail-over.
#[cold]
pub(in crate::client) fn prepare_standbys(key: BindingKey, object: &Object, deadline: Deadline) {
    let bound = BINDINGS.with_borrow(|all| all.bindings.get(&key).cloned());
    let Some((bound, failover)) = bound.and_then(|b| Some((b.clone(), b.failover.clone()?))) else {
        return;
    };
    let mut selection = Selection {
        tried: vec![bound.connection.way.clone()],
        takes_suspects: true,
        fails_over: true,
    };
    let mut standbys = Vec::new();
    let replicas = object.replicas();
    for target in std::iter::once(&bound.target).chain(&replicas) {
        while standbys.len() < failover.policy.standbys as usize {
            let Ok(standby) = prepare(key, target.clone(), true, &mut selection, deadline) else {
                break;
            };
            let connection = standby.connection;
            connection.take_up(key.priority, u64::MAX);
            selection.tried.push(connection.way.clone());
            standbys.push(connection);
        }
    }
    drop(bound.standbys.replace(standbys));
}

/// Has the server of a binding get heartbeats, if the policy wants them and there are none yet.
#[cold]
pub(super) fn watch(
    binding: &Binding,
    key: ConnectionKey,
    policy: &FailoverPolicy,
    deadline: Deadline,
) -> Result<(), SystemException> {
    let (core, connection) = (binding.target.core(), &binding.connection);
    let heartbeats = core.client.heartbeats();
    let Some(heartbeat) = policy.heartbeat else {
        return Ok(());
    };
    if !connection.link().is_stream() || !heartbeats.lacks_peer(&connection.way) {
        return Ok(());
    }
    let own = ConnectionKey {
        kind: ChannelKind::Exclusive,
        is_watched: false,
        keeps_oneways: false,
        ..key
    };
    let opened = open(
        core,
        &own,
        (connection.text, connection.code_sets),
        (deadline, None),
    );
    let asking = opened.map_err(|none| match none {
        NoConnection::Unreachable(why) | NoConnection::Exhausted(why) => {
            because(NO_USABLE_PROFILE, format_args!("{why}"))
        }
        #[cfg(feature = "access")]
        NoConnection::Refused => REFUSED_BY_RULES,
        NoConnection::TooMany => TOO_MANY_CONNECTIONS,
        NoConnection::Exception(exception) => exception,
    })?;
    let (mut message, id) = (scope::frame(), asking.next_request_id());
    request::write_locate_request(binding, &mut message, id)?;
    let peer = HeartbeatPeer::new(asking, (message, id), heartbeat, policy);
    heartbeats.watch(core, &own, peer)
}
