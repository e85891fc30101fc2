//! The servants of the channel, its factories and proxies.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb::poa::{ObjectId, Poa};
use chronorb::{Call, Interface, SystemException};
use chronorb_consumers::{EndCause, Trail};
use chronorb_events::Overflow;

use crate::connect::ConnectFailure;
use crate::consumer::ConsumerQueue;
use crate::failure::{BAD_PARAM, GONE, NOT_ALLOWED};
use crate::idl::chronorb_events::{
    ChannelStatisticsBuf, FanOutConsumer, MonitoredChannelOwnedServant, OverflowPolicy, QueueQOS,
    QueuedProxyPushSupplierOwnedServant, QueuedProxyPushSupplierSkeleton, SetFanOutError,
    SetQueueError,
};
use crate::idl::rtec_event_channel_admin::event_channel::{CantAppendObserver, CantRemoveObserver};
use crate::idl::rtec_event_channel_admin::{
    AlreadyConnected, AppendObserverError, ConnectPushConsumerError, ConnectPushSupplierError,
    ConsumerAdmin, ConsumerAdminOwnedServant, ConsumerQOS, EventChannelOwnedServant, Observer,
    ObserverHandle, ProxyPushConsumer, ProxyPushConsumerOwnedServant, ProxyPushConsumerSkeleton,
    ProxyPushSupplier, ProxyPushSupplierOwnedServant, RemoveObserverError, SupplierAdmin,
    SupplierAdminOwnedServant, SupplierQOS,
};
use crate::idl::rtec_event_comm::{
    EventSet, PushConsumer, PushConsumerOwnedServant, PushSupplier, PushSupplierOwnedServant,
};
use crate::observers::ObservedClients;
use crate::options::QueueOptions;
use crate::state::{CONSUMER_ADMIN_ID, Channel, SUPPLIER_ADMIN_ID, no_resources};
use crate::statistics::StatisticsPage;
use crate::supplier::Supplier;

/// The servant of the channel.
pub(crate) struct ChannelServant(pub(crate) Arc<Channel>);

/// The servant of both factories.
pub(crate) struct AdminServant(pub(crate) Arc<Channel>);

/// The servant of a consumer's proxy.
struct ConsumerProxy {
    channel: Arc<Channel>,
    number: u64,
}

/// The servant of a supplier's proxy.
struct SupplierProxy {
    channel: Arc<Channel>,
    number: u64,
    supplier: Arc<Supplier>,
}

fn reference<I: Interface>(poa: &Poa, id: &ObjectId) -> Result<I, SystemException> {
    let object = poa.id_to_reference(id).map_err(|_| GONE)?;
    Ok(I::from_object(object))
}

impl EventChannelOwnedServant for ChannelServant {
    fn for_consumers(&self, _: &Call<'_>) -> Result<Option<ConsumerAdmin>, SystemException> {
        let id = ObjectId::from(CONSUMER_ADMIN_ID);
        reference(&self.0.poas.channel, &id).map(Some)
    }

    fn for_suppliers(&self, _: &Call<'_>) -> Result<Option<SupplierAdmin>, SystemException> {
        let id = ObjectId::from(SUPPLIER_ADMIN_ID);
        reference(&self.0.poas.channel, &id).map(Some)
    }

    fn destroy(&self, _: &Call<'_>) -> Result<(), SystemException> {
        if !self.0.options.clients_destroy {
            return Err(NOT_ALLOWED);
        }
        self.0.destroy()
    }

    fn append_observer(
        &self,
        call: &Call<'_>,
        gw: Option<&Observer>,
    ) -> Result<ObserverHandle, AppendObserverError> {
        let observer = gw.ok_or(BAD_PARAM)?;
        let channel = &self.0;
        let timeout = channel.options.peers.check_timeout;
        channel.observers.purge();
        let place = channel.quotas.observers.charge(call.origin(), 1);
        let place = place.map_err(|_| CantAppendObserver)?;
        let clients: Weak<dyn ObservedClients> = channel.this.clone();
        let appended = channel.observers.append(observer, timeout, place, clients);
        Ok(appended.map_err(no_resources)?)
    }

    fn remove_observer(&self, _: &Call<'_>, gw: ObserverHandle) -> Result<(), RemoveObserverError> {
        if self.0.observers.remove(gw) {
            Ok(())
        } else {
            Err(CantRemoveObserver.into())
        }
    }
}

impl MonitoredChannelOwnedServant for ChannelServant {
    fn statistics(&self, _: &Call<'_>) -> Result<ChannelStatisticsBuf, SystemException> {
        Ok(self.0.statistics(StatisticsPage::FIRST))
    }

    fn statistics_after(
        &self,
        _: &Call<'_>,
        consumer: u64,
        supplier: u64,
    ) -> Result<ChannelStatisticsBuf, SystemException> {
        let page = StatisticsPage {
            consumer,
            supplier,
            most: StatisticsPage::FIRST.most,
        };
        Ok(self.0.statistics(page))
    }
}

impl ConsumerAdminOwnedServant for AdminServant {
    fn obtain_push_supplier(
        &self,
        call: &Call<'_>,
    ) -> Result<Option<ProxyPushSupplier>, SystemException> {
        let channel = &self.0;
        let poa = &channel.poas.consumers;
        let proxy = channel.add_consumer(call.origin(), |number| {
            let proxy = ConsumerProxy {
                channel: channel.clone(),
                number,
            };
            let id = channel.proxy_id(number);
            poa.activate_object_with_id(id.clone(), QueuedProxyPushSupplierSkeleton::new(proxy))
                .map_err(no_resources)?;
            reference(poa, &id)
        })?;
        Ok(Some(proxy))
    }
}

impl SupplierAdminOwnedServant for AdminServant {
    fn obtain_push_consumer(
        &self,
        call: &Call<'_>,
    ) -> Result<Option<ProxyPushConsumer>, SystemException> {
        let channel = &self.0;
        let poa = &channel.poas.suppliers;
        let proxy = channel.add_supplier(call.origin(), |number, supplier| {
            let proxy = SupplierProxy {
                channel: channel.clone(),
                number,
                supplier,
            };
            let id = channel.proxy_id(number);
            poa.activate_object_with_id(id.clone(), ProxyPushConsumerSkeleton::new(proxy))
                .map_err(no_resources)?;
            reference(poa, &id)
        })?;
        Ok(Some(proxy))
    }
}

impl PushSupplierOwnedServant for ConsumerProxy {
    fn disconnect_push_supplier(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.channel.end_consumer(self.number, EndCause::Request)
    }
}

impl ProxyPushSupplierOwnedServant for ConsumerProxy {
    fn connect_push_consumer(
        &self,
        call: &Call<'_>,
        push_consumer: Option<&PushConsumer>,
        qos: &ConsumerQOS<'_>,
    ) -> Result<(), ConnectPushConsumerError> {
        let connected = self
            .channel
            .connect_consumer(self.number, push_consumer, qos, call);
        connected.map_err(|failure| match failure {
            ConnectFailure::AlreadyConnected => AlreadyConnected.into(),
            ConnectFailure::System(exception) => exception.into(),
        })
    }

    fn suspend_connection(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.channel.set_suspended(self.number, true)
    }

    fn resume_connection(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.channel.set_suspended(self.number, false)
    }
}

impl QueuedProxyPushSupplierOwnedServant for ConsumerProxy {
    fn set_queue(&self, _: &Call<'_>, qos: &QueueQOS) -> Result<(), SetQueueError> {
        let overflow = match qos.overflow {
            OverflowPolicy::DropOldest => Overflow::DropOldest,
            OverflowPolicy::DropNewest => Overflow::DropNewest,
            OverflowPolicy::LatestByKey => Overflow::LatestByKey,
            OverflowPolicy::Block => Overflow::Block,
            OverflowPolicy::Disconnect => Overflow::Disconnect,
        };
        let queue = ConsumerQueue {
            options: QueueOptions {
                capacity: qos.capacity as usize,
                overflow,
                block: Duration::from_nanos(qos.block.saturating_mul(100)),
            },
            tells_losses: qos.tells_losses,
        };
        let set = self.channel.set_queue(self.number, queue);
        set.map_err(|failure| match failure {
            ConnectFailure::AlreadyConnected => AlreadyConnected.into(),
            ConnectFailure::System(exception) => exception.into(),
        })
    }

    fn set_fan_out(
        &self,
        _: &Call<'_>,
        target: Option<&FanOutConsumer>,
        member: u32,
    ) -> Result<(), SetFanOutError> {
        let set = self.channel.set_fan_out(self.number, target, member);
        set.map_err(|failure| match failure {
            ConnectFailure::AlreadyConnected => AlreadyConnected.into(),
            ConnectFailure::System(exception) => exception.into(),
        })
    }

    fn shortfall(&self, _: &Call<'_>) -> Result<String, SystemException> {
        self.channel.shortfall(self.number)
    }
}

impl PushConsumerOwnedServant for SupplierProxy {
    fn push(&self, call: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        let trail = Trail::from_call(call)?;
        self.channel.push(&self.supplier, data, &trail);
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        self.channel.end_supplier(self.number, EndCause::Request)
    }
}

impl ProxyPushConsumerOwnedServant for SupplierProxy {
    fn connect_push_supplier(
        &self,
        _: &Call<'_>,
        push_supplier: Option<&PushSupplier>,
        qos: &SupplierQOS<'_>,
    ) -> Result<(), ConnectPushSupplierError> {
        let connected = self
            .channel
            .connect_supplier(self.number, push_supplier, qos);
        connected.map_err(|failure| match failure {
            ConnectFailure::AlreadyConnected => AlreadyConnected.into(),
            ConnectFailure::System(exception) => exception.into(),
        })
    }
}
