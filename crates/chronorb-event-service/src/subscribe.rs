//! The connection of a consumer to a channel, as its client makes it.

use chronorb::SystemException;
use chronorb::poa::{ActivateError, ObjectError};
use chronorb_events::{Filter, write_entries};
use thiserror::Error;

use crate::event::{empty_data, wire_header};
use crate::idl::chronorb_events::{QueueQOS, QueuedProxyPushSupplier, SetQueueError};
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

/// Obtains a proxy, with a queue if one is stated.
pub(crate) fn proxy_for(
    channel: &EventChannel,
    queue: Option<&QueueQOS>,
) -> Result<ProxyPushSupplier, ConnectError> {
    let nil = || ConnectError::Refused("it has no proxies".to_owned());
    let admin = channel.for_consumers()?.ok_or_else(nil)?;
    let proxy = admin.obtain_push_supplier()?.ok_or_else(nil)?;
    if let Some(queue) = queue {
        let queued = QueuedProxyPushSupplier::narrow(proxy.as_object())?;
        let none = || ConnectError::Refused("it has no queues".to_owned());
        let set = queued.ok_or_else(none)?.set_queue(queue);
        set.map_err(|error| match error {
            SetQueueError::System(exception) => exception.into(),
            error => ConnectError::Refused(error.to_string()),
        })?;
    }
    Ok(proxy)
}

/// Connects a consumer with a filter. `rt_info` is its lane, or its operation.
pub(crate) fn connect(
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
