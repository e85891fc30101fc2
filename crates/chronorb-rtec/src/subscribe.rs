//! The connection of a consumer to a channel, as its client makes it.

use std::time::Duration;

use chronorb::poa::{ActivateError, ObjectError};
use chronorb::{Interface, SystemException, SystemExceptionKind};
use chronorb_events::{Filter, write_entries};
use chronorb_rt::PiMutex;
use thiserror::Error;

use crate::event::{empty_data, wire_header};
use crate::idl::chronorb_events::{
    FanOutConsumer, QueueQOS, QueuedProxyPushSupplier, SetFanOutError, SetQueueError,
};
use crate::idl::rtec_event_channel_admin::{
    ConnectPushConsumerError, ConsumerQOS, Dependency, EventChannel, ProxyPushSupplier,
};
use crate::idl::rtec_event_comm::{Event, EventHeader, PushConsumer};

/// An error in connecting a consumer to a channel.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A call of the channel has failed.
    #[error("the channel refuses the consumer: {0}")]
    Channel(#[from] SystemException),
    /// The channel connects no consumer, or has no queues.
    #[error("the channel refuses the consumer: {0}")]
    Refused(String),
    /// An object of the process cannot be activated.
    #[error("the consumer cannot be activated")]
    Activate(#[from] ActivateError),
    /// An object of the process has no reference.
    #[error("the consumer has no reference")]
    Reference(#[from] ObjectError),
}

/// A consumer's subscription, which can be made more than once.
pub(crate) struct Subscription {
    pub(crate) consumer: PushConsumer,
    pub(crate) filter: Filter,
    pub(crate) queue: Option<QueueQOS>,
    /// The number of its lane, or the handle of its operation.
    pub(crate) rt_info: i32,
    /// The object that takes its events, with its number there.
    pub(crate) fan_out: Option<(FanOutConsumer, u32)>,
    pub(crate) state: PiMutex<SubscriptionState>,
}

/// The state of a subscription.
#[derive(Default)]
pub(crate) struct SubscriptionState {
    proxy: Option<ProxyPushSupplier>,
    is_suspended: bool,
    has_ended: bool,
}

impl Subscription {
    /// Subscribes, in place of the subscription before. Each call takes at most `timeout`, if there
    /// is one. After a failure nothing is left at the channel.
    pub(crate) fn make(
        &self,
        channel: &EventChannel,
        timeout: Option<Duration>,
    ) -> Result<(), ConnectError> {
        let nil = || ConnectError::Refused("it has no proxies".to_owned());
        let admin = timed(channel, timeout).for_consumers()?.ok_or_else(nil)?;
        let proxy = timed(&admin, timeout).obtain_push_supplier()?;
        let proxy = proxy.ok_or_else(nil)?;
        let called = timed(&proxy, timeout);
        self.connect(&called).inspect_err(|_| end(&called))?;
        let mut state = self.state.lock();
        let (is_suspended, has_ended) = (state.is_suspended, state.has_ended);
        let before = if has_ended {
            Some(proxy)
        } else {
            state.proxy.replace(proxy)
        };
        drop(state);
        if let Some(before) = before {
            end(&timed(&before, timeout));
        }
        if is_suspended && !has_ended {
            called.suspend_connection()?;
        }
        Ok(())
    }

    fn connect(&self, proxy: &ProxyPushSupplier) -> Result<(), ConnectError> {
        if let Some(queue) = &self.queue {
            set_queue(proxy, queue)?;
        }
        if let Some((fan_out, member)) = &self.fan_out {
            share_messages(proxy, fan_out, *member)?;
        }
        connect(proxy, &self.consumer, &self.filter, self.rt_info)
    }

    /// Asks the channel whether the subscription is gone; `None` if it was ended, or never made.
    pub(crate) fn is_gone(
        &self,
        timeout: Option<Duration>,
    ) -> Option<Result<bool, SystemException>> {
        let proxy = self.proxy()?;
        Some(timed(&proxy, timeout).as_object().non_existent())
    }

    /// Suspends the subscription, or lets it go on, also after it was made again.
    pub(crate) fn suspend(&self, is_suspended: bool) -> Result<(), SystemException> {
        self.state.lock().is_suspended = is_suspended;
        match self.proxy() {
            Some(proxy) if is_suspended => proxy.suspend_connection(),
            Some(proxy) => proxy.resume_connection(),
            None => Ok(()),
        }
    }

    pub(crate) fn proxy(&self) -> Option<ProxyPushSupplier> {
        self.state.lock().proxy.clone()
    }

    /// Ends the subscription for ever.
    pub(crate) fn end(&self) -> Result<(), SystemException> {
        let mut state = self.state.lock();
        state.has_ended = true;
        let proxy = state.proxy.take();
        drop(state);
        proxy.map_or(Ok(()), |proxy| proxy.disconnect_push_supplier())
    }
}

/// Returns an object whose calls take at most this time.
fn timed<I: Interface>(object: &I, timeout: Option<Duration>) -> I {
    match timeout {
        Some(timeout) => I::from_object(object.as_object().with_timeout(timeout)),
        None => object.clone(),
    }
}

/// Ends the connection of a proxy, whose channel may have gone.
fn end(proxy: &ProxyPushSupplier) {
    let _ = proxy.disconnect_push_supplier();
}

/// States the queue of a consumer.
fn set_queue(proxy: &ProxyPushSupplier, queue: &QueueQOS) -> Result<(), ConnectError> {
    let queued = QueuedProxyPushSupplier::narrow(proxy.as_object())?;
    let none = || ConnectError::Refused("it has no queues".to_owned());
    let set = queued.ok_or_else(none)?.set_queue(queue);
    set.map_err(|error| match error {
        SetQueueError::System(exception) => exception.into(),
        error => ConnectError::Refused(error.to_string()),
    })
}

/// Has the channel send events to the object of a group.
fn share_messages(
    proxy: &ProxyPushSupplier,
    fan_out: &FanOutConsumer,
    member: u32,
) -> Result<(), ConnectError> {
    let queued = QueuedProxyPushSupplier::narrow(proxy.as_object())?;
    let Some(queued) = queued else { return Ok(()) };
    match queued.set_fan_out(Some(fan_out), member) {
        Ok(()) => Ok(()),
        // A channel of an earlier version.
        Err(SetFanOutError::System(cause)) if cause.kind == SystemExceptionKind::BadOperation => {
            Ok(())
        }
        Err(SetFanOutError::System(cause)) => Err(cause.into()),
        Err(error) => Err(ConnectError::Refused(error.to_string())),
    }
}

/// Connects a consumer with a filter. `rt_info` is its lane, or its operation.
fn connect(
    proxy: &ProxyPushSupplier,
    consumer: &PushConsumer,
    filter: &Filter,
    rt_info: i32,
) -> Result<(), ConnectError> {
    let dependencies = write_entries(filter).into_iter().map(|entry| {
        let header = EventHeader {
            creation_time: entry.time,
            ..wire_header(entry.source, entry.event_type)
        };
        let data = empty_data();
        Dependency {
            event: Event { header, data },
            rt_info,
        }
    });
    let dependencies: Vec<_> = dependencies.collect();
    let qos = ConsumerQOS {
        dependencies: &dependencies,
        is_gateway: false,
    };
    let connected = proxy.connect_push_consumer(Some(consumer), &qos);
    connected.map_err(|error| match error {
        ConnectPushConsumerError::System(exception) => exception.into(),
        error => ConnectError::Refused(error.to_string()),
    })
}
