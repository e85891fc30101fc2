//! The check of clients: consumers, and suppliers that are called back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb::quota::Origin;
use chronorb::{Object, SystemException, SystemExceptionKind};
use chronorb_consumers::{Activity, CallRound, Checks, EndCause, is_unused};

use crate::failure::GONE;
use crate::state::Channel;

/// Asks clients that were idle since the last check, or have failed, whether they exist, and
/// disconnects those that do not, or have failed too often.
pub(crate) fn check(checks: &mut Checks, channel: &Arc<Channel>, limit: Duration) {
    checks.run(channel, limit, |activity, round| {
        check_suppliers(channel, activity, round);
    });
}

/// A supplier that is to be asked whether it exists.
struct CheckedSupplier {
    number: u64,
    origin: Origin,
    object: Object,
}

fn check_suppliers(channel: &Arc<Channel>, activity: &mut Activity, round: &CallRound<'_>) {
    let now = channel.clock.now();
    let (mut unused, mut asked) = (Vec::new(), Vec::new());
    for (&number, record) in &mut channel.suppliers.lock().by_number {
        let Some(connection) = &record.connection else {
            if is_unused(now, record.made) {
                unused.push(number);
            }
            continue;
        };
        let events = record.supplier.events.load(Ordering::Relaxed);
        if activity.is_idle(number, events)
            && let Some(reference) = &connection.reference
            && !std::mem::replace(&mut record.is_being_asked, true)
        {
            asked.push(CheckedSupplier {
                number,
                origin: record.place.origin(),
                object: reference.as_object().clone(),
            });
        }
    }
    for number in unused {
        // The client may have ended it meanwhile.
        let _ = channel.end_supplier(number, EndCause::Unused);
    }
    for supplier in asked {
        let channel = channel.clone();
        round.post(supplier.origin, move || {
            supplier_answered(&channel, supplier.number, exists(&supplier.object));
        });
    }
}

/// Asks a supplier whether it exists.
///
/// # Errors
/// The exception of a client that does not, or that is not reached.
fn exists(object: &Object) -> Answer {
    use SystemExceptionKind::{CommFailure, ObjectNotExist, Timeout, Transient};
    let failures = [CommFailure, ObjectNotExist, Timeout, Transient];
    match object.non_existent() {
        Ok(false) => Ok(()),
        Ok(true) => Err(GONE),
        Err(exception) if failures.contains(&exception.kind) => Err(exception),
        // The client is there, and refuses the question.
        Err(_) => Ok(()),
    }
}

/// The answer of a client, or the exception of one that does not exist or is not reached.
type Answer = Result<(), SystemException>;

fn supplier_answered(channel: &Channel, number: u64, answer: Answer) {
    let mut suppliers = channel.suppliers.lock();
    let Some(record) = suppliers.by_number.get_mut(&number) else {
        return;
    };
    record.is_being_asked = false;
    let Err(cause) = answer else {
        record.failures = 0;
        return;
    };
    record.failures += 1;
    let is_gone = cause.kind == SystemExceptionKind::ObjectNotExist;
    let is_over = is_gone || record.failures >= channel.options.peers.failures;
    drop(suppliers);
    if is_over {
        // The client may have ended it meanwhile.
        let _ = channel.end_supplier(number, EndCause::Failure(cause));
    }
}
