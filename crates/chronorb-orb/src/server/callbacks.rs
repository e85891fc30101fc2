//! The lanes of a pool as readers of connections that clients of this ORB opened.

use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind, contexts, minor};
use chronorb_transport::Connection;

use super::lane::ServerLane;
use super::lane_link::LaneLink;
use super::listen_points::MAX_LISTEN_POINTS;
use super::pool::ServerPool;
use crate::bidirectional::{AdoptedConnection, CallbackPool};
use crate::rtcorba::Priority;

impl CallbackPool for ServerPool {
    fn number(&self) -> u32 {
        Self::number(self)
    }

    fn is_open(&self) -> bool {
        !self.lanes().iter().any(|lane| lane.is_stopping())
    }

    fn adopt(
        &self,
        transport: Box<dyn Connection>,
        protocol: u32,
        priorities: Option<(Priority, Priority)>,
    ) -> Result<AdoptedConnection, SystemException> {
        let lane = lane_for(self.lanes(), priorities).ok_or(NO_ROOM)?;
        let scheme = transport.remote().scheme;
        let points = lane.published().filter(|published| {
            published.way.protocol == protocol && published.endpoint.scheme == scheme
        });
        let points: Vec<_> = points
            .filter_map(|published| published.way.address.as_host())
            .take(MAX_LISTEN_POINTS as usize)
            .collect();
        let listen_points = contexts::encode_listen_points(points.into_iter())?;
        let key = lane.adopt(transport).ok_or(NO_ROOM)?;
        let lane = lane.clone();
        Ok(AdoptedConnection {
            connection: Arc::new(LaneLink { lane, key }),
            listen_points,
        })
    }
}

/// The lane for callbacks on a connection of these priorities: the most urgent lane among them,
/// else the next more urgent one, else the most urgent one.
fn lane_for(
    lanes: &[Arc<ServerLane>],
    priorities: Option<(Priority, Priority)>,
) -> Option<&Arc<ServerLane>> {
    let lanes = || lanes.iter().filter(|lane| lane.reads());
    let Some((low, high)) = priorities else {
        return lanes().min_by_key(|lane| lane.priority());
    };
    let within = |lane: &&Arc<ServerLane>| {
        lane.priority()
            .is_some_and(|priority| low <= priority && priority <= high)
    };
    let own = lanes().filter(within).max_by_key(|lane| lane.priority());
    let above = || {
        let above = lanes().filter(|lane| lane.priority() > Some(high));
        above.min_by_key(|lane| lane.priority())
    };
    own.or_else(above)
        .or_else(|| lanes().max_by_key(|lane| lane.priority()))
}

/// No lane has room for a connection.
const NO_ROOM: SystemException = SystemException::no(
    SystemExceptionKind::NoResources,
    minor::TOO_MANY_CONNECTIONS,
);
