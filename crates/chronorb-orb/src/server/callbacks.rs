//! Connections on which both sides send requests: those that clients of this ORB opened and gave to
//! a lane, and those of clients that can be called back.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use chronorb_cdr::{Arena, Frame};
use chronorb_giop::{
    LocateRequestHeader, MessageHeader, MessageType, RequestHeader, ServiceContext,
    SystemException, SystemExceptionKind, TAG_INTERNET_IOP, Target, contexts, minor,
};
use chronorb_rt::{Backoff, Deadline, Key, epoch};
use chronorb_transport::{
    Address, Connection, IoError, Remote, RemoteAddress, SendError, SocketOptions,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::at::At;
use super::dispatch::named_object;
use super::lane::ServerLane;
use super::pool::ServerPool;
use crate::bidirectional::{
    AdoptedConnection, Announcement, CallbackPool, LaneConnection, ReplyReceiver,
};
use crate::core::Core;
use crate::incident::Incident;
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
        priorities: Option<(Priority, Priority)>,
    ) -> Result<AdoptedConnection, SystemException> {
        let lane = lane_for(self.lanes(), priorities).ok_or(NO_ROOM)?;
        let points = lane.published().filter(|published| {
            published.way.protocol == TAG_INTERNET_IOP && published.endpoint.scheme == "iiop"
        });
        let points: Vec<_> = points
            .filter_map(|published| published.way.address.as_host())
            .take(MAX_LISTEN_POINTS as usize)
            .collect();
        let listen_points = contexts::encode_listen_points(points.into_iter())?;
        let key = lane.adopt(transport).ok_or(NO_ROOM)?;
        let lane = lane.clone();
        Ok(AdoptedConnection {
            connection: Arc::new(LaneHandle { lane, key }),
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

/// A connection of a lane, for the client's half of the ORB.
struct LaneHandle {
    lane: Arc<ServerLane>,
    key: Key,
}

impl LaneConnection for LaneHandle {
    fn priority(&self) -> Option<Priority> {
        self.lane.priority()
    }

    fn is_live(&self) -> bool {
        self.lane.is_live(self.key)
    }

    fn sender(&self) -> io::Result<Box<dyn Connection>> {
        let connection = self.lane.connections.get(self.key);
        let connection = connection.ok_or(io::ErrorKind::NotConnected)?;
        let socket = connection.transport().as_fd().try_clone_to_owned()?;
        let (lane, key) = (self.lane.clone(), self.key);
        Ok(Box::new(LaneSender { lane, key, socket }))
    }

    fn receiver(&self) -> Option<Arc<dyn ReplyReceiver>> {
        let connection = self.lane.connections.get(self.key)?;
        connection.receiver().cloned()
    }

    fn attach(&self, receiver: Arc<dyn ReplyReceiver>) -> bool {
        let Some(connection) = self.lane.connections.get(self.key) else {
            return false;
        };
        if !connection.attach(receiver) {
            return false;
        }
        if connection.is_originated() {
            self.lane.begin_reading(&connection, self.key);
        }
        // A lane ends calls after it has removed their connection, so one of the two sees the
        // other.
        if self.is_live() && !connection.has_ended() {
            return true;
        }
        connection.end_calls(false);
        false
    }

    fn identity(&self) -> (usize, u64) {
        let key = (u64::from(self.key.index) << 32) | u64::from(self.key.generation);
        (Arc::as_ptr(&self.lane).addr(), key)
    }
}

/// The sending half of a connection that a lane reads. Messages are queued behind those of the
/// lane's threads.
struct LaneSender {
    lane: Arc<ServerLane>,
    key: Key,
    socket: OwnedFd,
}

impl fmt::Debug for LaneSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneSender").finish_non_exhaustive()
    }
}

impl AsFd for LaneSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl LaneSender {
    /// Sends a message, or leaves it to the lane's output; [`IoError::WouldBlock`] if octets wait
    /// there already, because the peer is slow.
    fn offer(&self, message: &[u8]) -> Result<(), IoError> {
        let connection = self.lane.connections.get(self.key);
        let connection = connection.ok_or(IoError::Closed)?;
        match connection.flush() {
            Ok(false) if !connection.output_waits() => {}
            Ok(_) => return Err(IoError::WouldBlock),
            Err(_) => {
                self.lane.end(self.key);
                return Err(IoError::Closed);
            }
        }
        match connection.send(message) {
            Ok(false) => {}
            Ok(true) => self.lane.rearm(&connection, self.key),
            // The message may have been sent. Its call ends with the connection.
            Err(_) => self.lane.end(self.key),
        }
        Ok(())
    }
}

impl Connection for LaneSender {
    fn try_recv(&self, _: &mut [u8]) -> Result<usize, IoError> {
        Err(IoError::WouldBlock)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        self.offer(octets).map(|()| octets.len())
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        self.try_send(&[first, second].concat())
    }

    fn recv(&self, _: &mut [u8], _: Deadline) -> Result<usize, IoError> {
        Err(IoError::TimedOut)
    }

    fn recv_until_interrupted(
        &self,
        _: &mut [u8],
        _: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        Ok(None)
    }

    fn interrupt(&self) {}

    fn resume(&self) {}

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        let mut backoff = Backoff::new();
        loop {
            let cause = match self.offer(octets) {
                Ok(()) => return Ok(()),
                Err(IoError::WouldBlock) => match deadline.remaining() {
                    Some(left) => {
                        self.await_room(left);
                        // The thread that has the output may need a moment.
                        backoff.wait();
                        continue;
                    }
                    None => IoError::TimedOut,
                },
                Err(cause) => cause,
            };
            return Err(SendError { sent: 0, cause });
        }
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        self.send_all(&[first, second].concat(), deadline)
    }

    fn is_stale(&self) -> bool {
        !self.lane.is_live(self.key)
    }

    /// Ends a connection that this ORB opened. At the end of a lane that is left to the lane, which
    /// answers requests first. A connection of a client belongs to the client.
    fn shutdown(&self) {
        if let Some(connection) = self.lane.connections.get(self.key)
            && connection.is_originated()
            && !self.lane.is_stopping()
        {
            connection.transport().shutdown();
        }
    }

    fn options(&self) -> io::Result<SocketOptions> {
        let connection = self.lane.connections.get(self.key);
        let connection = connection.ok_or(io::ErrorKind::NotConnected)?;
        connection.transport().options()
    }

    fn peer(&self) -> String {
        let connection = self.lane.connections.get(self.key);
        connection.map_or_else(String::new, |connection| connection.transport().peer())
    }

    fn remote(&self) -> Remote {
        let connection = self.lane.connections.get(self.key);
        connection.map_or(Remote::UNKNOWN, |connection| {
            connection.transport().remote()
        })
    }
}

impl LaneSender {
    /// Waits until the transport has room, or the time is over.
    fn await_room(&self, left: Duration) {
        let mut room = [PollFd::new(&self.socket, PollFlags::OUT)];
        let left = Timespec::try_from(left).ok();
        // An error shows in the next attempt to send.
        let _ = poll(&mut room, left.as_ref());
    }
}

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
        let handle = Arc::new(LaneHandle { lane, key });
        let has_room = connection.listen_points() < MAX_LISTEN_POINTS;
        match core.bidirectional.announce(address, handle, has_room) {
            Announcement::New => connection.add_listen_point(),
            Announcement::Known => {}
            Announcement::Refused => refused(number),
        }
    }
}

/// Whether the server of a connection that this ORB opened may send the request in a frame: the POA
/// of its target is there, and takes callbacks.
pub(super) fn may_be_called(
    core: &Core,
    request: &mut Frame,
    arena: &Arena,
    message: MessageHeader,
) -> bool {
    let mut d = message.decoder(request, arena);
    let takes_callbacks = |target: &Target<'_>| {
        let Some(key) = named_object(target) else {
            return false;
        };
        let _reading = epoch::enter();
        let poa = core.poas.find(core.incarnation, &key);
        poa.is_some_and(|poa| poa.takes_callbacks())
    };
    // A malformed header is reported when the request is served.
    if message.kind == MessageType::LocateRequest {
        let header = LocateRequestHeader::decode(&mut d, message.protocol);
        return header.map_or(true, |header| takes_callbacks(&header.target));
    }
    let header = RequestHeader::decode(&mut d, message.protocol);
    header.map_or(true, |header| takes_callbacks(&header.target))
}

/// The exception for requests to objects whose POA takes no callbacks.
pub(super) const NOT_BIDIRECTIONAL: SystemException =
    SystemException::no(SystemExceptionKind::NoPermission, minor::NOT_BIDIRECTIONAL);
/// No lane has room for a connection.
const NO_ROOM: SystemException = SystemException::no(
    SystemExceptionKind::NoResources,
    minor::TOO_MANY_CONNECTIONS,
);
/// The listen points of one connection.
const MAX_LISTEN_POINTS: u32 = 16;
