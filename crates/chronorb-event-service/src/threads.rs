//! The threads of a channel: timers, and the check of clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb::{Object, SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Monotonic, SpawnError, Thread, ThreadBuilder};

use crate::failure::GONE;
use crate::state::{Channel, EndCause, RUNNING};

/// Starts the thread that fires timers, by the clock of the system.
pub(crate) fn start_timers(channel: Arc<Channel>) -> Result<Thread<()>, SpawnError> {
    ThreadBuilder::new("events.timers").spawn(move || {
        while channel.life.get() == RUNNING {
            let seen = channel.timers.get();
            let deadline = match channel.dispatch.next_due() {
                Some(due) => Deadline::at(Monotonic::from_nanos(due)),
                None => Deadline::after(IDLE),
            };
            if channel.timers.wait_while(seen, deadline) == seen {
                channel.dispatch.expire();
            }
        }
    })
}

/// Starts the thread that checks clients with this period.
pub(crate) fn start_checks(
    channel: Arc<Channel>,
    period: Duration,
) -> Result<Thread<()>, SpawnError> {
    ThreadBuilder::new("events.checks").spawn(move || {
        let mut checks = Checks::default();
        while channel.life.wait_while(RUNNING, Deadline::after(period)) == RUNNING {
            checks.run(&channel);
        }
    })
}

/// The longest wait of the timers' thread between two looks at the timers.
const IDLE: Duration = Duration::from_secs(3600);

/// The time after which a proxy that was never connected ends.
const UNUSED_NS: u64 = 600_000_000_000;

/// The check of all clients.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// The number of sets or events of each client at the last check.
    activity: HashMap<u64, u64>,
}

/// A client that is to be asked whether it exists.
struct CheckTarget {
    number: u64,
    object: Object,
    is_consumer: bool,
}

impl Checks {
    /// Asks clients that were idle since the last check, or have failed, whether they exist, and
    /// disconnects those that do not, or have failed too often.
    pub(crate) fn run(&mut self, channel: &Channel) {
        let (asked, unused) = self.survey(channel);
        for (number, is_consumer) in unused {
            end(channel, number, is_consumer, EndCause::Unused);
        }
        for client in asked {
            if channel.life.get() != RUNNING {
                return;
            }
            let answer = exists(&client.object);
            if client.is_consumer {
                consumer_answered(channel, client.number, answer);
            } else {
                supplier_answered(channel, client.number, answer);
            }
        }
    }

    /// Returns the clients to ask, and the proxies that were not connected in time.
    fn survey(&mut self, channel: &Channel) -> (Vec<CheckTarget>, Vec<(u64, bool)>) {
        let now = channel.clock.now();
        let is_old = |made: u64| now.saturating_sub(made) >= UNUSED_NS;
        let (mut asked, mut unused) = (Vec::new(), Vec::new());
        let before = std::mem::take(&mut self.activity);
        let clients = channel.clients.lock();
        for (&number, record) in &clients.consumers {
            let Some(connection) = &record.connection else {
                if is_old(record.made) {
                    unused.push((number, true));
                }
                continue;
            };
            let counts = channel.counts(connection.id, &connection.consumer);
            self.activity.insert(number, counts.events);
            let has_failed = connection.consumer.failures.load(Ordering::Relaxed) > 0;
            if !has_failed && before.get(&number) != Some(&counts.events) {
                continue;
            }
            asked.push(CheckTarget {
                number,
                object: connection.consumer.check.as_object().clone(),
                is_consumer: true,
            });
        }
        for (&number, record) in &clients.suppliers {
            let Some(connection) = &record.connection else {
                if is_old(record.made) {
                    unused.push((number, false));
                }
                continue;
            };
            let events = record.supplier.events.load(Ordering::Relaxed);
            self.activity.insert(number, events);
            if before.get(&number) == Some(&events)
                && let Some(reference) = &connection.reference
            {
                asked.push(CheckTarget {
                    number,
                    object: reference.as_object().clone(),
                    is_consumer: false,
                });
            }
        }
        (asked, unused)
    }
}

/// Asks a client whether it exists.
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

fn consumer_answered(channel: &Channel, number: u64, answer: Answer) {
    let clients = channel.clients.lock();
    let record = clients.consumers.get(&number);
    let connection = record.and_then(|record| record.connection.as_ref());
    let consumer = connection.map(|connection| connection.consumer.clone());
    drop(clients);
    match (consumer, answer) {
        (Some(consumer), Ok(())) => consumer.answered(),
        (Some(consumer), Err(cause)) => consumer.failed(cause),
        (None, _) => {}
    }
}

fn supplier_answered(channel: &Channel, number: u64, answer: Answer) {
    let mut clients = channel.clients.lock();
    let Some(record) = clients.suppliers.get_mut(&number) else {
        return;
    };
    let Err(cause) = answer else {
        record.failures = 0;
        return;
    };
    record.failures += 1;
    let is_gone = cause.kind == SystemExceptionKind::ObjectNotExist;
    let is_over = is_gone || record.failures >= channel.options.peers.failures;
    drop(clients);
    if is_over {
        end(channel, number, false, EndCause::Failure(cause));
    }
}

fn end(channel: &Channel, number: u64, is_consumer: bool, cause: EndCause) {
    // The client may have ended it meanwhile.
    let _ = if is_consumer {
        channel.end_consumer(number, cause)
    } else {
        channel.end_supplier(number, cause)
    };
}
