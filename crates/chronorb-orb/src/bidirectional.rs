//! Bidirectional GIOP: connections on which both sides send requests.
//!
//! A lane reads such a connection on either side, so requests are served by the lane's threads and
//! replies are handed to the threads that wait for them. The client's half of the ORB and the
//! server's half know each other only by the traits here.

use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

use chronorb_cdr::Frame;
use chronorb_giop::{MessageHeader, SystemException};
use chronorb_rt::PiMutex;
use chronorb_transport::{Address, Connection};

use crate::rtcorba::Priority;

/// The bidirectional connections of an ORB.
#[derive(Default)]
pub(crate) struct BidirectionalState {
    /// The pool that serves callbacks; none before the first POA that takes any.
    pool: PiMutex<Option<Arc<dyn CallbackPool>>>,
    /// The connections of clients that can be called back.
    paths: PiMutex<ReturnPaths>,
}

/// An address at which a client says that it can be called back on its connection.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct ListenPoint {
    /// The number of the protocol.
    pub(crate) protocol: u32,
    pub(crate) address: Address,
}

/// The references whose calls go to a listen point by the connection of its client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Credit {
    /// All: it is an address of the client.
    Proved,
    /// Those that arrived on this connection: it may be any address.
    Claimed,
}

/// The outcome of an announcement of a listen point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Announcement {
    New,
    Known,
    Refused,
}

/// Connections by listen point.
type PathsByPoint = HashMap<ListenPoint, Vec<Arc<dyn LaneConnection>>>;

#[derive(Default)]
struct ReturnPaths {
    proved: PathsByPoint,
    claimed: PathsByPoint,
    /// The number of listen points at which those of ended connections are removed.
    bound: usize,
}

/// A thread pool whose lanes read connections that this ORB opens.
pub(crate) trait CallbackPool: Send + Sync {
    /// The number of the pool.
    fn number(&self) -> u32;

    /// Whether it was not destroyed.
    fn is_open(&self) -> bool;

    /// Gives a connection by the protocol with this number to the lane for callbacks of these
    /// priorities, from the least to the greatest. It is read once it is
    /// [attached](LaneConnection::attach).
    ///
    /// # Errors
    /// `NO_RESOURCES` if the lane has no room for it.
    fn adopt(
        &self,
        transport: Box<dyn Connection>,
        protocol: u32,
        priorities: Option<(Priority, Priority)>,
    ) -> Result<AdoptedConnection, SystemException>;
}

/// A connection that a lane has taken over from a client.
pub(crate) struct AdoptedConnection {
    pub(crate) connection: Arc<dyn LaneConnection>,
    /// The addresses of the lane, as the content of a service context.
    pub(crate) listen_points: Vec<u8>,
}

/// A connection that a lane reads.
pub(crate) trait LaneConnection: Send + Sync {
    /// The priority of the lane, if it has one.
    fn priority(&self) -> Option<Priority>;

    /// Whether it has not ended.
    fn is_live(&self) -> bool;

    /// Returns its sending half. Its receiving half has no octets for the caller.
    ///
    /// # Errors
    /// No descriptor is left.
    fn sender(&self) -> io::Result<Box<dyn Connection>>;

    /// The receiver of its replies, if one is attached.
    fn receiver(&self) -> Option<Arc<dyn ReplyReceiver>>;

    /// Attaches the receiver of its replies. Returns whether it is attached now: there was none,
    /// and the connection has not ended.
    fn attach(&self, receiver: Arc<dyn ReplyReceiver>) -> bool;

    /// Whether this is its transport.
    fn has_transport(&self, transport: &dyn Connection) -> bool;

    /// Whether it is the same connection as another one.
    fn is(&self, other: &dyn LaneConnection) -> bool {
        self.identity() == other.identity()
    }

    /// The number of the connection, if its client claims listen points.
    fn claimant(&self) -> Option<NonZeroU64>;

    /// Distinguishes the connections of an ORB.
    fn identity(&self) -> (usize, u64);
}

/// The receiver of the replies to the requests of this side of a connection.
pub(crate) trait ReplyReceiver: Send + Sync {
    /// Takes a whole reply, in exchange for a frame. Returns whether the peer may send it.
    fn receive(&self, header: MessageHeader, frame: &mut Frame) -> bool;

    /// Notes that no more replies will arrive. The peer ended the connection in order if it is
    /// `orderly`: then it has not begun what it has not answered.
    fn end(&self, orderly: bool);

    /// Whether no reply is due.
    fn is_idle(&self) -> bool;

    /// Converts it to its own type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl BidirectionalState {
    /// The pool that serves callbacks, if a POA takes any.
    pub(crate) fn pool(&self) -> Option<Arc<dyn CallbackPool>> {
        self.pool.lock().clone().filter(|pool| pool.is_open())
    }

    /// Lets a pool serve callbacks, unless another one does. Returns whether it is the pool now,
    /// and whether it is new.
    pub(crate) fn open(&self, pool: Arc<dyn CallbackPool>) -> (bool, bool) {
        let mut present = self.pool.lock();
        match &*present {
            Some(present) if present.is_open() => (present.number() == pool.number(), false),
            _ => {
                *present = Some(pool);
                (true, true)
            }
        }
    }

    /// Notes that requests for a listen point may use a connection. A new listen point is refused
    /// unless the connection `has_room`.
    pub(crate) fn announce(
        &self,
        point: ListenPoint,
        credit: Credit,
        connection: Arc<dyn LaneConnection>,
        has_room: bool,
    ) -> Announcement {
        let mut paths = self.paths.lock();
        paths.tidy();
        let by_point = match credit {
            Credit::Proved => &mut paths.proved,
            Credit::Claimed => &mut paths.claimed,
        };
        let known = by_point.get(&point);
        if known.is_some_and(|paths| paths.iter().any(|path| path.is(&*connection))) {
            return Announcement::Known;
        }
        if !has_room {
            return Announcement::Refused;
        }
        let present = by_point.entry(point).or_default();
        present.retain(|path| path.is_live());
        present.push(connection);
        Announcement::New
    }

    /// Returns a connection for requests of a priority to an address, of a lane of that priority or
    /// of one that serves all.
    ///
    /// That is the connection of the client that claims the address, if the reference arrived
    /// there. Otherwise the address is that of the client. A connection in use is preferred, so
    /// that no later announcement replaces it; else the latest one, because the client may have
    /// left the others.
    pub(crate) fn path(
        &self,
        point: &ListenPoint,
        priority: Option<Priority>,
        claimant: Option<NonZeroU64>,
    ) -> Option<Arc<dyn LaneConnection>> {
        let paths = self.paths.lock();
        let fits = |path: &&Arc<dyn LaneConnection>| {
            let lane = path.priority();
            path.is_live() && (lane.is_none() || priority.is_none() || lane == priority)
        };
        if claimant.is_some() {
            let mut claimed = paths.claimed.get(point).into_iter().flatten().filter(fits);
            if let Some(path) = claimed.find(|path| path.claimant() == claimant) {
                return Some(path.clone());
            }
        }
        let present = || paths.proved.get(point).into_iter().flatten().filter(fits);
        let in_use = present().find(|path| path.receiver().is_some());
        in_use.or_else(|| present().next_back()).cloned()
    }
}

impl BidirectionalState {
    /// Returns the connection with this transport, if its client can be called back there at an
    /// address, proved or claimed.
    pub(crate) fn path_by(
        &self,
        point: &ListenPoint,
        transport: &dyn Connection,
    ) -> Option<Arc<dyn LaneConnection>> {
        let paths = self.paths.lock();
        let mut known = [&paths.proved, &paths.claimed]
            .into_iter()
            .flat_map(|by_point| by_point.get(point).into_iter().flatten());
        known.find(|path| path.has_transport(transport)).cloned()
    }
}

impl ReturnPaths {
    /// Removes ended connections, if there are many.
    fn tidy(&mut self) {
        if self.proved.len() + self.claimed.len() < self.bound {
            return;
        }
        for by_point in [&mut self.proved, &mut self.claimed] {
            by_point.retain(|_, paths| {
                paths.retain(|path| path.is_live());
                !paths.is_empty()
            });
        }
        self.bound = (2 * (self.proved.len() + self.claimed.len())).max(LEAST_BOUND);
    }
}

/// The number of listen points below which ended connections stay noted.
const LEAST_BOUND: usize = 64;
