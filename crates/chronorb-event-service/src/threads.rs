//! The threads of a channel: timers, and the check of clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb::{Object, SystemException, SystemExceptionKind};
use chronorb_rt::log::Level;
use chronorb_rt::{Deadline, SpawnError, Thread, ThreadBuilder};

use crate::consumer::{RemoteConsumer, STALLED};
use crate::failure::GONE;
use crate::state::{Channel, EndCause, RUNNING, counts, tell};

/// Starts the thread that opens outboxes again, and tells consumers their end.
pub(crate) fn start_links(channel: Arc<Channel>) -> Result<Thread<()>, SpawnError> {
    ThreadBuilder::new("events.links").spawn(move || {
        let mut retries = HashMap::new();
        while channel.life.get() == RUNNING {
            let seen = channel.links.get();
            tell_ends(&channel);
            retries = reopen_outboxes(&channel, &retries);
            let next = retries.values().copied().reduce(Deadline::min);
            channel
                .links
                .wait_while(seen, next.unwrap_or_else(|| Deadline::after(IDLE)));
        }
    })
}

/// Tells consumers their end that the thread of a lane has disconnected.
fn tell_ends(channel: &Channel) {
    let consumers = std::mem::take(&mut *channel.farewells.lock());
    // All calls are under way at the same time, so consumers that hang share one time limit.
    let pending = consumers
        .iter()
        .map(|it| it.begin_disconnect_push_consumer());
    let pending: Vec<_> = pending.collect();
    for call in pending.into_iter().flatten() {
        // A consumer that is not reached is disconnected all the same.
        let _ = call.wait();
    }
}

/// Opens the outboxes of consumers whose retry is due. Returns the next retries, by consumer.
///
/// A connection that is lost is opened again at once. One that was refused is due after a while,
/// and each refusal counts as a failure.
fn reopen_outboxes(channel: &Channel, retries: &HashMap<u64, Deadline>) -> HashMap<u64, Deadline> {
    let after = channel.options.peers.check_period.unwrap_or(RETRY);
    let clients = channel.clients.lock();
    let connections = clients.consumers.iter().filter_map(|(number, record)| {
        let connection = record.connection.as_ref()?;
        Some((*number, connection.consumer.clone()))
    });
    let broken: Vec<_> = connections.filter(|(_, it)| it.is_broken()).collect();
    drop(clients);
    let mut next = HashMap::new();
    for (number, consumer) in broken {
        let was_refused = consumer.failures.load(Ordering::Relaxed) > 0;
        let first = was_refused.then(|| Deadline::after(after));
        let retry = retries.get(&number).copied().or(first);
        if let Some(retry) = retry.filter(|retry| !retry.has_passed()) {
            next.insert(number, retry);
            continue;
        }
        consumer.reopen();
        if consumer.is_broken() {
            next.insert(number, Deadline::after(after));
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
            checks.run(&channel);
        }
    })
}

/// The longest wait of the thread for outboxes while there is nothing to do.
const IDLE: Duration = Duration::from_secs(3600);
/// The time between two attempts to reach a consumer, if clients are not checked.
const RETRY: Duration = Duration::from_secs(1);

/// The time after which a proxy that was never connected ends.
const UNUSED_NS: u64 = 600_000_000_000;

/// The check of all clients.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// The number of sets or events of each client at the last check.
    activity: HashMap<u64, u64>,
    losses: Losses,
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
    asked: Vec<CheckTarget>,
    /// Consumers that take nothing.
    stalled: Vec<Arc<RemoteConsumer>>,
    /// Proxies that were not connected in time, and whether they are those of consumers.
    unused: Vec<(u64, bool)>,
    /// The events that each consumer has lost.
    lost: Vec<(u64, u64)>,
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
        for client in survey.asked {
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

    fn survey(&mut self, channel: &Channel) -> Survey {
        let now = channel.clock.now();
        let is_old = |made: u64| now.saturating_sub(made) >= UNUSED_NS;
        let Survey {
            mut asked,
            mut stalled,
            mut unused,
            mut lost,
        } = Survey::default();
        let before = std::mem::take(&mut self.activity);
        let clients = channel.clients.lock();
        for (&number, record) in &clients.consumers {
            let Some(connection) = &record.connection else {
                if is_old(record.made) {
                    unused.push((number, true));
                }
                continue;
            };
            let consumer = &connection.consumer;
            let counts = counts(&connection.subscription, consumer);
            lost.push((number, counts.lost));
            if consumer.is_stalled() {
                stalled.push(consumer.clone());
                continue;
            }
            if consumer.is_broken() {
                continue;
            }
            self.activity.insert(number, counts.events);
            let has_failed = consumer.failures.load(Ordering::Relaxed) > 0;
            if !has_failed && before.get(&number) != Some(&counts.events) {
                continue;
            }
            asked.push(CheckTarget {
                number,
                object: consumer.check.as_object().clone(),
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
        Survey {
            asked,
            stalled,
            unused,
            lost,
        }
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
