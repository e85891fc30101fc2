//! The policies that are set at one level.

#[cfg(feature = "access")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "access")]
use chronorb_giop::ServiceContext;
use chronorb_giop::{SystemException, SystemExceptionKind, minor};

use super::{
    BidirectionalMode, ClientPolicy, ClientPolicyKind, EndPolicies, FailoverPolicy,
    OnewayBuffering, PriorityBands, Protocols, RebindMode, SyncScope,
};

/// The treatment of the present policies of a level (`CORBA::SetOverrideType`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SetOverride {
    /// They are taken away first.
    Set,
    /// They stay, but for those of the same kinds.
    Add,
}

/// The policies of a level, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) private: bool,
    pub(crate) bands: Option<PriorityBands>,
    pub(crate) protocols: Option<Protocols>,
    pub(crate) time_out: Option<Duration>,
    pub(crate) rebind: Option<RebindMode>,
    pub(crate) sync_scope: Option<SyncScope>,
    pub(crate) ends: EndPolicies,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) buffering: Option<OnewayBuffering>,
    pub(crate) bidirectional: Option<BidirectionalMode>,
    /// Boxed, because every reference has the place for it.
    pub(crate) failover: Option<Box<FailoverPolicy>>,
    /// A service context of all requests. No policy: only references have one.
    #[cfg(feature = "access")]
    context: Option<Arc<CallContext>>,
}

/// A service context that requests by a reference have.
#[cfg(feature = "access")]
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) id: u32,
    pub(crate) data: Box<[u8]>,
}

impl Overrides {
    pub(crate) fn is_empty(&self) -> bool {
        self.list(&[]).is_empty()
    }

    pub(crate) fn get(&self, kind: ClientPolicyKind) -> Option<ClientPolicy> {
        match kind {
            ClientPolicyKind::PrivateConnection => {
                self.private.then_some(ClientPolicy::PrivateConnection)
            }
            ClientPolicyKind::PriorityBandedConnection => {
                let bands = self.bands.clone();
                bands.map(ClientPolicy::PriorityBandedConnection)
            }
            ClientPolicyKind::ClientProtocol => {
                self.protocols.clone().map(ClientPolicy::ClientProtocol)
            }
            ClientPolicyKind::RelativeRoundtripTimeout => {
                self.time_out.map(ClientPolicy::RelativeRoundtripTimeout)
            }
            ClientPolicyKind::Rebind => self.rebind.map(ClientPolicy::Rebind),
            ClientPolicyKind::SyncScope => self.sync_scope.map(ClientPolicy::SyncScope),
            ClientPolicyKind::RequestEndTime => {
                self.ends.request_end.map(ClientPolicy::RequestEndTime)
            }
            ClientPolicyKind::ReplyEndTime => self.ends.reply_end.map(ClientPolicy::ReplyEndTime),
            ClientPolicyKind::RelativeRequestTimeout => {
                let time_out = self.ends.request_timeout;
                time_out.map(ClientPolicy::RelativeRequestTimeout)
            }
            ClientPolicyKind::ConnectTimeout => {
                self.connect_timeout.map(ClientPolicy::ConnectTimeout)
            }
            ClientPolicyKind::OnewayBuffering => self.buffering.map(ClientPolicy::OnewayBuffering),
            ClientPolicyKind::Bidirectional => self.bidirectional.map(ClientPolicy::Bidirectional),
            ClientPolicyKind::Failover => self
                .failover
                .as_deref()
                .copied()
                .map(ClientPolicy::Failover),
        }
    }

    /// Returns the policies of some kinds; of all, if none is named.
    pub(crate) fn list(&self, kinds: &[ClientPolicyKind]) -> Vec<ClientPolicy> {
        let kinds = match kinds {
            [] => &ClientPolicyKind::ALL[..],
            some => some,
        };
        kinds.iter().filter_map(|kind| self.get(*kind)).collect()
    }

    /// These with others set or added.
    ///
    /// # Errors
    /// `BAD_PARAM` (OMG minor 30) for two of a kind; `INV_POLICY` (chronorb's minor 3) for a
    /// fail-over policy that cannot be followed.
    pub(crate) fn changed(
        &self,
        policies: &[ClientPolicy],
        how: SetOverride,
    ) -> Result<Self, SystemException> {
        let mut changed = match how {
            SetOverride::Set => Self::default(),
            SetOverride::Add => self.clone(),
        };
        for (i, policy) in policies.iter().enumerate() {
            if policies[..i].iter().any(|p| p.kind() == policy.kind()) {
                let kind = SystemExceptionKind::BadParam;
                return Err(SystemException::no(kind, minor::DUPLICATE_POLICY));
            }
            match policy.clone() {
                ClientPolicy::PrivateConnection => changed.private = true,
                ClientPolicy::PriorityBandedConnection(bands) => changed.bands = Some(bands),
                ClientPolicy::ClientProtocol(protocols) => changed.protocols = Some(protocols),
                ClientPolicy::RelativeRoundtripTimeout(time) => changed.time_out = Some(time),
                ClientPolicy::Rebind(mode) => changed.rebind = Some(mode),
                ClientPolicy::SyncScope(scope) => changed.sync_scope = Some(scope),
                ClientPolicy::RequestEndTime(time) => changed.ends.request_end = Some(time),
                ClientPolicy::ReplyEndTime(time) => changed.ends.reply_end = Some(time),
                ClientPolicy::RelativeRequestTimeout(time) => {
                    changed.ends.request_timeout = Some(time);
                }
                ClientPolicy::ConnectTimeout(time) => changed.connect_timeout = Some(time),
                ClientPolicy::OnewayBuffering(limits) => changed.buffering = Some(limits),
                ClientPolicy::Bidirectional(mode) => changed.bidirectional = Some(mode),
                ClientPolicy::Failover(policy) if policy.is_usable() => {
                    changed.failover = Some(Box::new(policy));
                }
                ClientPolicy::Failover(_) => {
                    let kind = SystemExceptionKind::InvPolicy;
                    return Err(SystemException::no(kind, minor::FAILOVER_UNSUPPORTED));
                }
            }
        }
        Ok(changed)
    }

    pub(crate) fn with_time_out(&self, time_out: Duration) -> Self {
        Self {
            time_out: Some(time_out),
            ..self.clone()
        }
    }

    #[cfg(feature = "access")]
    pub(crate) fn with_context(&self, context: CallContext) -> Self {
        Self {
            context: Some(Arc::new(context)),
            ..self.clone()
        }
    }

    #[cfg(feature = "access")]
    pub(crate) fn context(&self) -> Option<ServiceContext<'_>> {
        self.context.as_deref().map(|context| ServiceContext {
            id: context.id,
            data: &context.data,
        })
    }

    pub(crate) fn time_out(&self) -> Option<Duration> {
        self.time_out
    }

    /// The policies about end times.
    pub(crate) fn ends(&self) -> &EndPolicies {
        &self.ends
    }

    pub(crate) fn rebind_mode(&self) -> RebindMode {
        self.rebind.unwrap_or_default()
    }

    /// These, and those of an outer level of the kinds that are not here.
    pub(super) fn or(mut self, outer: &Self) -> Self {
        self.private |= outer.private;
        self.bands = self.bands.or_else(|| outer.bands.clone());
        self.protocols = self.protocols.or_else(|| outer.protocols.clone());
        self.time_out = self.time_out.or(outer.time_out);
        self.rebind = self.rebind.or(outer.rebind);
        self.sync_scope = self.sync_scope.or(outer.sync_scope);
        self.ends = self.ends.or(&outer.ends);
        self.connect_timeout = self.connect_timeout.or(outer.connect_timeout);
        self.buffering = self.buffering.or(outer.buffering);
        self.bidirectional = self.bidirectional.or(outer.bidirectional);
        self.failover = self.failover.or_else(|| outer.failover.clone());
        self
    }
}
