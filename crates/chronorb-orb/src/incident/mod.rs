//! Incidents: what peers do wrong or are refused, with its cause.
//!
//! Every refusal, eviction and fault of a peer is one of these. They are counted by cause, for
//! [`Orb::snapshot`](crate::Orb::snapshot).

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::array;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! incidents {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// The cause of an incident.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum Incident {
            $($(#[$doc])* $variant,)*
        }

        impl Incident {
            /// All causes, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name of the cause, as the monitor shows it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

incidents! {
    /// A message that cannot be read; its connection ends.
    MalformedMessage => "malformed message",
    /// A peer by datagrams gave way to another client, because no place or descriptor was left.
    DatagramPeerEvicted => "datagram peer evicted",
    /// An answer was not sent to a datagram peer, because it is more than three times as long as the
    /// request and the peer's address is not proved.
    AnswerToUnprovedPeer => "answer to unproved peer",
    /// An object key whose authentication code is wrong or missing.
    ForgedObjectKey => "forged object key",
}

/// The incidents of an ORB.
#[derive(Debug)]
pub(crate) struct Incidents {
    counts: [AtomicU64; Incident::ALL.len()],
}

impl Default for Incidents {
    fn default() -> Self {
        Self {
            counts: array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Incidents {
    /// Notes an incident with a peer. The number depends on the cause: an error number, a priority, a
    /// count of octets; zero where there is none. Never waits, and never allocates.
    pub(crate) fn note(&self, incident: Incident, peer: &dyn fmt::Display, number: i64) {
        let _ = (peer, number);
        self.counts[incident as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of incidents of each cause, in the order of [`Incident::ALL`].
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Incident, u64)> {
        let counts = self.counts.iter();
        Incident::ALL
            .iter()
            .zip(counts)
            .map(|(incident, count)| (*incident, count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incidents_are_counted_by_cause() {
        let incidents = Incidents::default();
        incidents.note(Incident::MalformedMessage, &"127.0.0.1:1", 0);
        incidents.note(Incident::MalformedMessage, &"127.0.0.1:2", 0);
        let mut counts = incidents.counts();
        assert!(counts.any(|count| count == (Incident::MalformedMessage, 2)));
    }
}
