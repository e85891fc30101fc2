//! Remote consumers of an event service: how events reach them, whether they answer, and what they
//! may use.
//!
//! This layer knows no interface. A service describes how its consumers take events by a [`Face`],
//! and has one registry of them, [`Consumers`], to which it lends itself as a [`ConsumerService`].
//!
//! # Proof of an address
//! A reference can name any address. A consumer of another process gets nothing before it has
//! answered a call at its address; until then its events are held, within the bounds of its
//! client. Connecting, asking and opening of outboxes are work of the threads of [`PeerCalls`], and
//! never of a push. A consumer that does not take an event in time, or whose connection has ended,
//! is held again until it answers.
//!
//! # Liveness
//! [`start_links`] has consumers called whose events are held, and calls them again after a
//! failure. [`Checks`] asks idle consumers, and those that have failed, whether they exist. A
//! consumer with too many [failures](PeerPolicy::failures) is evicted by
//! [`ConsumerService::evict_consumer`], on a thread that no push waits for.
//!
//! # Loops
//! A consumer that is an object of a channel itself gets the identifiers of the channels that an
//! event has passed ([`Trail`]), in a service context of each push. A channel drops what it has
//! passed before.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod calls;
mod consumer;
mod link;
mod liveness;
mod policy;
mod registry;
mod share;
mod trail;

pub use calls::{CallRound, PeerCalls};
pub use consumer::{
    ConsumerSettings, Face, OutboxSource, RemoteConsumer, SupplierPush, begin_push, has_waited,
    requests_ahead,
};
pub use liveness::{Activity, Checks, is_unused, start_checks, start_links};
pub use policy::{ConsumerQuotas, PeerPolicy};
pub use registry::{
    ConnectedConsumer, ConsumerCounts, ConsumerRecord, ConsumerService, ConsumerState, Consumers,
    EndCause,
};
pub use share::OctetShare;
pub use trail::Trail;
