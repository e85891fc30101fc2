//! The chain of filters that selects the lane of a request: those of the application, and at the
//! end the priority of the target.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::{
    HeaderPlaces, LocateRequestHeader, MessageHeader, MessageType, ResponseFlags, SystemException,
};

use super::dispatch;
use super::end::End;
use super::lane::ServerLane;
use super::queued::DispatchTarget;
use crate::config::{FilterDecision, FilteredRequest};
use crate::core::Core;
use crate::riders::propagated_priority;
use crate::rtcorba::Priority;

/// Selects, among the lanes that `entrance` reads for, the one for the `Request` or `LocateRequest`
/// in a frame, which arrived at an endpoint of this `ceiling`. Notes the places of a request's
/// header.
///
/// # Errors
/// The exception that refuses the request, in the inner result; a malformed header ends the
/// connection.
pub(super) fn target_of(
    core: &Core,
    entrance: &Arc<ServerLane>,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
    places: &mut Option<Box<HeaderPlaces>>,
    ceiling: Option<Priority>,
) -> Result<Result<DispatchTarget, SystemException>, End> {
    let octets = request.len();
    let at_lane_of = |priority, at| DispatchTarget {
        lane: entrance.lane_of(priority).clone(),
        at,
    };
    if message.kind == MessageType::LocateRequest {
        let mut d = message.decoder(request, arena);
        let header = LocateRequestHeader::decode(&mut d, message.protocol);
        let header = header.map_err(|_| End::Malformed)?;
        let key = dispatch::named_object(&header.target);
        let priority = key.and_then(|key| dispatch::priority_at(core, &key, None, None));
        return Ok(Ok(at_lane_of(priority, None)));
    }
    let header = dispatch::note_header(message, request, arena, places);
    let header = header.map_err(|_| End::Malformed)?;
    let key = dispatch::named_object(&header.target);
    // The thread that serves the request reports an unreadable priority to the client.
    let propagated = propagated_priority(header.contexts).ok().flatten();
    let priority = key.and_then(|key| dispatch::priority_at(core, &key, propagated, ceiling));
    let said = core.config.request_filters.filter(&FilteredRequest {
        operation: header.operation,
        object_id: key.map(|key| key.id),
        priority,
        propagated,
        response_expected: header.response != ResponseFlags::None,
        octets,
    });
    Ok(match said {
        FilterDecision::PassOn => Ok(at_lane_of(priority, None)),
        FilterDecision::ServeAt(at) => Ok(at_lane_of(Some(at), Some(at))),
        FilterDecision::Refuse(exception) => Err(exception),
    })
}
