//! The places of peers that leave without a word, which is how datagrams come.
//!
//! A lane has so many places. One that nobody uses is free after a time, whether idle connections are closed or
//! not; and where all are taken, the next connection gets the place of one that has sent nothing for a while.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chronorb_giop::MessageType;
use chronorb_rt::Released;
use chronorb_transport::Carriage;

use super::Lane;
use crate::incident::Incident;
use crate::server::connection::ServerConnection;
use crate::server::input::Input;

/// What a lane knows of such places.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// It has had some.
    any: AtomicBool,
    /// Where the next search for one goes on.
    hand: AtomicU32,
}

impl Places {
    pub(super) fn add(&self) {
        self.any.store(true, Ordering::Relaxed);
    }

    /// How often it is looked for those that nobody uses.
    pub(super) fn look(&self) -> Option<Duration> {
        self.any.load(Ordering::Relaxed).then_some(IDLE_TIMEOUT)
    }
}

/// Whether a peer may leave such a connection without a word. A program without DIOP has none of
/// those, and not what looks after them.
pub(in super::super) fn is_place(carriage: Carriage) -> bool {
    let of_one = |carriage| {
        matches!(
            carriage,
            Carriage::Messages {
                many_peers: false,
                ..
            }
        )
    };
    cfg!(feature = "diop") && of_one(carriage)
}

/// After how long without a message a connection is closed, if that is set for all.
pub(in super::super) fn idle_timeout(
    carriage: Carriage,
    of_all: Option<Duration>,
) -> Option<Duration> {
    match carriage {
        Carriage::Stream => of_all,
        // Whose peers nobody knows has no end.
        Carriage::Messages {
            many_peers: true, ..
        } => None,
        Carriage::Messages { .. } => Some(of_all.unwrap_or(IDLE_TIMEOUT)),
    }
}

impl Lane {
    /// Frees a place that is not in use, if there is one; returns whether there was.
    ///
    /// It looks at one after the other, where it stopped the last time: the first goes that has sent nothing since
    /// it was looked at before. So many peers that come for one message do not take the places of those that stay.
    #[cold]
    pub(super) fn make_room(&self) -> bool {
        // In the second round all those are free that send nothing meanwhile.
        cfg!(feature = "diop")
            && self.places.look().is_some()
            && self.end_one(2, ServerConnection::is_place, |connection, input| {
                let may_go = connection.is_idle() && input.is_empty();
                if may_go {
                    let incident = Incident::DatagramPeerEvicted;
                    self.incidents.note(incident, connection, 0);
                }
                may_go
            })
    }

    /// Ends a connection that has not agreed with its peer on what it needs yet, if there is one; returns whether
    /// there was.
    ///
    /// Where all connections are taken, those that say nothing must not keep out those that do. The search goes
    /// around, so that each has as long as all the others take to come.
    #[cold]
    pub(super) fn end_one_that_opens(&self) -> bool {
        // They count as slow.
        let may_be = cfg!(any(feature = "ssliop", feature = "shmiop")) && self.load.has_slow();
        let opens = |connection: &ServerConnection| !connection.transport().is_established();
        may_be && self.end_one(1, opens, |_, input| input.opens)
    }

    /// Ends the next connection that is of a kind and may go, looking at all of them so often; returns whether
    /// there was one.
    fn end_one(
        &self,
        rounds: u32,
        is_meant: impl Fn(&ServerConnection) -> bool,
        may_go: impl Fn(&ServerConnection, &Input) -> bool,
    ) -> bool {
        let bound = self.connections.bound();
        for _ in 0..rounds * bound {
            let hand = self.places.hand.fetch_add(1, Ordering::Relaxed) % bound;
            let Some((key, connection)) = self.connections.get_at(hand) else {
                continue;
            };
            if !is_meant(&connection) {
                continue;
            }
            let Some(mut input) = connection.input.claim() else {
                continue;
            };
            if may_go(&connection, &input) {
                input.closed = true;
                connection.say_goodbye(MessageType::CloseConnection);
                self.end(key);
                return true;
            }
            if matches!(input.release(), Released::Again(_)) {
                self.rearm(&connection, key);
            }
        }
        false
    }
}

/// After which a peer that sends nothing has left, where nothing else is set.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_freed_whatever_is_set_and_connections_only_where_it_is() {
        let datagrams = |many_peers| Carriage::Messages {
            largest: 1000,
            many_peers,
        };
        let second = Some(Duration::from_secs(1));
        assert_eq!(idle_timeout(datagrams(false), None), Some(IDLE_TIMEOUT));
        assert_eq!(idle_timeout(datagrams(false), second), second);
        assert_eq!(idle_timeout(Carriage::Stream, None), None);
        assert_eq!(idle_timeout(Carriage::Stream, second), second);
        assert_eq!(idle_timeout(datagrams(true), second), None);
    }

    #[test]
    fn it_is_looked_for_places_where_there_are_some() {
        let places = Places::default();
        assert_eq!(places.look(), None);
        places.add();
        assert_eq!(places.look(), Some(IDLE_TIMEOUT));
    }
}
