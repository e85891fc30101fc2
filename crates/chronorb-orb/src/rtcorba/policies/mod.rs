//! Policies that a client sets for its calls: on its ORB, its threads and its references.
//!
//! Source: CORBA 3.3 part 1, clause 8.9 (policies and their levels), clause 17 (Messaging), and
//! Real-Time CORBA 1.2, clauses 5.13 to 5.15. In the standard a policy is an object of one of many
//! interfaces. Here it is a [`ClientPolicy`], which can only be one that clients may set. So there
//! is no `NO_PERMISSION` for a policy of the server at the wrong level.

mod bands;
mod effective;
mod failover;
mod levels;
mod overrides;
mod protocols;

use std::time::Duration;

use chronorb_giop::{
    POLICY_CLIENT_PROTOCOL, POLICY_FAILOVER, POLICY_PRIORITY_BANDED_CONNECTION,
    POLICY_PRIVATE_CONNECTION, POLICY_REBIND, POLICY_RELATIVE_ROUNDTRIP_TIMEOUT, POLICY_SYNC_SCOPE,
};

pub use bands::{BandsError, PriorityBand, PriorityBands};
pub(crate) use effective::{Effective, POLICIES_CONFLICT, POLICY_UNREADABLE, effective_policy};
pub use failover::{FailoverPolicy, FailoverSemantics, Heartbeat, RetryBudget};
pub(crate) use levels::{OrbPolicies, effective_overrides, effective_time_out};
pub use levels::{PolicyCurrent, PolicyManager};
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
    /// Connections are not shared with other references (RT-CORBA 1.2, 5.14). Whether threads share
    /// them is the [strategy](crate::ConnectionStrategy)'s.
    PrivateConnection,
    /// One connection for each band of priorities (RT-CORBA 1.2, 5.13). The server must have a
    /// priority model, and no bands of its own.
    PriorityBandedConnection(PriorityBands),
    /// The protocols that may be used, and their properties (RT-CORBA 1.2, 5.15). The server must
    /// not have such a policy too.
    ClientProtocol(Protocols),
    /// The longest duration of a call in all (CORBA Messaging; the standard counts in 100 ns).
    RelativeRoundtripTimeout(Duration),
    /// The steps that a call may take on its own when its object has moved, or its connection has
    /// ended (CORBA Messaging, `RebindPolicy`).
    Rebind(RebindMode),
    /// The point that a oneway request must reach before its call returns (CORBA Messaging,
    /// `SyncScopePolicy`).
    SyncScope(SyncScope),
    /// The rules by which calls go on at another address of the reference (Lightweight Fault
    /// Tolerance 1.0, and chronorb's own).
    Failover(FailoverPolicy),
}

/// The point that a oneway request must reach before its call returns (`Messaging::SyncScope`).
///
/// The exceptions that occur before that point are raised by the call, and locations are followed.
/// GIOP 1.0 and 1.1 have no [`WithServer`](Self::WithServer): their servers answer after the
/// operation.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SyncScope {
    /// None: the request may be kept in the client. This ORB sends it at once, as with
    /// [`WithTransport`](Self::WithTransport).
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
            Self::Failover(_) => ClientPolicyKind::Failover,
        }
    }
}

impl ClientPolicyKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PrivateConnection,
        Self::PriorityBandedConnection,
        Self::ClientProtocol,
        Self::RelativeRoundtripTimeout,
        Self::Rebind,
        Self::SyncScope,
        Self::Failover,
    ];

    /// The standard's number of it (`CORBA::PolicyType`); for [`Failover`](Self::Failover)
    /// chronorb's own.
    pub const fn policy_type(self) -> u32 {
        match self {
            Self::PrivateConnection => POLICY_PRIVATE_CONNECTION,
            Self::PriorityBandedConnection => POLICY_PRIORITY_BANDED_CONNECTION,
            Self::ClientProtocol => POLICY_CLIENT_PROTOCOL,
            Self::RelativeRoundtripTimeout => POLICY_RELATIVE_ROUNDTRIP_TIMEOUT,
            Self::Rebind => POLICY_REBIND,
            Self::SyncScope => POLICY_SYNC_SCOPE,
            Self::Failover => POLICY_FAILOVER,
        }
    }
}
