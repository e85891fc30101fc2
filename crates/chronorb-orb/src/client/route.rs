//! The route of a request: its priority, the server's endpoint, and the connection's priority or
//! band.

use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};

use crate::core::Core;
use crate::lanes::PriorityModel;
use crate::poa::{NoContext, PoaCurrent};
use crate::profile::{MAX_WAYS, POLICIES_CONFLICT, Profile};
use crate::protocol::Way;
use crate::rtcorba::{
    Priority, PriorityBand, PriorityBands, PriorityTransform, Transform, request_priority,
};

/// The route of requests of one priority to an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Route {
    /// The addresses, in order of preference.
    pub(super) ways: Vec<Way>,
    /// The requests that share their connection.
    pub(super) carries: Carries,
    /// The priority that they propagate, if the server's model wants it.
    pub(super) propagated: Option<Priority>,
}

/// The requests that share a connection: those of one priority, or of a band.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Carries {
    Priority(Option<Priority>),
    Band(PriorityBand),
}

/// The reason why there is no route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoRoute {
    /// The priority is in none of the bands.
    OutsideOfBands,
    /// The server has no endpoint for the priority, or for any of its band.
    NoEndpoint,
    /// The reference names more addresses than a call may try.
    TooManyWays,
}

impl Carries {
    /// The priority that the network shall give the connection.
    pub(super) fn network_priority(self) -> Option<Priority> {
        match self {
            Self::Priority(priority) => priority,
            Self::Band(band) => Some(band.high),
        }
    }
}

impl Route {
    /// Returns the route of requests that a thread of this priority makes.
    ///
    /// A server with lanes and client-propagated priorities has an endpoint for each lane. A
    /// priority without a lane is refused and not rounded: it would share the queue of another.
    /// With bands, the client or the server states which priorities may share one: a request goes
    /// to the lane of its own priority, else to the least urgent lane of its band that is more
    /// urgent, else to the most urgent one. Requests of threads without a priority are served at
    /// the server's priority, as all are if the server declares it; the endpoint is the profile's
    /// own.
    pub(super) fn of(
        profile: &Profile,
        bands: Option<&PriorityBands>,
        priority: Option<Priority>,
    ) -> Result<Self, NoRoute> {
        if profile.has_too_many_ways() {
            return Err(NoRoute::TooManyWays);
        }
        let served_at = served_at(profile, priority);
        let band = match (bands, served_at) {
            (Some(bands), Some(priority)) => {
                Some(bands.band_of(priority).ok_or(NoRoute::OutsideOfBands)?)
            }
            _ => None,
        };
        let propagates = matches!(
            profile.priority_model,
            Some((PriorityModel::ClientPropagated, _))
        );
        let ways = match (propagates, band) {
            (true, Some(band)) => in_band(profile, band, served_at.unwrap_or(band.low))?,
            (true, None) => match priority {
                Some(priority) => at_lane(profile, priority).ok_or(NoRoute::NoEndpoint)?,
                None => profile.ways.clone(),
            },
            (false, _) => profile.ways.clone(),
        };
        if ways.len() > MAX_WAYS {
            return Err(NoRoute::TooManyWays);
        }
        Ok(Self {
            ways,
            carries: band.map_or(Carries::Priority(priority), Carries::Band),
            propagated: priority.filter(|_| propagates),
        })
    }
}

/// The priorities at which requests may be made that differ in their route, beside that of the
/// calling thread: those of the lanes in each band, or one of each band where there are no lanes.
pub(super) fn priorities(profile: &Profile, bands: Option<&PriorityBands>) -> Vec<Priority> {
    let propagates = matches!(
        profile.priority_model,
        Some((PriorityModel::ClientPropagated, _))
    );
    let Some(bands) = bands.filter(|_| propagates) else {
        return Vec::new();
    };
    let of_band = |band: &PriorityBand| {
        let lanes = profile.lanes.iter().filter_map(|(lane, _)| *lane);
        let mut lanes: Vec<_> = lanes.filter(|lane| band.contains(*lane)).collect();
        lanes.sort_unstable();
        lanes.dedup();
        if lanes.is_empty() {
            lanes.push(band.low);
        }
        lanes
    };
    bands.as_slice().iter().flat_map(of_band).collect()
}

/// The priority at which the server serves the requests; `None` if it has no model.
fn served_at(profile: &Profile, priority: Option<Priority>) -> Option<Priority> {
    profile.priority_model.map(|(model, server)| match model {
        PriorityModel::ClientPropagated => priority.unwrap_or(server),
        PriorityModel::ServerDeclared => server,
    })
}

/// The endpoints of a lane; those of the profile if the server names none for any lane.
fn at_lane(profile: &Profile, priority: Priority) -> Option<Vec<Way>> {
    if profile.lanes.iter().all(|(lane, _)| lane.is_none()) {
        return Some(profile.ways.clone());
    }
    let at = |wanted| {
        let lanes = profile
            .lanes
            .iter()
            .filter(move |(lane, _)| *lane == wanted);
        lanes.map(|(_, way)| way.clone()).collect::<Vec<_>>()
    };
    let own = at(Some(priority));
    let ways = if own.is_empty() { at(None) } else { own };
    (!ways.is_empty()).then_some(ways)
}

fn in_band(profile: &Profile, band: PriorityBand, priority: Priority) -> Result<Vec<Way>, NoRoute> {
    let lanes = || {
        let lanes = profile.lanes.iter().filter_map(|(lane, _)| *lane);
        lanes.filter(|lane| band.contains(*lane))
    };
    let lane = lanes().filter(|lane| *lane >= priority).min();
    let lane = lane.or_else(|| lanes().max()).unwrap_or(priority);
    at_lane(profile, lane).ok_or(NoRoute::NoEndpoint)
}

impl From<NoRoute> for SystemException {
    fn from(none: NoRoute) -> Self {
        match none {
            NoRoute::OutsideOfBands => POLICIES_CONFLICT,
            NoRoute::NoEndpoint => Self::no(
                SystemExceptionKind::NoResources,
                minor::NO_CONNECTION_FOR_PRIORITY,
            ),
            NoRoute::TooManyWays => {
                Self::no(SystemExceptionKind::ImpLimit, minor::TOO_MANY_ADDRESSES)
            }
        }
    }
}

/// The priority of a call that this thread makes by an ORB; `None` where it has none.
///
/// # Errors
/// `DATA_CONVERSION` (OMG minor 2) where the transform has none; `INTERNAL` where it panics.
#[inline(always)]
pub(super) fn onward_priority(core: &Arc<Core>) -> Result<Option<Priority>, SystemException> {
    match (core.rt.transform.0.get(), request_priority()) {
        (Some(transform), Some(priority)) => transformed(core, &**transform, priority).map(Some),
        (_, priority) => Ok(priority),
    }
}

#[cold]
#[inline(never)]
fn transformed(
    core: &Arc<Core>,
    transform: &dyn PriorityTransform,
    priority: Priority,
) -> Result<Priority, SystemException> {
    match PoaCurrent::new(core.clone()).object_id() {
        Ok(id) => Transform::outbound(transform, priority, id.as_bytes()),
        // Outside of a request there is nothing to transform.
        Err(NoContext) => Ok(priority),
    }
}
