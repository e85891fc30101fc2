//! Incidents: misbehaviour of peers, refusals, and other events that an operator must know, with
//! their causes.
//!
//! Every refusal, eviction and fault of a peer is one of these. They are counted by cause, for
//! [`Orb::snapshot`](crate::Orb::snapshot) and the monitor, and reported to the log
//! ([`chronorb_rt::log`]), which never makes the calling thread wait.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::array;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb_rt::log::{self, Event, Level, Limit};

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

            /// The name of the cause, as the log and the monitor show it.
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
    /// A connection was refused: there are as many as there may be, and none can make room.
    ServerFull => "server full",
    /// A client propagated a priority above the ceiling; its request was served at that.
    PriorityClamped => "priority clamped",
    /// A client propagated a priority above the ceiling; its request was refused.
    PriorityRefused => "priority refused",
    /// A connection without a whole message in time; it was closed in order.
    Silent => "no message in time",
    /// A connection was closed in order to make room for another one.
    Evicted => "made room",
    /// A connection was refused because its peer already has the maximum number for one peer.
    TooManyOfPeer => "too many connections of a peer",
    /// A charge that a quota of a service refused ([`crate::quota`]); the number is that of its
    /// units.
    QuotaExceeded => "quota exceeded",
    /// The connection with the most buffered octets was ended, since all together had too many; the
    /// number is that of its octets.
    CutOff => "cut off for its buffers",
    /// A peer that the server's access rules refuse; its connection ends. The number is that of the
    /// rule, 0 where none matches.
    PeerRefused => "peer refused by rule",
    /// An address of a server that the client's access rules refuse, so that no connection to it is
    /// made. The number is that of the rule, 0 if none matches.
    AddressRefused => "address refused by rule",
    /// A request that the authorizer of a POA refuses.
    RequestNotAuthorized => "request not authorized",
    /// A peer by datagrams gave way to another client, because no place or descriptor was left.
    DatagramPeerEvicted => "datagram peer evicted",
    /// An answer was not sent to a datagram peer, because it is more than three times as long as
    /// the request and the peer's address is not proved.
    AnswerToUnprovedPeer => "answer to unproved peer",
    /// An object key whose authentication code is wrong or missing.
    ForgedObjectKey => "forged object key",
    /// A connection that could not be accepted, since descriptors or memory have run out.
    FailedAccept => "failed accept",
    /// A connection whose two sides did not agree on keys, or on another thing that its protocol
    /// needs.
    FailedHandshake => "failed handshake",
    /// A connection whose peer did not complete a message, or did not take a reply, in time.
    LatePeer => "late peer",
    /// A request that was answered by `TRANSIENT`, since there was no room for it.
    RefusedRequest => "refused request",
    /// A request that was not served, since its end time, or that of its reply, had passed. The
    /// number is that of milliseconds since then.
    ExpiredRequest => "expired request",
    /// Oneway requests that were kept to be sent together, and whose connection has ended. The
    /// number is theirs; a part of them may have been sent.
    LostOneways => "lost oneways",
    /// A request for an object, a POA or an initial reference that does not exist.
    UnknownObject => "unknown object",
    /// An operation that panicked; its client gets `UNKNOWN`.
    PanickedServant => "panicked servant",
    /// Other code of the application that panicked in a thread of a lane; the connection ends.
    PanickedApplication => "panicked application",
    /// An operation that used more processor time than its budget; the number is that of the
    /// nanoseconds above it.
    Overrun => "overrun",
    /// Scheduling segments that a servant has left open; the ORB has ended them. The number is
    /// theirs.
    OpenSegments => "open segments",
    /// The end of a budget cannot be noticed while its operation runs, so that its thread is not
    /// lowered.
    UnenforcedBudget => "unenforced budget",
    /// A right that the process lacks, so that priorities are not those that were asked for.
    MissingRights => "missing rights",
    /// A setting that makes the ORB less safe than it looks.
    UnsafeSetting => "unsafe setting",
    /// A setting that has no effect.
    UnusedSetting => "unused setting",
    /// The endpoints of an ORB, and the proof that each of them requires of peers.
    Listening => "listening",
    /// A lane whose threads serve from now on.
    StartedLane => "started lane",
    /// A lane that was ended in order.
    EndedLane => "ended lane",
    /// A lane, or a thread of one, that could not be started, or ended by an error.
    FailedLane => "failed lane",
    /// An address of a server that could not be reached.
    FailedConnection => "failed connection",
    /// A client that names an address for callbacks on its connection which is not its own, is not
    /// readable, or is one too many.
    ListenPointRefused => "listen point refused",
}

impl Incident {
    /// Returns the severity for an operator.
    fn level(self) -> Level {
        match self {
            Self::FailedLane => Level::Error,
            Self::PanickedServant | Self::PanickedApplication => Level::Error,
            Self::Listening | Self::StartedLane | Self::EndedLane => Level::Info,
            Self::UnknownObject => Level::Info,
            _ => Level::Warn,
        }
    }

    /// Returns the rate limit of equal events.
    fn limit(self) -> Limit {
        match self {
            Self::PanickedServant => Limit::ONCE,
            Self::MissingRights | Self::UnsafeSetting | Self::UnusedSetting => Limit::NONE,
            Self::Listening => Limit::NONE,
            Self::StartedLane | Self::EndedLane | Self::FailedLane => Limit::NONE,
            _ => Limit::PEER,
        }
    }

    /// Returns the general meaning, for cases without further details.
    fn meaning(self) -> &'static str {
        match self {
            Self::MalformedMessage => "the peer sent what is not GIOP; the connection is closed",
            Self::ServerFull => "the lane has as many connections as it may (-ORBMaxConnections)",
            Self::PriorityClamped => "the request is served at the ceiling (-ORBPriorityCeiling)",
            Self::PriorityRefused => "the client gets NO_PERMISSION (-ORBPriorityExcess)",
            Self::Silent => "the connection is closed in order (-ORBInputTimeout)",
            Self::Evicted => "the connection is closed in order, since another one needs its place",
            Self::TooManyOfPeer => "the connection is refused; its peer has as many as it may",
            Self::CutOff => {
                "the connection kept most of the lane's buffers (-ORBMaxBufferedOctets)"
            }
            Self::PeerRefused => "the connection is closed (-ORBServerTransportRule)",
            Self::AddressRefused => "the client does not connect (-ORBClientTransportRule)",
            Self::RequestNotAuthorized => "the client gets NO_PERMISSION",
            Self::DatagramPeerEvicted => "another client needs its place",
            Self::AnswerToUnprovedPeer => {
                "the answer is too long for an address that is not proved"
            }
            Self::ForgedObjectKey => "the client gets OBJECT_NOT_EXIST",
            Self::FailedAccept => "no descriptor or memory is left; it is tried again",
            Self::FailedHandshake => "the peer ended the connection before the handshake was over",
            Self::LatePeer => {
                "a message, or a reply that it had to take, was not complete in time \
                 (-ORBInputTimeout)"
            }
            Self::RefusedRequest => "the buffer of the lane is full; the client gets TRANSIENT",
            Self::ExpiredRequest => {
                "its end time has passed; the client gets TIMEOUT (-ORBClockSkew)"
            }
            Self::LostOneways => "their connection has ended",
            Self::OpenSegments => "the ORB has ended them after the operation",
            Self::PanickedApplication => "the connection is closed",
            Self::ListenPointRefused => "the address is not called on the client's connection",
            Self::EndedLane => "its connections are closed",
            _ => "",
        }
    }
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
    /// Notes an incident with a peer. The number depends on the cause: an error number, a priority,
    /// a count of octets; zero where there is none. Never waits for the log.
    #[inline]
    pub(crate) fn note(&self, incident: Incident, peer: &dyn fmt::Display, number: i64) {
        self.count(incident);
        self.log(incident, peer, number, &incident.meaning());
    }

    /// Reports as [`note`](Self::note) does, with details of the case.
    #[inline]
    pub(crate) fn tell(
        &self,
        incident: Incident,
        peer: &dyn fmt::Display,
        number: i64,
        detail: &dyn fmt::Display,
    ) {
        self.count(incident);
        self.log(incident, peer, number, detail);
    }

    fn count(&self, incident: Incident) {
        self.counts[incident as usize].fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn log(
        &self,
        incident: Incident,
        peer: &dyn fmt::Display,
        number: i64,
        detail: &dyn fmt::Display,
    ) {
        log::tell(&Event {
            level: incident.level(),
            cause: incident.name(),
            peer,
            number,
            detail,
            limit: incident.limit(),
        });
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
