//! The way in which consumers of `RtecEventComm` take events.

use std::slice;
use std::sync::Arc;

use chronorb::data::AnyBuf;
use chronorb::{BodyForm, EncodedBody, Object, Operation, SystemException};
use chronorb_channel::{Consumer, PushGate};
use chronorb_consumers::{Face, RemoteConsumer, Trail};
use chronorb_events::{EVENTS_LOST, Event};

use crate::event::{Body, encode, event_with, view_of};
use crate::fan_out::{self, FanOutPlace, SharingConsumer};
use crate::idl::rtec_event_channel_admin::ProxyPushConsumer;
use crate::idl::rtec_event_comm::{self as wire, PushConsumer};

/// A consumer of `RtecEventComm`.
pub(crate) struct PushFace {
    /// The object that takes its events, for several consumers of its process.
    pub(crate) fan_out: Option<FanOutPlace>,
}

/// A consumer of the channel.
pub(crate) type PushTarget = RemoteConsumer<PushFace>;

impl Face for PushFace {
    type Body = Body;

    const PUSH: Operation = Operation::oneway("push");
    const CHANNEL: &'static str = ProxyPushConsumer::REPOSITORY_ID;

    fn encode(set: &[Event<Body>], form: BodyForm) -> Result<EncodedBody, SystemException> {
        match set {
            [event] => event.body.encoded(event, form),
            _ => encode(set, form),
        }
    }

    fn loss(number: u64) -> Event<Body> {
        let number = AnyBuf::new(&number).unwrap_or_default();
        event_with(EVENTS_LOST, number)
    }

    fn octets(body: &Body) -> usize {
        body.octets()
    }

    fn trail(body: &Body) -> &Trail {
        body.trail()
    }

    fn push(&self, to: &Object, set: &[Event<Body>]) -> Result<(), SystemException> {
        if let Some(place) = &self.fan_out {
            return place.target.push(&[place.member], set);
        }
        let consumer = PushConsumer::unchecked_narrow(to);
        if let [event] = set {
            return consumer.push(&[view_of(event)]);
        }
        let views: Vec<wire::Event<'_>> = set.iter().map(view_of).collect();
        consumer.push(&views)
    }

    fn target(&self) -> Option<Object> {
        self.fan_out.as_ref().map(|place| place.target.object())
    }
}

impl SharingConsumer for PushTarget {
    fn gate(&self) -> &PushGate {
        Self::gate(self)
    }

    fn hold(&self, event: &Event<Body>) {
        self.hold_deferred(slice::from_ref(event));
    }

    fn push_failed(&self, events: u64, cause: SystemException) {
        self.deferred_failed(events, cause);
    }
}

/// The subscription's part of a consumer.
pub(crate) struct ConsumerHandle(pub(crate) Arc<PushTarget>);

impl Consumer<Body> for ConsumerHandle {
    fn push(&self, set: &[Event<Body>]) {
        match (&self.0.face().fan_out, set) {
            (Some(place), [event]) if !self.0.has_losses() && self.0.takes_calls() => {
                fan_out::defer(self.0.clone(), place, event);
            }
            _ => {
                // What was deferred neither waits for this push, nor comes after it.
                fan_out::send_deferred();
                self.0.push(set);
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    fn lost(&self, number: u64) {
        fan_out::send_deferred();
        self.0.tell_lost(number);
    }

    fn disconnected(&self) {
        self.0.overflowed();
    }
}
