//! The threads of a channel: the links to consumers, and the check of clients.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use chronorb::quota::Origin;
use chronorb::{Object, SystemException, SystemExceptionKind};
use chronorb_rt::log::Level;
use chronorb_rt::{Deadline, SpawnError, Thread, ThreadBuilder};

use crate::consumer::counts;
use crate::face::PushTarget;
use crate::failure::GONE;
use crate::remote::STALLED;
use crate::state::{Channel, EndCause, RUNNING, tell};

/// Starts the thread that has consumers called whose events are held.
pub(crate) fn start_links(channel: Arc<Channel>) -> Result<Thread<()>, SpawnError> {
    ThreadBuilder::new("events.links").spawn(move || {
        let mut retries = HashMap::new();
        while channel.life.get() == RUNNING {
            let seen = channel.links.get();
            retries = reach_consumers(&channel, &retries);
            let next = retries.values().copied().reduce(Deadline::min);
            channel
                .links
                .wait_while(seen, next.unwrap_or_else(|| Deadline::after(IDLE)));
        }
    })
}

/// Has the consumers called whose events are held, if their retry is due. Returns the next retries,
/// by consumer.
///
/// A consumer is called at once when it has connected or was lost. After a failure it is due after
/// a while, and each failure counts.
fn reach_consumers(
    channel: &Arc<Channel>,
    retries: &HashMap<u64, Deadline>,
) -> HashMap<u64, Deadline> {
    let clients = channel.clients.lock();
    let connections = clients.consumers.iter().filter_map(|(number, record)| {
        let connection = record.connection.as_ref()?;
        Some((*number, connection.consumer.clone()))
    });
    let held: Vec<_> = connections.filter(|(_, it)| it.is_held()).collect();
    drop(clients);
    let mut next = HashMap::new();
    for (number, consumer) in held {
        let has_failed = consumer.failures.load(Ordering::Relaxed) > 0;
        let first = has_failed.then(|| Deadline::after(RETRY));
        let retry = retries.get(&number).copied().or(first);
        if let Some(retry) = retry.filter(|retry| !retry.has_passed()) {
            next.insert(number, retry);
        } else if consumer.begin_call() {
            let channel = channel.clone();
            channel.clone().calls.post(consumer.origin(), move || {
                consumer.reach();
                consumer.end_call();
                channel.links.advance();
            });
        }
    }
    next
}

/// Starts the thread that checks clients with this period.
pub(crate) fn start_checks(
    channel: Arc<Channel>,
    period: Duration,
) -> Result<Thread<()>, SpawnError> {
    ThreadBuilder::new("events.checks").spawn(move || {
        let mut checks = Checks::default();
        while channel.life.wait_while(RUNNING, Deadline::after(period)) == RUNNING {
            checks.run(&channel, period);
        }
    })
}

/// The longest wait of the thread for links while there is nothing to do.
const IDLE: Duration = Duration::from_secs(3600);
/// The time between two attempts to reach a consumer.
const RETRY: Duration = Duration::from_secs(1);

/// The number of checks of which one also asks consumers that take events.
const BUSY_PERIOD: u64 = 6;
/// The time between two looks at the life of the channel during a check.
const LOOK: Duration = Duration::from_millis(100);
/// The time after which a proxy that was never connected ends.
const UNUSED_NS: u64 = 600_000_000_000;

/// The check of all clients.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// The number of sets or events of each client at the last check.
    activity: HashMap<u64, u64>,
    losses: Losses,
    number: u64,
}

/// The events that consumers had lost at the last check.
#[derive(Debug, Default)]
struct Losses(HashMap<u64, u64>);

impl Losses {
    /// Replaces the losses of all consumers. Returns those that grew, by consumer.
    fn renew(&mut self, lost: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
        let more = lost.iter().filter_map(|(number, lost)| {
            let before = self.0.get(number).copied().unwrap_or(0);
            let more = lost.saturating_sub(before);
            (more > 0).then_some((*number, more))
        });
        let more = more.collect();
        self.0 = lost.into_iter().collect();
        more
    }
}

/// The clients that a check is concerned with.
#[derive(Default)]
struct Survey {
    consumers: Vec<Arc<PushTarget>>,
    suppliers: Vec<CheckedSupplier>,
    /// Consumers that take nothing.
    stalled: Vec<Arc<PushTarget>>,
    /// Proxies that were not connected in time, and whether they are those of consumers.
    unused: Vec<(u64, bool)>,
    /// The events that each consumer has lost.
    lost: Vec<(u64, u64)>,
}

/// A supplier that is to be asked whether it exists.
struct CheckedSupplier {
    number: u64,
    origin: Origin,
    object: Object,
}

impl Checks {
    /// Asks clients that were idle since the last check, or have failed, whether they exist, and
    /// disconnects those that do not, or have failed too often. Busy consumers are asked at each
    /// sixth check. All are asked at the same time; waits for their answers for at most `limit`.
    pub(crate) fn run(&mut self, channel: &Arc<Channel>, limit: Duration) {
        let survey = self.survey(channel);
        for (number, events) in self.losses.renew(survey.lost) {
            let detail = format_args!("{events} since the last check");
            tell(Level::Warn, "lost events of a consumer", number, &detail);
        }
        for (number, is_consumer) in survey.unused {
            end(channel, number, is_consumer, EndCause::Unused);
        }
        for consumer in survey.stalled {
            consumer.failed(STALLED);
        }
        // Sent, or dropped with the call, at the end of each.
        let (ended, ends) = mpsc::channel::<()>();
        for consumer in survey.consumers {
            if consumer.begin_call() {
                let ended = ended.clone();
                channel.calls.post(consumer.origin(), move || {
                    match consumer.ask() {
                        Ok(_) => consumer.answered(),
                        Err(cause) => consumer.failed(cause),
                    }
                    consumer.end_call();
                    drop(ended);
                });
            }
        }
        for supplier in survey.suppliers {
            let (ended, channel) = (ended.clone(), channel.clone());
            channel.clone().calls.post(supplier.origin, move || {
                supplier_answered(&channel, supplier.number, exists(&supplier.object));
                drop(ended);
            });
        }
        drop(ended);
        let until = Instant::now() + limit;
        while channel.life.get() == RUNNING {
            let left = until.saturating_duration_since(Instant::now());
            match ends.recv_timeout(left.min(LOOK)) {
                Err(mpsc::RecvTimeoutError::Timeout) if left > LOOK => {}
                _ => return,
            }
        }
    }

    fn survey(&mut self, channel: &Channel) -> Survey {
        let now = channel.clock.now();
        let is_old = |made: u64| now.saturating_sub(made) >= UNUSED_NS;
        let mut survey = Survey::default();
        self.number += 1;
        let asks_busy = self.number.is_multiple_of(BUSY_PERIOD);
        let before = std::mem::take(&mut self.activity);
        let mut clients = channel.clients.lock();
        for (&number, record) in &clients.consumers {
            let Some(connection) = &record.connection else {
                if is_old(record.made) {
                    survey.unused.push((number, true));
                }
                continue;
            };
            let consumer = &connection.consumer;
            let counts = counts(&connection.subscription, consumer);
            survey.lost.push((number, counts.lost));
            if consumer.is_stalled() {
                survey.stalled.push(consumer.clone());
                continue;
            }
            if consumer.is_held() {
                continue;
            }
            self.activity.insert(number, counts.events);
            let has_failed = consumer.failures.load(Ordering::Relaxed) > 0;
            if asks_busy || has_failed || before.get(&number) == Some(&counts.events) {
                survey.consumers.push(consumer.clone());
            }
        }
        for (&number, record) in &mut clients.suppliers {
            let Some(connection) = &record.connection else {
                if is_old(record.made) {
                    survey.unused.push((number, false));
                }
                continue;
            };
            let events = record.supplier.events.load(Ordering::Relaxed);
            self.activity.insert(number, events);
            if before.get(&number) == Some(&events)
                && let Some(reference) = &connection.reference
                && !std::mem::replace(&mut record.is_being_asked, true)
            {
                survey.suppliers.push(CheckedSupplier {
                    number,
                    origin: record.place.origin(),
                    object: reference.as_object().clone(),
                });
            }
        }
        survey
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
    let mut clients = channel.clients.lock();
    let Some(record) = clients.suppliers.get_mut(&number) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_losses_since_the_last_check_are_told() {
        let mut losses = Losses::default();
        assert_eq!(losses.renew(vec![(1, 0), (2, 7)]), [(2, 7)]);
        assert_eq!(losses.renew(vec![(1, 1), (2, 7)]), [(1, 1)]);
        assert_eq!(losses.renew(vec![(2, 10), (3, 2)]), [(2, 3), (3, 2)]);
        assert_eq!(losses.0.len(), 2, "those that have ended are forgotten");
    }
}
