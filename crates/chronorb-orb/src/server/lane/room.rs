//! Eviction of connections to make room for new ones: first those of datagram peers
//! ([`DatagramPeers`](super::super::datagram_peers::DatagramPeers)), then the least used ones.

use std::sync::atomic::Ordering;

use chronorb_giop::MessageType;
use chronorb_rt::Key;

use super::ServerLane;
use crate::incident::Incident;
use crate::quota::{OriginKey, Shortage};

impl ServerLane {
    /// Ends the connection with the greatest rank, of one origin or for [`OriginKey::NONE`] of all;
    /// returns whether there was one.
    ///
    /// The order is: datagram peers, which lose nothing by it; connections on which no whole
    /// message has arrived, the oldest first; then the connection that was idle longest.
    #[cold]
    pub(in super::super) fn make_room(&self, of: OriginKey) -> bool {
        self.end_one(of, false)
    }

    /// Ends the connection of a datagram peer that is quiet, if there is one; returns whether there
    /// was.
    #[cold]
    pub(super) fn evict_datagram_peer(&self) -> bool {
        let may_exist = self.datagram_peers.idle_look().is_some();
        may_exist && self.end_one(OriginKey::NONE, true)
    }

    /// Takes room for a connection of an origin, after an eviction if there is none.
    ///
    /// # Errors
    /// The reason why there is no room, even after evictions.
    pub(super) fn take_room(&self, origin: OriginKey) -> Result<(), Incident> {
        loop {
            let shortage = match self.room.take(origin, 1) {
                Ok(()) => return Ok(()),
                Err(shortage) => shortage,
            };
            let (of, incident) = match shortage {
                Shortage::Origin(_) => (origin, Incident::TooManyOfPeer),
                Shortage::Total(_) | Shortage::Memory => (OriginKey::NONE, Incident::ServerFull),
            };
            if shortage == Shortage::Memory || !self.make_room(of) {
                self.room.count_refusal();
                return Err(incident);
            }
        }
    }

    /// Ends the connection with the greatest rank among those of an origin, or of datagram peers;
    /// returns whether there was one.
    fn end_one(&self, of: OriginKey, of_datagram_peers: bool) -> bool {
        let now = self.load.advance();
        let mut last = None;
        for _ in 0..MAX_TRIES {
            let mut best = None;
            for (key, connection) in self.present() {
                let is_meant = (of == OriginKey::NONE || connection.origin == of)
                    && (!of_datagram_peers || connection.is_datagram_peer);
                let rank = connection.rank(now).filter(|_| is_meant);
                let this = rank.map(|rank| (rank, key.index, key.generation));
                // Another thread has just begun to read from the connections before it.
                if last.is_none() || this < last {
                    best = best.max(this);
                }
            }
            let Some(best) = best else {
                return false;
            };
            let (_, index, generation) = best;
            if self.evict(Key { index, generation }) {
                return true;
            }
            last = Some(best);
        }
        false
    }

    /// Closes a connection in order, unless another thread reads from it; returns whether it did.
    fn evict(&self, key: Key) -> bool {
        let Some(connection) = self.connections.get(key) else {
            return false;
        };
        match connection.input.claim() {
            Some(mut input) if input.is_empty() || !connection.has_sent() => {
                // A later request is not served; the client sends it again on a new connection.
                input.closed = true;
                connection.say_goodbye(MessageType::CloseConnection);
            }
            Some(input) => {
                self.release(input, &connection, key);
                return false;
            }
            // The thread that owns the connection says goodbye itself.
            None if self.strategy.evicts_held_input() => {}
            None => return false,
        }
        let incident = if connection.is_datagram_peer {
            Incident::DatagramPeerEvicted
        } else {
            Incident::Evicted
        };
        self.incidents.note(incident, &*connection, 0);
        self.end(key);
        true
    }

    /// Closes, in order, connections on which no whole message has arrived since before the last
    /// check.
    #[cold]
    pub(super) fn close_silent(&self) {
        let before = self
            .silent_mark
            .swap(self.load.advance(), Ordering::Relaxed);
        for (key, connection) in self.present() {
            if connection.has_sent() || !connection.was_used_before(before) {
                continue;
            }
            // An incomplete message and a handshake each have a time limit of their own.
            let Some(mut input) = connection.input.claim() else {
                continue;
            };
            if input.is_empty() && !input.opens {
                input.closed = true;
                self.incidents.note(Incident::Silent, &*connection, 0);
                connection.say_goodbye(MessageType::CloseConnection);
                self.end(key);
            } else {
                self.release(input, &connection, key);
            }
        }
    }

    /// Aborts the connection that keeps most for its peer, and among equals the one that has done
    /// so longest, until the lane is within its bound again.
    #[cold]
    pub(in super::super) fn relieve(&self) {
        while self.load.is_over() {
            let mut most = None;
            for (key, connection) in self.present() {
                most = most.max(Some((connection.account.rank(), key)));
            }
            let Some(((1.., _), key)) = most else {
                return;
            };
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            // `None`: another thread aborts this connection.
            let Some(octets) = connection.account.write_off() else {
                continue;
            };
            let number = i64::try_from(octets).unwrap_or(i64::MAX);
            self.incidents.note(Incident::CutOff, &*connection, number);
            connection.cut_off();
            self.end(key);
        }
    }
}

/// The number of connections that are tried while other threads begin to read from them.
const MAX_TRIES: u32 = 4;
