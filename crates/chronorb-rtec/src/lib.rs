//! The real-time event channel of chronorb: TAO's `RtecEventChannelAdmin`, over GIOP.
//!
//! Suppliers push events to the channel, and the channel pushes them to the consumers whose
//! subscriptions they pass. The filters, groups and timers of subscriptions are those of
//! [`chronorb_events`].
//!
//! ```no_run
//! use chronorb::prelude::*;
//! use chronorb_rtec::EventServer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = OrbConfig::read(&mut std::env::args().collect())?;
//! chronorb_rtec::keep_order(&mut config);
//! let orb = Orb::with_config(config)?;
//! let root = orb.root_poa()?;
//! // Clients reach it by `corbaloc:iiop:HOST:PORT/EventService`.
//! let service = EventServer::new().serve_in(&root)?;
//! println!("{}", orb.object_to_string(service.channel()));
//! root.manager().activate()?;
//! orb.run_until_signal()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Dispatching
//! The thread that receives an event also pushes it to the consumers, in turn. A push to a consumer
//! ends when its connection has taken the message, or after [`PeerPolicy::push_timeout`]: then the
//! events of this consumer, and those of the others that the same push has not reached, wait until
//! they have answered, so one push waits once. No push connects to a consumer. Timers have a
//! thread.
//!
//! With [lanes](ChannelOptions::lanes) each consumer has a queue with an overload policy, and the
//! thread of its lane pushes its events and fires its timers, at the priority of the lane. With
//! [outboxes](ChannelOptions::outboxes) no push waits for a consumer, and an event is encoded once
//! for all. A consumer can state its queue by `ChronorbEvents::QueuedProxyPushSupplier`, and be
//! told its losses by events of the type [`EVENTS_LOST`](chronorb_events::EVENTS_LOST).
//!
//! The events of a supplier reach a consumer in order if the ORBs have the settings of
//! [`keep_order`].
//!
//! # Admission
//! With [`EventServer::admission`] the `rt_info` of a consumer and of a publication name operations
//! with execution times and periods. A client with which a consumer could miss the period of its
//! events is refused, or reported. The analysis holds no lock and has a bound of steps, and clients
//! have shares of the streams that it counts.
//!
//! # Shared memory
//! Consumers in other processes of the host can read one [ring](EventRing), which is one consumer
//! of the channel. It writes each event once, however many cursors read it, and makes no system
//! call but one to wake readers that sleep.
//!
//! # Consumers that share messages
//! The consumers of a [`ConsumerGroup`] have subscriptions of their own, and share the messages
//! that several of them get: the channel sends an event once for all of them.
//!
//! # Channels that die
//! A [`ConsumerGroup`] and an [`EventRing`] can [watch](ConsumerGroup::watch) their channel. Its
//! consumers are told when it does not answer or has forgotten them, and subscribe again.
//!
//! # Rules
//! * A nil consumer is `BAD_PARAM`. A supplier may be nil: then it is not called back.
//! * A malformed or excessive subscription is `BAD_PARAM`, and changes nothing. Beyond the
//!   [quotas](ChannelLimits) of its client it is `IMP_LIMIT`.
//! * A consumer of another process gets no event before it has answered a call at its address.
//!   Meanwhile its events wait. To connect does not wait for that.
//! * The proxies of the channel are no consumers of it. An event that comes back through other
//!   channels of chronorb is dropped, and counted as returned. The `ttl` of an event is not
//!   changed: TAO decrements it in the gateway, and its suppliers send 0.
//! * An event with source 0 passes every filter of sources, and one with type 0 every filter of
//!   types.
//! * Events of a supplier that has not connected are ignored.
//! * A suspended consumer gets no events, and its groups keep what they have. To suspend twice, and
//!   to resume a consumer that is not suspended, is no error.
//! * After a disconnection no push begins. A proxy that is disconnected does not exist any more.
//! * Observers are told the sources and types that consumers react to, as a disjunction, and those
//!   that suppliers published. Each has a thread of its own.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod admission;
mod connect;
mod consumer;
mod event;
mod face;
mod failure;
mod fan_out;
mod group;
pub mod idl;
mod local;
mod observers;
mod options;
mod ring;
mod servants;
mod service;
mod state;
mod statistics;
mod subscribe;
mod supplier;
mod threads;
mod watch;

pub use admission::{AdmissionPolicy, OperationNeeds, OperationSource};
pub use chronorb_channel::Clock;
pub use chronorb_consumers::PeerPolicy;
pub use chronorb_events::{Filter, Limits, Notation, Overflow, Rules};
pub use group::{ConsumerGroup, ConsumerOptions, GroupCallback, GroupConsumer};
pub use local::LocalSupplier;
pub use options::{ChannelLimits, ChannelOptions, LaneOptions, QueueOptions, UnpublishedPolicy};
pub use ring::{EventRing, EventRingReader, RingDelivery, RingError, RingOptions, RingStatus};
pub use service::{EventServer, EventService, ServeError, keep_order};
pub use statistics::all_statistics;
pub use subscribe::ConnectError;
pub use watch::{ChannelChange, ChannelCheck, ChannelFinder, Reconnect, WatchOptions};
