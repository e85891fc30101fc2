//! Room for new connections, which others make: first those whose peers leave without a word
//! ([`Places`](super::super::place::Places)), then those that are used least.

use std::sync::atomic::Ordering;

use chronorb_giop::MessageType;
use chronorb_rt::{Key, Released};

use super::Lane;
use super::origin::Origin;
use crate::incident::Incident;
use crate::server::connection::ServerConnection;

impl Lane {
    /// Ends the connection that the lane can do without best, of an origin or of all; returns
    /// whether there was one.
    ///
    /// First go peers that may leave without a word, and lose nothing by it; then connections on
    /// which no whole message ever came, the oldest first; then the one that was idle longest.
    #[cold]
    pub(super) fn make_room(&self, of: Option<Origin>) -> bool {
        self.end_one(&|connection| of.is_none() || connection.origin() == of)
    }

    /// Ends the connection of a peer that may leave without a word, if there is one that is quiet;
    /// returns whether there was.
    #[cold]
    pub(super) fn free_place(&self) -> bool {
        self.places.look().is_some() && self.end_one(&ServerConnection::is_place)
    }

    /// How many connections an origin has.
    pub(super) fn connections_of(&self, origin: Origin) -> usize {
        let all = (0..self.connections.bound()).filter_map(|index| self.connections.get_at(index));
        let its = all.filter(|(_, connection)| connection.origin() == Some(origin));
        its.count()
    }

    /// Ends the connection of a kind that the lane can do without best; returns whether there was
    /// one.
    fn end_one(&self, is_meant: &dyn Fn(&ServerConnection) -> bool) -> bool {
        let now = self.load.advance();
        let mut last = None;
        for _ in 0..MAX_TRIES {
            let mut best = None;
            for index in 0..self.connections.bound() {
                let Some((key, connection)) = self.connections.get_at(index) else {
                    continue;
                };
                let rank = connection.rank(now).filter(|_| is_meant(&connection));
                let this = rank.map(|rank| (rank, key.index, key.generation));
                // Another thread has just begun to read from those before it.
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

    /// Ends a connection in order, unless another thread reads from it; returns whether it has.
    fn evict(&self, key: Key) -> bool {
        let Some(connection) = self.connections.get(key) else {
            return false;
        };
        match connection.input.claim() {
            Some(mut input) if input.is_empty() || !connection.has_sent() => {
                // What comes too late is not served, since the client sends it again.
                input.closed = true;
                connection.say_goodbye(MessageType::CloseConnection);
            }
            Some(input) => {
                if matches!(input.release(), Released::Again(_)) {
                    self.rearm(&connection, key);
                }
                return false;
            }
            // The thread that has the connection for good says it.
            None if self.strategy.evicts_held_input() => {}
            None => return false,
        }
        let incident = match connection.is_place() {
            true => Incident::DatagramPeerEvicted,
            false => Incident::Evicted,
        };
        self.incidents.note(incident, &*connection, 0);
        self.end(key);
        true
    }

    /// Closes, in order, connections on which no whole message has come since the last look but
    /// one.
    #[cold]
    pub(super) fn close_silent(&self) {
        let before = self
            .silent_mark
            .swap(self.load.advance(), Ordering::Relaxed);
        for index in 0..self.connections.bound() {
            let Some((key, connection)) = self.connections.get_at(index) else {
                continue;
            };
            if connection.has_sent() || !connection.was_used_before(before) {
                continue;
            }
            // The beginning of a message has a time of its own, and so has one of a connection.
            let Some(mut input) = connection.input.claim() else {
                continue;
            };
            if input.is_empty() && !input.opens {
                input.closed = true;
                self.incidents.note(Incident::Silent, &*connection, 0);
                connection.say_goodbye(MessageType::CloseConnection);
                self.end(key);
            } else if matches!(input.release(), Released::Again(_)) {
                self.rearm(&connection, key);
            }
        }
    }

    /// Cuts off the connection that keeps most for its peer, of equals the one that does so
    /// longest, until all together keep no more than they may.
    #[cold]
    pub(in super::super) fn relieve(&self) {
        while self.load.is_over() {
            let mut most = None;
            for index in 0..self.connections.bound() {
                if let Some((key, connection)) = self.connections.get_at(index) {
                    most = most.max(Some((connection.account().rank(), key)));
                }
            }
            let Some(((1.., _), key)) = most else {
                return;
            };
            let Some(connection) = self.connections.get(key) else {
                continue;
            };
            // Another thread does the same.
            let Some(octets) = connection.account().write_off() else {
                continue;
            };
            let number = i64::try_from(octets).unwrap_or(i64::MAX);
            self.incidents.note(Incident::CutOff, &*connection, number);
            connection.cut_off();
            self.end(key);
        }
    }
}

/// Connections that are tried, where other threads begin to read from them.
const MAX_TRIES: u32 = 4;
