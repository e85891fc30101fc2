//! The combination of a client's policies with those in a reference.

use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};

use super::Profile;
use crate::rtcorba::policies::{
    BidirectionalMode, ClientPolicy, ClientPolicyKind, EndPolicies, FailoverPolicy,
    OnewayBuffering, Overrides, PriorityBands, Protocols, RebindMode, SyncScope,
};

/// The policies in effect for a call by a reference.
#[derive(Clone, Debug)]
pub(crate) struct Effective {
    /// Whether connections belong to the reference alone.
    pub(crate) private: bool,
    pub(crate) bands: Option<PriorityBands>,
    /// The permitted protocols; any, if none is named.
    pub(crate) protocols: Option<Protocols>,
    pub(crate) rebind: RebindMode,
    pub(crate) sync_scope: SyncScope,
    pub(crate) ends: EndPolicies,
    /// The longest time of an attempt to connect; `None` for that of the ORB.
    pub(crate) connect_timeout: Option<Duration>,
    /// The bounds within which oneways are kept, if they may be.
    pub(crate) buffering: Option<OnewayBuffering>,
    /// Whether the server may call back on the connection.
    #[cfg_attr(not(feature = "bidir"), expect(dead_code, reason = "no connection is"))]
    pub(crate) is_bidirectional: bool,
    /// `None` if connections must not be made again.
    pub(crate) failover: Option<FailoverPolicy>,
}

impl Effective {
    /// Reconciles the policies of the client with those of the reference (CORBA 3.3, 8.3.8).
    ///
    /// # Errors
    /// The policies that contradict each other, or that this ORB cannot follow.
    pub(crate) fn of(client: &Overrides, profile: &Profile) -> Result<Self, Vec<ClientPolicy>> {
        let mut inconsistent = Vec::new();
        let bands = one_of(&client.bands, &profile.bands).unwrap_or_else(|both| {
            let both = both.map(|bands| ClientPolicy::PriorityBandedConnection(bands.clone()));
            inconsistent.extend(both);
            None
        });
        if let Some(bands) = bands
            && profile.priority_model.is_none()
        {
            // A server without a priority model serves all priorities alike.
            inconsistent.push(ClientPolicy::PriorityBandedConnection(bands.clone()));
        }
        let protocols = one_of(&client.protocols, &profile.protocols).unwrap_or_else(|both| {
            inconsistent.extend(both.map(|p| ClientPolicy::ClientProtocol(p.clone())));
            None
        });
        if let Some(protocols) = protocols
            && !profile
                .ways
                .iter()
                .any(|way| protocols.rank(way.protocol).is_some())
        {
            inconsistent.push(ClientPolicy::ClientProtocol(protocols.clone()));
        }
        if inconsistent.is_empty() {
            let scope = client.sync_scope.unwrap_or_default();
            let buffering = client.buffering.filter(|_| scope == SyncScope::None);
            Ok(Self {
                // Requests of others would overtake those that are kept.
                private: client.private || buffering.is_some(),
                bands: bands.cloned(),
                protocols: protocols.cloned(),
                rebind: client.rebind_mode(),
                sync_scope: scope,
                buffering,
                ends: client.ends,
                connect_timeout: client.connect_timeout,
                is_bidirectional: client.bidirectional == Some(BidirectionalMode::Both),
                failover: client
                    .failover
                    .as_deref()
                    .copied()
                    .filter(|_| client.rebind_mode() != RebindMode::NoReconnect),
            })
        } else {
            Err(inconsistent)
        }
    }
}

/// Returns the policy of this kind in effect for calls by the reference (`Object::_get_policy`).
///
/// # Errors
/// `INV_POLICY`: OMG minor 1 if both sides have one, and only one may; chronorb's minor 2 if one in
/// the reference is malformed.
pub(crate) fn effective_policy(
    client: &Overrides,
    profile: Option<&Profile>,
    kind: ClientPolicyKind,
) -> Result<Option<ClientPolicy>, SystemException> {
    match (kind, profile) {
        (
            ClientPolicyKind::PriorityBandedConnection | ClientPolicyKind::ClientProtocol,
            Some(profile),
        ) if profile.has_unreadable_policy => Err(POLICY_UNREADABLE),
        (ClientPolicyKind::PriorityBandedConnection, Some(profile)) => {
            let bands = one_of(&client.bands, &profile.bands).map_err(|_| POLICIES_CONFLICT)?;
            Ok(bands.cloned().map(ClientPolicy::PriorityBandedConnection))
        }
        (ClientPolicyKind::ClientProtocol, Some(profile)) => {
            let protocols = one_of(&client.protocols, &profile.protocols);
            let protocols = protocols.map_err(|_| POLICIES_CONFLICT)?;
            Ok(protocols.cloned().map(ClientPolicy::ClientProtocol))
        }
        _ => Ok(client.get(kind)),
    }
}

/// Returns the policy of the one side that has it. If both have it they are incompatible, even with
/// equal values (RT-CORBA 1.2, “Priority Banded Connections”; RT-CORBA 1.2, “Protocol
/// Configuration”).
fn one_of<'p, P>(
    client: &'p Option<P>,
    server: &'p Option<P>,
) -> Result<Option<&'p P>, [&'p P; 2]> {
    match (client, server) {
        (Some(client), Some(server)) => Err([client, server]),
        (one, other) => Ok(one.as_ref().or(other.as_ref())),
    }
}

/// The policies of client and server do not agree.
pub(crate) const POLICIES_CONFLICT: SystemException =
    SystemException::no(SystemExceptionKind::InvPolicy, minor::POLICIES_CONFLICT);
/// A policy in the reference cannot be read.
pub(crate) const POLICY_UNREADABLE: SystemException =
    SystemException::no(SystemExceptionKind::InvPolicy, minor::POLICY_UNREADABLE);
