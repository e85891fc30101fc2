//! The listen points of clients that can be called back on their connections.

use std::net::IpAddr;
use std::sync::Arc;

use chronorb_giop::{ServiceContext, contexts};
use chronorb_transport::{Address, RemoteAddress};

use super::at::At;
use super::lane_link::LaneLink;
use crate::bidirectional::Announcement;
use crate::core::Core;
use crate::incident::Incident;

/// Notes the listen points of a client that can be called back, if the request has any. Only the
/// client's own address is believed.
#[cold]
pub(super) fn learn_listen_points(core: &Core, at: At<'_>, contexts: &[ServiceContext<'_>]) {
    let connection = at.connection;
    let Some(data) = contexts::find(contexts, contexts::BI_DIR_IIOP) else {
        return;
    };
    if connection.is_originated() {
        return;
    }
    let refused = |number: i64| {
        let incidents = &at.lane.incidents;
        incidents.note(Incident::ListenPointRefused, connection, number);
    };
    let remote = connection.transport().remote();
    let (RemoteAddress::Host(address), "iiop") = (remote.address, remote.scheme) else {
        return refused(0);
    };
    let Ok(points) = contexts::decode_listen_points(data) else {
        return refused(0);
    };
    if points.len() > MAX_LISTEN_POINTS as usize {
        return refused(points.len() as i64);
    }
    let Some(lane) = core.server.lane(at.lane) else {
        return;
    };
    let peer = address.ip().to_canonical();
    for point in points {
        let host = point.host.parse::<IpAddr>();
        let is_own = host.is_ok_and(|host| host.to_canonical() == peer);
        let number = i64::from(point.port);
        if !is_own {
            refused(number);
            continue;
        }
        let (lane, key) = (lane.clone(), at.key);
        let address = Address::host(point.host, point.port);
        let handle = Arc::new(LaneLink { lane, key });
        let has_room = connection.listen_points() < MAX_LISTEN_POINTS;
        match core.bidirectional.announce(address, handle, has_room) {
            Announcement::New => connection.add_listen_point(),
            Announcement::Known => {}
            Announcement::Refused => refused(number),
        }
    }
}

/// The listen points of one connection.
pub(super) const MAX_LISTEN_POINTS: u32 = 16;
