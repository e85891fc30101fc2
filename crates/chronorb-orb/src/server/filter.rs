//! The chain of filters that selects the lane of a request: those of the application, and at the
//! end the priority of the target.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::sync::Arc;

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::{
    HeaderPlaces, LocateRequestHeader, MessageHeader, MessageType, RequestHeader, ResponseFlags,
    SystemException,
};

use super::dispatch;
use super::end::End;
use super::lane::ServerLane;
use super::queued::DispatchTarget;
use crate::config::{FilterDecision, FilteredRequest};
use crate::core::Core;
use crate::rtcorba::Priority;

/// Selects, among the lanes that `entrance` reads for, the one for the `Request` or `LocateRequest`
/// in a frame, which arrived at an endpoint of this `ceiling`. Also returns the places of a
/// request's header.
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
    ceiling: Option<Priority>,
) -> Result<Result<(DispatchTarget, Option<HeaderPlaces>), SystemException>, End> {
    let octets = request.len();
    let mut d = message.decoder(request, arena);
    let at_lane_of = |priority, at| DispatchTarget {
        lane: entrance.lane_of(priority).clone(),
        at,
    };
    if message.kind == MessageType::LocateRequest {
        let header = LocateRequestHeader::decode(&mut d, message.protocol);
        let header = header.map_err(|_| End::Malformed)?;
        let key = dispatch::named_object(&header.target);
        let priority = key.and_then(|key| dispatch::priority_at(core, &key, None, None));
        return Ok(Ok((at_lane_of(priority, None), None)));
    }
    let header = RequestHeader::decode(&mut d, message.protocol).map_err(|_| End::Malformed)?;
    let key = dispatch::named_object(&header.target);
    // The thread that serves the request reports an unreadable priority to the client.
    let propagated = dispatch::propagated_priority(&header).ok().flatten();
    let priority = key.and_then(|key| dispatch::priority_at(core, &key, propagated, ceiling));
    let said = core.config.request_filters.filter(&FilteredRequest {
        operation: header.operation,
        object_id: key.map(|key| key.id),
        priority,
        propagated,
        response_expected: header.response != ResponseFlags::None,
        octets,
    });
    let target = match said {
        FilterDecision::PassOn => at_lane_of(priority, None),
        FilterDecision::ServeAt(at) => at_lane_of(Some(at), Some(at)),
        FilterDecision::Refuse(exception) => return Ok(Err(exception)),
    };
    let places = HeaderPlaces::of(&header, d, message.protocol);
    Ok(Ok((target, places)))
}
