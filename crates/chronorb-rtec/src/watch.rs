//! Consumers whose channel may die: they are told, and can subscribe again.
//!
//! A channel that is killed says nothing, and a consumer that makes no calls does not notice. So a
//! thread asks the proxy of the consumer regularly whether it exists. A channel that was started
//! again does not have it, because object ids of proxies have random codes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chronorb::{SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Gate, SpawnError, ThreadBuilder};

use crate::idl::rtec_event_channel_admin::EventChannel;
use crate::subscribe::{ConnectError, Subscription};

/// The options of consumers that watch their channel.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The time between two questions to the channel.
    pub period: Duration,
    /// The longest wait for an answer of the channel.
    pub timeout: Duration,
    /// The treatment of a subscription that is lost.
    pub reconnect: Reconnect,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            timeout: Duration::from_secs(2),
            reconnect: Reconnect::default(),
        }
    }
}

/// The treatment of a subscription that is lost.
#[derive(Clone, Default)]
pub enum Reconnect {
    /// The consumer is told only.
    No,
    /// The consumer subscribes again by the reference of the channel that it has, as a `corbaloc`
    /// URL, or one of a channel that is always started at the same address.
    #[default]
    Same,
    /// The consumer subscribes again at the channel that a function finds, as by a naming service.
    Found(ChannelFinder),
}

/// A function that finds a channel.
pub type ChannelFinder = Arc<dyn Fn() -> Result<EventChannel, ConnectError> + Send + Sync>;

impl fmt::Debug for Reconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "No",
            Self::Same => "Same",
            Self::Found(_) => "Found",
        })
    }
}

/// A change in the connection of a consumer to its channel.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChannelChange {
    /// The channel does not answer. Events may be lost.
    Silent(SystemException),
    /// The channel answers again, and still has the consumer.
    Answers,
    /// The channel does not have the consumer any more: it was started again, or has ended the
    /// subscription.
    Forgotten,
    /// The channel is reached, and does not let the consumer subscribe again. It is tried further,
    /// and told once.
    Refused(ConnectError),
    /// The consumer has subscribed again. What was pushed meanwhile is lost.
    Subscribed,
}

impl fmt::Display for ChannelChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(exception) => write!(f, "the channel does not answer: {exception}"),
            Self::Answers => f.write_str("the channel answers again, and has the consumer"),
            Self::Forgotten => f.write_str("the channel does not have the consumer any more"),
            Self::Refused(error) => error.fmt(f),
            Self::Subscribed => f.write_str("the consumer has subscribed again"),
        }
    }
}

/// The state of a consumer at its channel, by the answers of its proxy. For consumers that are
/// connected by the interfaces of the IDL; a [`ConsumerGroup`](crate::ConsumerGroup) and an
/// [`EventRing`](crate::EventRing) have a `watch`.
///
/// # Example
/// ```no_run
/// # use chronorb_rtec::ChannelCheck;
/// # use chronorb_rtec::idl::rtec_event_channel_admin::ProxyPushSupplier;
/// # fn connect() -> Option<ProxyPushSupplier> { None }
/// # fn example(mut proxy: ProxyPushSupplier) {
/// let mut check = ChannelCheck::default();
/// loop {
///     std::thread::sleep(std::time::Duration::from_secs(1));
///     if let Some(change) = check.heard(proxy.as_object().non_existent()) {
///         println!("{change}");
///     }
///     if check.is_lost()
///         && let Some(new) = connect()
///     {
///         (proxy, check) = (new, ChannelCheck::default());
///     }
/// }
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ChannelCheck {
    /// The failures in a row.
    failures: u32,
    loss: Loss,
    /// Whether a refusal was told.
    is_refused: bool,
}

/// The loss of a subscription.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Loss {
    #[default]
    None,
    /// The channel does not answer. It may still have the consumer.
    Silent,
    Forgotten,
}

impl ChannelCheck {
    /// Takes an answer of the proxy to `non_existent`. Returns the change that it shows.
    ///
    /// A channel is silent after two failures in a row.
    pub fn heard(&mut self, answer: Result<bool, SystemException>) -> Option<ChannelChange> {
        match answer {
            Ok(false) => {
                let before = std::mem::take(self).loss;
                (before != Loss::None).then_some(ChannelChange::Answers)
            }
            Ok(true) if self.loss == Loss::Forgotten => None,
            Ok(true) => {
                self.loss = Loss::Forgotten;
                Some(ChannelChange::Forgotten)
            }
            Err(exception) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures < SILENT || self.loss != Loss::None {
                    return None;
                }
                self.loss = Loss::Silent;
                Some(ChannelChange::Silent(exception))
            }
        }
    }

    /// Whether the channel is silent, or does not have the consumer.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.loss != Loss::None
    }

    /// Takes the result of subscribing again. Returns the change that it shows.
    fn tried(&mut self, result: Result<(), ConnectError>) -> Option<ChannelChange> {
        match result {
            Ok(()) => {
                *self = Self::default();
                Some(ChannelChange::Subscribed)
            }
            Err(error) if self.is_refused || unreached(&error).is_some() => None,
            Err(error) => {
                self.is_refused = true;
                Some(ChannelChange::Refused(error))
            }
        }
    }
}

/// Returns the exception of a channel that was not reached.
fn unreached(error: &ConnectError) -> Option<SystemException> {
    use SystemExceptionKind::{CommFailure, Timeout, Transient};
    match error {
        ConnectError::Channel(exception) => {
            let is_unreached = matches!(exception.kind, CommFailure | Timeout | Transient);
            is_unreached.then_some(*exception)
        }
        _ => None,
    }
}

/// A round of questions. A channel that one consumer has not reached is not asked for the others,
/// so a round takes no longer for many consumers.
pub(crate) struct WatchRound<'w> {
    options: &'w WatchOptions,
    channel: &'w EventChannel,
    /// The channel that was found.
    found: Option<EventChannel>,
    /// The failure of a question.
    silence: Option<SystemException>,
    /// The failure of subscribing again.
    refusal: Option<SystemException>,
}

impl<'w> WatchRound<'w> {
    pub(crate) fn new(options: &'w WatchOptions, channel: &'w EventChannel) -> Self {
        Self {
            options,
            channel,
            found: None,
            silence: None,
            refusal: None,
        }
    }

    /// Asks the channel for a subscription, and makes it again if it is lost. Returns whether it is
    /// lost.
    pub(crate) fn check(
        &mut self,
        subscription: &Subscription,
        check: &mut ChannelCheck,
        mut tell: impl FnMut(&ChannelChange),
    ) -> bool {
        let timeout = Some(self.options.timeout);
        let answer = match self.silence {
            Some(exception) => Err(exception),
            None => match subscription.is_gone(timeout) {
                Some(answer) => answer,
                None => return false,
            },
        };
        self.silence = answer.err();
        if let Some(change) = check.heard(answer) {
            tell(&change);
        }
        if !check.is_lost() || matches!(self.options.reconnect, Reconnect::No) {
            return check.is_lost();
        }
        let result = match self.refusal {
            Some(exception) => Err(exception.into()),
            None => self.find().and_then(|it| subscription.make(&it, timeout)),
        };
        self.refusal = result.as_ref().err().and_then(unreached);
        if let Some(change) = check.tried(result) {
            tell(&change);
        }
        check.is_lost()
    }

    fn find(&mut self) -> Result<EventChannel, ConnectError> {
        if let Some(found) = &self.found {
            return Ok(found.clone());
        }
        let found = match &self.options.reconnect {
            Reconnect::Found(find) => find()?,
            Reconnect::No | Reconnect::Same => self.channel.clone(),
        };
        Ok(self.found.insert(found).clone())
    }
}

/// A thread that watches a channel. Dropping it ends the thread after its present question.
pub(crate) struct ChannelWatch(Arc<Gate>);

impl ChannelWatch {
    /// Starts a thread that calls `round` in each period.
    pub(crate) fn start(
        period: Duration,
        mut round: impl FnMut() + Send + 'static,
    ) -> Result<Self, SpawnError> {
        let gate = Arc::new(Gate::new(RUNNING));
        let end = gate.clone();
        // It is not joined, because it may be the one that drops this.
        ThreadBuilder::new("events.watch").spawn(move || {
            while end.wait_while(RUNNING, Deadline::after(period)) == RUNNING {
                round();
            }
        })?;
        Ok(Self(gate))
    }
}

impl Drop for ChannelWatch {
    fn drop(&mut self) {
        self.0.set(ENDED);
    }
}

/// The failures in a row after which a channel is silent. One call may fail by an accident.
const SILENT: u32 = 2;
const RUNNING: u32 = 0;
const ENDED: u32 = 1;

#[cfg(test)]
mod tests {
    use chronorb::CompletionStatus;

    use super::*;

    const DEAD: SystemException =
        SystemException::new(SystemExceptionKind::Transient, 1, CompletionStatus::No);

    fn shown(change: Option<ChannelChange>) -> String {
        change.map_or_else(String::new, |change| change.to_string())
    }

    #[test]
    fn one_failure_is_an_accident_and_two_are_silence() {
        let mut check = ChannelCheck::default();
        assert_eq!(shown(check.heard(Err(DEAD))), "");
        assert_eq!(shown(check.heard(Ok(false))), "");
        assert_eq!(shown(check.heard(Err(DEAD))), "");
        assert!(!check.is_lost());
        let silent = shown(check.heard(Err(DEAD)));
        assert!(silent.starts_with("the channel does not answer: "));
        assert!(check.is_lost());
        assert_eq!(shown(check.heard(Err(DEAD))), "", "told once");
        let again = shown(check.heard(Ok(false)));
        assert_eq!(again, "the channel answers again, and has the consumer");
        assert!(!check.is_lost());
    }

    #[test]
    fn a_channel_that_has_forgotten_is_told_at_once_and_a_refusal_once() {
        let mut check = ChannelCheck::default();
        let forgotten = "the channel does not have the consumer any more";
        assert_eq!(shown(check.heard(Ok(true))), forgotten);
        assert_eq!(shown(check.heard(Ok(true))), "");
        assert_eq!(shown(check.tried(Err(DEAD.into()))), "", "it is silent");
        let refused = || Err(ConnectError::Refused("it is full".to_owned()));
        let expected = "the channel refuses the consumer: it is full";
        assert_eq!(shown(check.tried(refused())), expected);
        assert_eq!(shown(check.tried(refused())), "");
        let again = "the consumer has subscribed again";
        assert_eq!(shown(check.tried(Ok(()))), again);
        assert!(!check.is_lost());
        assert_eq!(shown(check.heard(Ok(true))), forgotten, "of the next one");
    }
}
