//! The places of peers that leave without a word, which is how datagrams come.
//!
//! A lane has so many places. One that nobody uses is free after a time, whether idle connections are closed or
//! not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb_transport::Carriage;

/// What a lane knows of such places.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// It has had some.
    any: AtomicBool,
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
pub(super) fn is_place(carriage: Carriage) -> bool {
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
pub(super) fn idle_timeout(carriage: Carriage, of_all: Option<Duration>) -> Option<Duration> {
    match carriage {
        Carriage::Stream => of_all,
        // Whose peers nobody knows has no end.
        Carriage::Messages {
            many_peers: true, ..
        } => None,
        Carriage::Messages { .. } => Some(of_all.unwrap_or(IDLE_TIMEOUT)),
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
