//! The calls of consumers whose events are held, and the checks of clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::log::{self, Level, Limit};
use chronorb_rt::{Deadline, SpawnError, Thread, ThreadBuilder};

use crate::calls::CallRound;
use crate::consumer::{RemoteConsumer, STALLED};
use crate::registry::{ConsumerService, EndCause, RUNNING};

/// Starts the thread that has consumers called whose events are held. It ends when the registry is
/// [stopped](crate::Consumers::stop).
///
/// # Errors
/// There is no thread.
pub fn start_links<S: ConsumerService>(service: Arc<S>) -> Result<Thread<()>, SpawnError> {
    ThreadBuilder::new("events.links").spawn(move || {
        let consumers = service.consumers();
        let mut retries = HashMap::new();
        while consumers.life.get() == RUNNING {
            let seen = consumers.links.get();
            retries = reach_consumers(&service, &retries);
            let next = retries.values().copied().reduce(Deadline::min);
            let next = next.unwrap_or_else(|| Deadline::after(IDLE));
            consumers.links.wait_while(seen, next);
        }
    })
}

/// Has the consumers called whose events are held, if their retry is due. Returns the next retries,
/// by consumer.
///
/// A consumer is called at once when it has connected or was lost. After a failure it is due after
/// a while, and each failure counts.
fn reach_consumers<S: ConsumerService>(
    service: &Arc<S>,
    retries: &HashMap<u64, Deadline>,
) -> HashMap<u64, Deadline> {
    let consumers = service.consumers();
    let mut held = Vec::new();
    consumers.visit(0, usize::MAX, |number, record| {
        if let Some(connection) = record.connection()
            && connection.consumer.is_held()
        {
            held.push((number, connection.consumer.clone()));
        }
    });
    let mut next = HashMap::new();
    for (number, consumer) in held {
        let has_failed = consumer.failures() > 0;
        let first = has_failed.then(|| Deadline::after(RETRY));
        let retry = retries.get(&number).copied().or(first);
        if let Some(retry) = retry.filter(|retry| !retry.has_passed()) {
            next.insert(number, retry);
        } else if consumer.begin_call() {
            let service = service.clone();
            consumers.calls().post(consumer.origin(), move || {
                consumer.reach();
                consumer.end_call();
                service.consumers().links.advance();
            });
        }
    }
    next
}

/// Starts the thread that has the clients of a service checked by `check` with this period, which
/// is also the limit of a check. It ends when the registry is [stopped](crate::Consumers::stop).
///
/// # Errors
/// There is no thread.
pub fn start_checks<S: ConsumerService>(
    service: Arc<S>,
    period: Duration,
    check: impl Fn(&mut Checks, &Arc<S>, Duration) + Send + 'static,
) -> Result<Thread<()>, SpawnError> {
    ThreadBuilder::new("events.checks").spawn(move || {
        let mut checks = Checks::default();
        let life = &service.consumers().life;
        while life.wait_while(RUNNING, Deadline::after(period)) == RUNNING {
            check(&mut checks, &service, period);
        }
    })
}

/// The regular check of clients.
#[derive(Debug, Default)]
pub struct Checks {
    activity: Activity,
    losses: Losses,
    number: u64,
}

/// The activity of clients between checks.
#[derive(Debug, Default)]
pub struct Activity {
    /// The counts of clients at the last check.
    before: HashMap<u64, u64>,
    present: HashMap<u64, u64>,
}

impl Activity {
    /// Whether a client has this count since the last check.
    pub fn is_idle(&mut self, number: u64, count: u64) -> bool {
        self.present.insert(number, count);
        self.before.get(&number) == Some(&count)
    }

    /// Forgets clients that were not seen since the last check.
    fn begin(&mut self) {
        self.before = std::mem::take(&mut self.present);
    }
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

/// The consumers that a check is concerned with.
struct Survey<S: ConsumerService> {
    asked: Vec<Arc<RemoteConsumer<S::Face>>>,
    /// Consumers that take nothing.
    stalled: Vec<Arc<RemoteConsumer<S::Face>>>,
    /// Proxies that were not connected in time.
    unused: Vec<u64>,
    /// The events that each consumer has lost.
    lost: Vec<(u64, u64)>,
}

impl Checks {
    /// Asks consumers that were idle since the last check, or have failed, whether they exist, and
    /// has those evicted that do not, or have failed too often. Busy consumers are asked at each
    /// sixth check. Proxies that were not connected within ten minutes are removed.
    ///
    /// `others` adds the questions of the other clients of the service. All are asked at the same
    /// time; waits for their answers for at most `limit`.
    pub fn run<S: ConsumerService>(
        &mut self,
        service: &Arc<S>,
        limit: Duration,
        others: impl FnOnce(&mut Activity, &CallRound<'_>),
    ) {
        self.activity.begin();
        let survey = self.survey(service);
        for (number, events) in self.losses.renew(survey.lost) {
            log::tell(&log::Event {
                level: Level::Warn,
                cause: "lost events of a consumer",
                peer: &number,
                number: 0,
                detail: &format_args!("{events} since the last check"),
                limit: Limit::PEER,
            });
        }
        for number in survey.unused {
            service.evict_consumer(number, EndCause::Unused);
        }
        for consumer in survey.stalled {
            consumer.failed(STALLED);
        }
        let round = service.consumers().calls().round();
        for consumer in survey.asked {
            if consumer.begin_call() {
                round.post(consumer.origin(), move || {
                    match consumer.ask() {
                        Ok(_) => consumer.answered(),
                        Err(cause) => consumer.failed(cause),
                    }
                    consumer.end_call();
                });
            }
        }
        others(&mut self.activity, &round);
        round.wait(limit);
    }

    fn survey<S: ConsumerService>(&mut self, service: &Arc<S>) -> Survey<S> {
        let consumers = service.consumers();
        let now = consumers.now();
        let mut survey = Survey {
            asked: Vec::new(),
            stalled: Vec::new(),
            unused: Vec::new(),
            lost: Vec::new(),
        };
        self.number += 1;
        let asks_busy = self.number.is_multiple_of(BUSY_PERIOD);
        consumers.visit(0, usize::MAX, |number, record| {
            let Some(connection) = record.connection() else {
                if is_unused(now, record.made) {
                    survey.unused.push(number);
                }
                return;
            };
            let consumer = &connection.consumer;
            let counts = connection.counts();
            survey.lost.push((number, counts.lost));
            if consumer.is_stalled() {
                survey.stalled.push(consumer.clone());
                return;
            }
            if consumer.is_held() {
                return;
            }
            let is_idle = self.activity.is_idle(number, counts.events);
            if asks_busy || is_idle || consumer.failures() > 0 {
                survey.asked.push(consumer.clone());
            }
        });
        survey
    }
}

/// Whether a proxy that was made at this time, and is not connected now, is to be removed.
pub fn is_unused(now: u64, made: u64) -> bool {
    now.saturating_sub(made) >= UNUSED_NS
}

/// The longest wait of the thread for links while there is nothing to do.
const IDLE: Duration = Duration::from_secs(3600);
/// The time between two attempts to reach a consumer.
const RETRY: Duration = Duration::from_secs(1);
/// The number of checks of which one also asks consumers that take events.
const BUSY_PERIOD: u64 = 6;
/// The time after which a proxy that was never connected ends.
const UNUSED_NS: u64 = 600_000_000_000;

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
