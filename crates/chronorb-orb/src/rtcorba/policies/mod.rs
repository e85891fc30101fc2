//! Policies that a client sets for its calls: on its ORB, its threads and its references.
//!
//! Source: CORBA 3.3 part 1, clause 8.9 (policies and their levels), clause 17 (Messaging), and
//! chapter 2 of Real-Time CORBA 1.2. In the standard a policy is an object of one of many
//! interfaces. Here it is a [`ClientPolicy`], which can only be one that clients may set. So there
//! is no `NO_PERMISSION` for a policy of the server at the wrong level.

mod bands;
mod ends;
mod failover;
mod levels;
mod overrides;
mod protocols;

use std::time::{Duration, SystemTime};

use chronorb_giop::{
    POLICY_BIDIRECTIONAL, POLICY_BUFFERING_CONSTRAINT, POLICY_CLIENT_PROTOCOL,
    POLICY_CONNECTION_TIMEOUT, POLICY_FAILOVER, POLICY_PRIORITY_BANDED_CONNECTION,
    POLICY_PRIVATE_CONNECTION, POLICY_REBIND, POLICY_RELATIVE_REQUEST_TIMEOUT,
    POLICY_RELATIVE_ROUNDTRIP_TIMEOUT, POLICY_REPLY_END_TIME, POLICY_REQUEST_END_TIME,
    POLICY_SYNC_SCOPE,
};

pub use bands::{BandsError, PriorityBand, PriorityBands};
pub(crate) use ends::{EndPolicies, check_ends, utc_now};
pub use failover::{FailoverPolicy, FailoverSemantics, Heartbeat, RetryBudget};
pub(crate) use levels::{OrbPolicies, effective_overrides, effective_time_out, renew_bindings};
pub use levels::{PolicyCurrent, PolicyManager};
#[cfg(feature = "access")]
pub(crate) use overrides::CallContext;
pub(crate) use overrides::Overrides;
pub use overrides::SetOverride;
pub use protocols::{
    NetworkPriority, Protocol, Protocols, ProtocolsError, TcpProtocolProperties,
    UnixDomainProtocolProperties, UserDatagramProtocolProperties,
};

/// A policy that a client sets for its calls.
///
/// The innermost of three levels has precedence: the reference
/// ([`Object::with_policy_overrides`](crate::Object::with_policy_overrides)), the calling thread
/// ([`Orb::policy_current`](crate::Orb::policy_current)), the ORB
/// ([`Orb::policy_manager`](crate::Orb::policy_manager)).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClientPolicy {
    /// Connections are not shared with other references (RT-CORBA 1.2, “PrivateConnectionPolicy”).
    /// Whether threads share them is the [strategy](crate::ConnectionStrategy)'s.
    PrivateConnection,
    /// One connection for each band of priorities (RT-CORBA 1.2, “Priority Banded Connections”).
    /// The server must have a priority model, and no bands of its own.
    PriorityBandedConnection(PriorityBands),
    /// The protocols that may be used, and their properties (RT-CORBA 1.2, “Protocol
    /// Configuration”). The server must not have such a policy too.
    ClientProtocol(Protocols),
    /// The longest duration of a call in all (CORBA Messaging; the standard counts in 100 ns).
    RelativeRoundtripTimeout(Duration),
    /// The steps that a call may take on its own when its object has moved, or its connection has
    /// ended (CORBA Messaging, `RebindPolicy`).
    Rebind(RebindMode),
    /// The point that a oneway request must reach before its call returns (CORBA Messaging,
    /// `SyncScopePolicy`).
    SyncScope(SyncScope),
    /// The time at which a request expires (CORBA Messaging, `RequestEndTimePolicy`). After it
    /// nothing is sent, and a server that reads the invocation policies does not serve the request:
    /// both are `TIMEOUT`, OMG minor 2, completed `NO`. The clocks of both sides must agree.
    RequestEndTime(SystemTime),
    /// The time at which the reply is of no more use (CORBA Messaging, `ReplyEndTimePolicy`). The
    /// call ends then with `TIMEOUT`, OMG minor 3. Such a server does not serve the request after
    /// it. The clocks of both sides must agree.
    ReplyEndTime(SystemTime),
    /// The longest time from the beginning of a call until its request is served (CORBA Messaging,
    /// `RelativeRequestTimeoutPolicy`). It travels as a time at which the request expires, as with
    /// [`RequestEndTime`](Self::RequestEndTime).
    RelativeRequestTimeout(Duration),
    /// The longest time of an attempt to connect (TAO's `ConnectionTimeoutPolicy`), instead of that
    /// of `-ORBConnectTimeout`.
    ConnectTimeout(Duration),
    /// The bounds within which oneway requests of [`SyncScope::None`] are kept, to be sent together
    /// (TAO's `BufferingConstraintPolicy`). Without it each is sent at once.
    OnewayBuffering(OnewayBuffering),
    /// Whether the server may call back on the connection (CORBA 3.3 part 2, 9.9).
    ///
    /// [`BidirectionalMode::Both`] also needs [`OrbConfig::bidirectional`], a POA with
    /// [`Policy::Bidirectional`], IIOP by TCP or TLS, and GIOP 1.2 on both sides. Otherwise the
    /// connection is an ordinary one. Threads share a bidirectional connection, whatever the
    /// [strategy](crate::ConnectionStrategy), because a lane reads it.
    ///
    /// [`OrbConfig::bidirectional`]: crate::OrbConfig::bidirectional
    /// [`Policy::Bidirectional`]: crate::poa::Policy::Bidirectional
    Bidirectional(BidirectionalMode),
    /// The rules by which calls go on at another address of the reference (Lightweight Fault
    /// Tolerance 1.0, and chronorb's own).
    Failover(FailoverPolicy),
}

/// The bounds within which the oneway requests of a thread are kept, to be sent together.
///
/// They are sent when one of the bounds is reached, before any other request of the thread by the
/// reference, by [`Object::flush_oneways`](crate::Object::flush_oneways), and when the thread or
/// the ORB ends. If the thread makes no further call in time, a thread of the ORB sends them after
/// the delay. It never waits for a server: where there is no room, it tries again every 10 ms, and
/// nothing overtakes the rest. The connections of such a reference are private.
///
/// Requests that are lost, since their connection has ended, are counted as an incident. Requests
/// by datagrams, those that are longer than `octets`, and those of connections with a queue of
/// messages are sent at once.
///
/// ```
/// use std::time::Duration;
///
/// use chronorb_orb::rtcorba::{ClientPolicy, OnewayBuffering, SyncScope};
///
/// let policies = [
///     ClientPolicy::SyncScope(SyncScope::None),
///     ClientPolicy::OnewayBuffering(OnewayBuffering {
///         octets: 16 << 10,
///         requests: 64,
///         delay: Duration::from_millis(5),
///     }),
/// ];
/// # drop(policies);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct OnewayBuffering {
    /// The most octets of their messages.
    pub octets: usize,
    /// Their greatest number.
    pub requests: u32,
    /// The longest time until the first of them is sent, if there is room.
    pub delay: Duration,
}

/// Whether both sides of a connection send requests (`BiDirPolicy::BidirectionalPolicyValue`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum BidirectionalMode {
    /// Only the side that opened it.
    #[default]
    Normal,
    /// Both.
    Both,
}

/// The point that a oneway request must reach before its call returns (`Messaging::SyncScope`).
///
/// The exceptions that occur before that point are raised by the call, and locations are followed.
/// GIOP 1.0 and 1.1 have no [`WithServer`](Self::WithServer): their servers answer after the
/// operation.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SyncScope {
    /// None: the request may be kept in the client ([`ClientPolicy::OnewayBuffering`]). Otherwise
    /// it is sent at once, as with [`WithTransport`](Self::WithTransport).
    None,
    /// The transport of the client.
    #[default]
    WithTransport,
    /// The server: the request has a thread, or a place in a buffer. A full buffer is `TRANSIENT`.
    /// The server may lose the request afterwards, for example to a more urgent one that needs its
    /// place.
    WithServer,
    /// The end of the operation: system exceptions of the servant are raised too.
    WithTarget,
}

/// The steps that a call may take on its own when its object has moved, or its connection has ended
/// (`Messaging::RebindMode`).
///
/// [`Object::validate_connection`](crate::Object::validate_connection) may do it in any case, and
/// so may the first call of a thread at a priority, which binds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum RebindMode {
    /// Follow location forwards, and connect again.
    #[default]
    Transparent,
    /// Connect again, and follow forwards to references with the same priority model, bands and
    /// protocols; any other forward is `REBIND`.
    NoRebind,
    /// Neither: both are `REBIND`. Connections are not closed for being idle, or to make room.
    NoReconnect,
}

/// Names a [`ClientPolicy`] without its value.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ClientPolicyKind {
    /// [`ClientPolicy::PrivateConnection`]
    PrivateConnection,
    /// [`ClientPolicy::PriorityBandedConnection`]
    PriorityBandedConnection,
    /// [`ClientPolicy::ClientProtocol`]
    ClientProtocol,
    /// [`ClientPolicy::RelativeRoundtripTimeout`]
    RelativeRoundtripTimeout,
    /// [`ClientPolicy::Rebind`]
    Rebind,
    /// [`ClientPolicy::SyncScope`]
    SyncScope,
    /// [`ClientPolicy::RequestEndTime`]
    RequestEndTime,
    /// [`ClientPolicy::ReplyEndTime`]
    ReplyEndTime,
    /// [`ClientPolicy::RelativeRequestTimeout`]
    RelativeRequestTimeout,
    /// [`ClientPolicy::ConnectTimeout`]
    ConnectTimeout,
    /// [`ClientPolicy::OnewayBuffering`]
    OnewayBuffering,
    /// [`ClientPolicy::Bidirectional`]
    Bidirectional,
    /// [`ClientPolicy::Failover`]
    Failover,
}

impl ClientPolicy {
    /// Returns the kind of the policy.
    pub const fn kind(&self) -> ClientPolicyKind {
        match self {
            Self::PrivateConnection => ClientPolicyKind::PrivateConnection,
            Self::PriorityBandedConnection(_) => ClientPolicyKind::PriorityBandedConnection,
            Self::ClientProtocol(_) => ClientPolicyKind::ClientProtocol,
            Self::RelativeRoundtripTimeout(_) => ClientPolicyKind::RelativeRoundtripTimeout,
            Self::Rebind(_) => ClientPolicyKind::Rebind,
            Self::SyncScope(_) => ClientPolicyKind::SyncScope,
            Self::RequestEndTime(_) => ClientPolicyKind::RequestEndTime,
            Self::ReplyEndTime(_) => ClientPolicyKind::ReplyEndTime,
            Self::RelativeRequestTimeout(_) => ClientPolicyKind::RelativeRequestTimeout,
            Self::ConnectTimeout(_) => ClientPolicyKind::ConnectTimeout,
            Self::OnewayBuffering(_) => ClientPolicyKind::OnewayBuffering,
            Self::Bidirectional(_) => ClientPolicyKind::Bidirectional,
            Self::Failover(_) => ClientPolicyKind::Failover,
        }
    }
}

impl ClientPolicyKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::PrivateConnection,
        Self::PriorityBandedConnection,
        Self::ClientProtocol,
        Self::RelativeRoundtripTimeout,
        Self::Rebind,
        Self::SyncScope,
        Self::RequestEndTime,
        Self::ReplyEndTime,
        Self::RelativeRequestTimeout,
        Self::ConnectTimeout,
        Self::OnewayBuffering,
        Self::Bidirectional,
        Self::Failover,
    ];

    /// The number of it (`CORBA::PolicyType`): the standard's, TAO's, or chronorb's own.
    pub const fn policy_type(self) -> u32 {
        match self {
            Self::PrivateConnection => POLICY_PRIVATE_CONNECTION,
            Self::PriorityBandedConnection => POLICY_PRIORITY_BANDED_CONNECTION,
            Self::ClientProtocol => POLICY_CLIENT_PROTOCOL,
            Self::RelativeRoundtripTimeout => POLICY_RELATIVE_ROUNDTRIP_TIMEOUT,
            Self::Rebind => POLICY_REBIND,
            Self::SyncScope => POLICY_SYNC_SCOPE,
            Self::RequestEndTime => POLICY_REQUEST_END_TIME,
            Self::ReplyEndTime => POLICY_REPLY_END_TIME,
            Self::RelativeRequestTimeout => POLICY_RELATIVE_REQUEST_TIMEOUT,
            Self::ConnectTimeout => POLICY_CONNECTION_TIMEOUT,
            Self::OnewayBuffering => POLICY_BUFFERING_CONSTRAINT,
            Self::Bidirectional => POLICY_BIDIRECTIONAL,
            Self::Failover => POLICY_FAILOVER,
        }
    }
}
