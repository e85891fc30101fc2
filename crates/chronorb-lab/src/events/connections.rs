//! Connections and disconnections of many suppliers and consumers.

use std::sync::Arc;

use chronorb_rt::Monotonic;
use chronorb_rtec::idl::rtec_event_channel_admin::{ProxyPushConsumer, ProxyPushSupplier};
use serde::Serialize;

use super::plan::EventsPlan;
use super::site::{ChannelOrder, ChannelProcess, Client, Receiver, calling};
use crate::error::LabError;
use crate::watch::Watch;

/// So many suppliers and as many consumers, in one order.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionRow {
    /// The suppliers, and the consumers.
    pub each: u32,
    /// The order.
    pub order: ConnectionOrder,
    /// The time of a connection, the mean.
    pub connect_us: f64,
    /// The time of a disconnection, the mean.
    pub disconnect_us: f64,
}

/// The order of connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionOrder {
    /// All suppliers, then all consumers.
    SuppliersFirst,
    /// All consumers, then all suppliers.
    ConsumersFirst,
    /// A supplier and a consumer in turn.
    Interleaved,
}

impl ConnectionOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [
        Self::SuppliersFirst,
        Self::ConsumersFirst,
        Self::Interleaved,
    ];

    /// Returns the name in reports.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::SuppliersFirst => "suppliers first",
            Self::ConsumersFirst => "consumers first",
            Self::Interleaved => "interleaved",
        }
    }

    /// Returns the steps of a number of each: whether the step is that of a supplier.
    fn steps(self, each: u32) -> Vec<bool> {
        let each = each as usize;
        match self {
            Self::SuppliersFirst => [vec![true; each], vec![false; each]].concat(),
            Self::ConsumersFirst => [vec![false; each], vec![true; each]].concat(),
            Self::Interleaved => [true, false].repeat(each),
        }
    }
}

/// A connected client.
enum Proxy {
    Supplier(ProxyPushConsumer),
    Consumer(ProxyPushSupplier),
}

/// Measures all numbers and orders.
pub(super) fn measure(plan: &EventsPlan, watch: &Watch) -> Result<Vec<ConnectionRow>, LabError> {
    let mut rows = Vec::new();
    for each in &plan.connections {
        watch.begin(&format!("{each} suppliers and consumers connect"));
        for order in ConnectionOrder::ALL {
            rows.push(row(*each, order)?);
        }
    }
    Ok(rows)
}

fn row(each: u32, order: ConnectionOrder) -> Result<ConnectionRow, LabError> {
    let channel = ChannelProcess::start(&ChannelOrder::default())?;
    let client = Client::start(channel.reference(), None)?;
    // The first calls make the connections of the ORBs.
    client.supplier(TYPE)?;
    let steps = order.steps(each);
    let number = steps.len() as f64;
    let begin = Monotonic::now();
    let proxies = steps.into_iter().map(|is_supplier| {
        if is_supplier {
            client.supplier(TYPE).map(Proxy::Supplier)
        } else {
            let receiver = Arc::new(Receiver::default());
            client.subscribe(TYPE, 0, &receiver).map(Proxy::Consumer)
        }
    });
    let proxies = proxies.collect::<Result<Vec<_>, LabError>>()?;
    let connected = Monotonic::now();
    for proxy in proxies {
        match proxy {
            Proxy::Supplier(proxy) => proxy.disconnect_push_consumer(),
            Proxy::Consumer(proxy) => proxy.disconnect_push_supplier(),
        }
        .map_err(calling)?;
    }
    let us = |time: std::time::Duration| time.as_nanos() as f64 / 1e3 / number;
    let (connect, disconnect) = (connected.since(begin), Monotonic::now().since(connected));
    drop(client);
    channel.stop()?;
    Ok(ConnectionRow {
        each,
        order,
        connect_us: us(connect),
        disconnect_us: us(disconnect),
    })
}

const TYPE: i32 = 20;
