//! Events: on the wire, and in the channel.

use std::sync::Arc;

use chronorb::data::Any;
use chronorb_events::{Entry, Event, Header};

use crate::idl::rtec_event_comm::{self as wire, EventHeader, RtecEventData, RtecEventDataBuf};

/// The part of an event that the channel carries without looking at it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body(Option<Arc<EventBody>>);

#[derive(Debug)]
struct EventBody {
    recv_time: u64,
    send_time: u64,
    data: RtecEventDataBuf,
}

/// Copies an event out of a message.
pub(crate) fn event_of(event: &wire::Event<'_>) -> Event<Body> {
    let carried = EventBody {
        recv_time: event.header.ec_recv_time,
        send_time: event.header.ec_send_time,
        data: event.data.to_owned(),
    };
    Event {
        header: header_of(&event.header),
        body: Body(Some(Arc::new(carried))),
    }
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

/// Returns the data of an event without any.
pub(crate) fn empty_data() -> RtecEventData<'static> {
    RtecEventData {
        pad1: 0,
        payload: &[],
        any_value: Any::default(),
    }
}
