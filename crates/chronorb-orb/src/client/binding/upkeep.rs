//! The removal of connections and bindings from the tables of a thread.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use chronorb_rt::Monotonic;

use super::{BINDINGS, Binding};
use crate::client::connection::{ClientConnection, ConnectionKey, Crowds};
use crate::core::Core;
use crate::rtcorba::RebindMode;

/// Closes connections that have been idle too long: this thread's, and those that threads share.
pub(super) fn close_unused(core: &Core, now: u64, time_out: Duration) {
    if BINDINGS.try_with(|_| ()).is_err() {
        return;
    }
    let time_out = u64::try_from(time_out.as_nanos()).unwrap_or(u64::MAX);
    let is_due = BINDINGS.with_borrow_mut(|all| {
        let is_due = now >= all.next_check;
        if is_due {
            all.next_check = now.saturating_add(time_out / CHECKS);
        }
        is_due
    });
    if !is_due {
        return;
    }
    let before = now.saturating_sub(time_out);
    for connection in disposable(core) {
        if connection.last_use() <= before {
            drop_connection(&connection);
        }
    }
    core.client
        .close_unused_since(Monotonic::from_nanos(before));
}

/// Closes an idle connection, of those that threads share or else of this thread's; returns whether
/// there was one. Those to the host with the most connections go first ([`Crowds`]), and of these
/// the one that was used least recently. Exclusive connections of other threads stay.
#[cold]
pub(super) fn make_room(core: &Core) -> bool {
    if core.client.close_idlest() {
        forget_closed();
        return true;
    }
    let own = disposable(core);
    let crowds = Crowds::of(own.iter().map(|connection| &connection.way));
    let idlest = own
        .iter()
        .min_by_key(|c| (crowds.rank(&c.way), c.last_use()));
    idlest.is_some_and(|connection| {
        drop_connection(connection);
        true
    })
}

/// This thread's connections of an ORB, except for those that may not be made again.
fn disposable(core: &Core) -> Vec<Rc<ClientConnection>> {
    BINDINGS.with_borrow(|all| {
        let bindings = all.bindings.values();
        let kept: Vec<_> = bindings
            .filter(|binding| binding.rebind == RebindMode::NoReconnect)
            .map(|binding| &binding.connection)
            .collect();
        let connections = all.connections.iter();
        connections
            .filter(|(key, _)| key.orb == core.number)
            .map(|(_, connection)| connection)
            .filter(|connection| !kept.iter().any(|kept| Rc::ptr_eq(kept, connection)))
            .cloned()
            .collect()
    })
}

/// Drops a connection of this thread, with its bindings.
pub(in crate::client) fn drop_connection(connection: &Rc<ClientConnection>) {
    let is_it = |other: &Rc<ClientConnection>| Rc::ptr_eq(other, connection);
    forget_where(|binding| is_it(&binding.connection), |_, c| is_it(c));
}

/// Removes entries of this thread's tables before it makes a new connection: references that were
/// dropped elsewhere, with their private connections, connections that have ended, and those of
/// ORBs that were shut down.
pub(super) fn tidy() {
    forget_dropped();
    BINDINGS.with_borrow(|all| {
        for connection in all.connections.values() {
            // Calls may be under way on one that was retired.
            if !connection.is_closed() && connection.is_stale() {
                connection.close();
            }
        }
    });
    forget_closed();
}

/// Removes connections that have ended. Bindings that may not be made again stay, for the exception
/// of the next call.
fn forget_closed() {
    forget_where(
        |binding| binding.connection.is_closed() && binding.rebind != RebindMode::NoReconnect,
        |_, connection| connection.is_closed(),
    );
}

/// Removes the bindings of references that only this thread's table still has, and the private
/// connections that have no binding left.
#[allow(clippy::disallowed_methods, reason = "once for each connection")]
fn forget_dropped() {
    let mut held: HashMap<u64, usize> = HashMap::new();
    BINDINGS.with_borrow(|all| {
        for binding in all.bindings.values() {
            *held.entry(binding.target.number()).or_default() += 1;
        }
    });
    let is_dropped = |binding: &Binding| {
        let number = binding.target.number();
        !binding.forwarded && held.get(&number) == Some(&binding.target.handles())
    };
    forget_where(is_dropped, |_, _| false);
    forget_where(
        |_| false,
        |key, c| key.owner.is_some() && Rc::strong_count(c) == 1,
    );
}

/// Drops all connections of an ORB that this thread has.
pub(super) fn forget_orb(number: u64) {
    let is_gone = |connection: &ClientConnection| connection.orb() == Some(number);
    forget_where(|binding| is_gone(&binding.connection), |_, c| is_gone(c));
}

fn forget_where(
    binding_is_gone: impl Fn(&Binding) -> bool,
    connection_is_gone: impl Fn(&ConnectionKey, &Rc<ClientConnection>) -> bool,
) {
    if BINDINGS.try_with(|_| ()).is_err() {
        return;
    }
    let forgotten = BINDINGS.with_borrow_mut(|all| {
        let last = all.last.take();
        let bindings: Vec<_> = all
            .bindings
            .extract_if(|_, binding| binding_is_gone(binding))
            .collect();
        let connections: Vec<_> = all
            .connections
            .extract_if(|key, c| connection_is_gone(key, c))
            .collect();
        (last, bindings, connections)
    });
    // The drop may be that of an ORB, which must not find the tables borrowed.
    drop(forgotten);
}

/// The number of checks for idle connections in each idle time-out.
const CHECKS: u64 = 4;
