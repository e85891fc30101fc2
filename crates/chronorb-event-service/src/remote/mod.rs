//! Remote consumers: how events reach them, whether they answer, and what they may use.
//!
//! This layer knows no interface: a service says how its consumers take events by a [`Face`].
//!
//! # Proof of an address
//! A reference can name any address. A consumer of another process gets nothing before it has
//! answered a call at its address ([`RemoteConsumer::reach`]); until then its events are held,
//! within the bounds of its client. Connecting, asking and opening of outboxes are work of the
//! threads of [`PeerCalls`], and never of a push. A consumer that does not take an event in time,
//! or whose connection has ended, is held again until it answers.
//!
//! # Loops
//! A consumer that is an object of a channel itself gets the identifiers of the channels that an
//! event has passed ([`Trail`]), in a service context of each push. A channel drops what it has
//! passed before.

mod calls;
mod consumer;
mod link;
mod share;
mod trail;

pub(crate) use calls::PeerCalls;
pub(crate) use consumer::{
    ConsumerOwner, Face, OutboxSource, PeerSettings, RemoteConsumer, STALLED, begin_push,
    has_waited, requests_ahead,
};
pub(crate) use share::OctetShare;
pub(crate) use trail::Trail;
