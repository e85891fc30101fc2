//! Events: on the wire, and in the channel.

use std::slice;
use std::sync::{Arc, OnceLock};

use chronorb::data::{Any, AnyBuf, CdrError};
use chronorb::{BodyForm, EncodedBody, SystemException};
use chronorb_consumers::Trail;
use chronorb_events::{EVENTS_LOST, Entry, Event, Header};

use crate::failure::NO_MEMORY;
use crate::idl::rtec_event_comm::{self as wire, EventHeader, RtecEventData, RtecEventDataBuf};

/// The part of an event that the channel carries without looking at it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body(Option<Arc<EventBody>>);

#[derive(Debug)]
struct EventBody {
    /// The channels that the event has passed.
    trail: Trail,
    recv_time: u64,
    send_time: u64,
    data: RtecEventDataBuf,
    /// The argument of a push of the event alone, in the form of the first consumer.
    encoded: OnceLock<EncodedBody>,
}

impl Body {
    /// The octets that the event keeps beside its header.
    pub(crate) fn octets(&self) -> usize {
        let Some(carried) = &self.0 else { return 0 };
        // It may be encoded as well, but then the others have it in common.
        let value = carried.data.any_value.octets().unwrap_or(0);
        size_of::<EventBody>() + carried.data.payload.len() + value
    }

    /// The channels that the event has passed.
    pub(crate) fn trail(&self) -> &Trail {
        static NONE: Trail = Trail::new();
        self.0.as_ref().map_or(&NONE, |carried| &carried.trail)
    }

    /// Returns whether both are of one event of a supplier.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let both = self.0.as_ref().zip(other.0.as_ref());
        both.is_some_and(|(this, other)| Arc::ptr_eq(this, other))
    }

    /// Returns the argument of a push of the event that carries it. It is encoded once for all
    /// consumers with the same form of text.
    pub(crate) fn encoded(
        &self,
        event: &Event<Self>,
        form: BodyForm,
    ) -> Result<EncodedBody, SystemException> {
        let encode = || encode(slice::from_ref(event), form);
        let Some(carried) = &self.0 else {
            return encode();
        };
        if let Some(encoded) = carried.encoded.get() {
            let fits = encoded.form() == form;
            return if fits { Ok(encoded.clone()) } else { encode() };
        }
        let encoded = encode()?;
        // Another thread may have been faster.
        let _ = carried.encoded.set(encoded.clone());
        Ok(encoded)
    }
}

/// Copies an event out of a message. Its trail is that of its push.
///
/// # Errors
/// `NO_MEMORY` if there is no memory for the copy.
pub(crate) fn event_of(
    event: &wire::Event<'_>,
    trail: &Trail,
) -> Result<Event<Body>, SystemException> {
    let mut payload = Vec::new();
    payload
        .try_reserve_exact(event.data.payload.len())
        .map_err(|_| NO_MEMORY)?;
    payload.extend_from_slice(event.data.payload);
    let any_value = event.data.any_value.to_owned();
    if any_value.octets() == Err(CdrError::OutOfMemory) {
        return Err(NO_MEMORY);
    }
    let carried = EventBody {
        trail: trail.clone(),
        recv_time: event.header.ec_recv_time,
        send_time: event.header.ec_send_time,
        data: RtecEventDataBuf {
            pad1: event.data.pad1,
            payload,
            any_value,
        },
        encoded: OnceLock::new(),
    };
    Ok(Event {
        header: header_of(&event.header),
        body: Body(Some(Arc::new(carried))),
    })
}

/// Returns an event of the channel itself, with a value.
pub(crate) fn event_with(event_type: i32, value: AnyBuf) -> Event<Body> {
    let carried = EventBody {
        trail: Trail::new(),
        recv_time: 0,
        send_time: 0,
        data: RtecEventDataBuf {
            any_value: value,
            ..RtecEventDataBuf::default()
        },
        encoded: OnceLock::new(),
    };
    Event::new(0, event_type, Body(Some(Arc::new(carried))))
}

/// Returns the header of an event on the wire, as filters see it.
pub(crate) fn header_of(header: &EventHeader) -> Header {
    Header {
        source: header.source,
        event_type: header.r#type,
        ttl: header.ttl,
        creation_time: header.creation_time,
    }
}

/// Returns the entry of a subscription.
pub(crate) fn entry_of(header: &EventHeader) -> Entry {
    Entry {
        source: header.source,
        event_type: header.r#type,
        time: header.creation_time,
    }
}

/// Returns a header with a source and a type.
pub(crate) fn wire_header(source: i32, event_type: i32) -> EventHeader {
    EventHeader {
        r#type: event_type,
        source,
        ..EventHeader::default()
    }
}

/// Returns a view of an event that can be written into a message.
pub(crate) fn view_of(event: &Event<Body>) -> wire::Event<'_> {
    let carried = event.body.0.as_deref();
    let header = EventHeader {
        r#type: event.header.event_type,
        source: event.header.source,
        ttl: event.header.ttl,
        creation_time: event.header.creation_time,
        ec_recv_time: carried.map_or(0, |carried| carried.recv_time),
        ec_send_time: carried.map_or(0, |carried| carried.send_time),
    };
    let data = match carried {
        Some(carried) => RtecEventData {
            pad1: carried.data.pad1,
            payload: &carried.data.payload,
            any_value: carried.data.any_value.as_view(),
        },
        None => empty_data(),
    };
    wire::Event { header, data }
}

/// Encodes a set of events as the argument of a push.
pub(crate) fn encode(set: &[Event<Body>], form: BodyForm) -> Result<EncodedBody, SystemException> {
    let views: Vec<wire::Event<'_>> = set.iter().map(view_of).collect();
    let mut body = EncodedBody::in_form(form);
    body.renew(&|e| e.write_seq(&views))?;
    Ok(body)
}

/// Returns the number of events that are told as lost.
pub(crate) fn lost_in_channel(set: wire::EventSet<'_>) -> Option<u64> {
    let [event] = set else { return None };
    let is_loss = event.header.source == 0 && event.header.r#type == EVENTS_LOST;
    is_loss.then(|| event.data.any_value.extract().ok())?
}

/// Returns the data of an event without any.
pub(crate) fn empty_data() -> RtecEventData<'static> {
    RtecEventData {
        pad1: 0,
        payload: &[],
        any_value: Any::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_encoded_once_for_all_consumers() {
        let data = empty_data();
        let header = wire_header(1, 20);
        let event = event_of(&wire::Event { header, data }, &Trail::new()).unwrap();
        let encode = || event.body.encoded(&event, BodyForm::default()).unwrap();
        let (first, second) = (encode(), encode());
        assert_eq!(first.as_slice().as_ptr(), second.as_slice().as_ptr());
        assert_eq!(first.len(), 52, "a set of one empty event");
        let timer = Event::new(0, 5, Body::default());
        let encoded = timer.body.encoded(&timer, BodyForm::default()).unwrap();
        assert_eq!(encoded.len(), first.len());
    }
}
