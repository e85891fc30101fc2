//! IP multicast, the transport of MIOP. Each message is split into packets, which every member of a
//! group receives, or misses. There are no replies.
//!
//! A [`connect`](Transport::connect)ion to a group sends only. A listener has one connection for
//! all senders, and reassembles their messages in bounded memory ([`Collections`]). Invalid packets
//! are dropped and [counted](Multicast::counts).

mod acceptor;
mod collections;
mod counts;
mod options;
mod packet;
mod receiver;
mod sender;

use std::io;
use std::sync::Arc;

use chronorb_rt::Deadline;

use self::acceptor::GroupAcceptor;
use self::sender::Sender;
use crate::{
    Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError, Setup,
    Transport,
};

pub use self::collections::{Collections, Limits};
pub use self::counts::{Counters, Counts};
pub use self::options::MulticastOptions;
pub use self::packet::{Packet, PacketError};

/// Multicast over IPv4 and IPv6.
#[derive(Clone, Debug, Default)]
pub struct Multicast {
    options: MulticastOptions,
    counters: Arc<Counters>,
}

impl Multicast {
    /// Makes a transport with these options, which endpoints may override for listening.
    pub fn new(options: MulticastOptions) -> Self {
        Self {
            options,
            counters: Arc::default(),
        }
    }

    /// Returns the statistics of the listeners.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }
}

impl Transport for Multicast {
    fn scheme(&self) -> &str {
        "miop"
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        options::group(&endpoint.address).map_err(|problem| endpoint.error(problem))?;
        self.options.with(endpoint).map(drop)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let group = options::group(&endpoint.address);
        let group = group.map_err(|problem| endpoint.error(problem))?;
        let options = self.options.with(endpoint)?;
        let acceptor = GroupAcceptor::open(group, options, setup, self.counters.clone());
        let acceptor = acceptor.map_err(|source| ListenError::Refused {
            endpoint: endpoint.to_string(),
            source,
        })?;
        Ok(vec![Box::new(acceptor)])
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        _: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let group = options::group(address)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem));
        let sender = group.and_then(|group| Sender::connect(group, &self.options, setup));
        let sender = sender.map_err(|source| ConnectError::Refused {
            address: address.to_string(),
            source,
        })?;
        Ok(Box::new(sender))
    }
}
