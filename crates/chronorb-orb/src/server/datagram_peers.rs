//! Connections of datagram peers, which leave without closing their connection.
//!
//! They count as connections of the lane. An unused one is closed after a time, even where idle
//! connections are otherwise kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_transport::Carriage;

/// The presence of datagram peers in a lane.
#[derive(Debug, Default)]
pub(super) struct DatagramPeers {
    /// The lane has had some.
    any: AtomicBool,
}

impl DatagramPeers {
    pub(super) fn add(&self) {
        self.any.store(true, Ordering::Relaxed);
    }

    /// The interval at which unused ones are looked for; `None` where there were none.
    pub(super) fn idle_look(&self) -> Option<Duration> {
        self.any.load(Ordering::Relaxed).then_some(IDLE_TIMEOUT)
    }
}

/// Whether the peer of such a connection may leave without closing it. Always false in a program
/// without DIOP, which then needs no code for such peers.
pub(super) fn is_datagram_peer(carriage: Carriage) -> bool {
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

/// The time without a message after which a connection is closed, given the ORB's setting.
pub(super) fn idle_timeout(carriage: Carriage, of_all: Option<Duration>) -> Option<Duration> {
    match carriage {
        Carriage::Stream => of_all,
        // The peers of a multicast connection are unknown, so it never becomes idle.
        Carriage::Messages {
            many_peers: true, ..
        } => None,
        Carriage::Messages { .. } => Some(of_all.unwrap_or(IDLE_TIMEOUT)),
    }
}

/// The time after which a silent datagram peer has left, unless the ORB's setting says otherwise.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagram_peers_always_time_out_and_streams_only_if_set() {
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
    fn datagram_peers_are_looked_for_once_there_are_some() {
        let peers = DatagramPeers::default();
        assert_eq!(peers.idle_look(), None);
        peers.add();
        assert_eq!(peers.idle_look(), Some(IDLE_TIMEOUT));
    }
}
