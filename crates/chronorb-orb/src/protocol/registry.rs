//! The protocols that an ORB has.

use chronorb_giop::{Ior, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TaggedProfile};
use chronorb_transport::{Address, Endpoint};
use thiserror::Error;

use super::{AddressForm, PluggableProtocol, ProtocolRole, Way, builtin};
use crate::config::OrbConfig;

/// The protocols of an ORB, the preferred one first.
#[derive(Debug)]
pub(crate) struct Registry(Vec<PluggableProtocol>);

/// Protocols, or endpoints of them, that are not available.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub(crate) enum ProtocolProblem {
    #[error("there is no protocol {0:?}; there are {1}")]
    Unknown(String, String),
    /// The feature of its name is left out.
    #[error("{}", crate::config::lacks(.0))]
    LeftOut(&'static str),
    #[error("the protocol {0:?} is there twice")]
    Twice(String),
    #[error("endpoint \"{0}\": {1}")]
    Unlistenable(Endpoint, Box<Self>),
    #[error(transparent)]
    Endpoint(#[from] chronorb_transport::EndpointError),
    /// A prerequisite of a protocol is not available.
    #[cfg_attr(
        not(feature = "ssliop"),
        expect(dead_code, reason = "others need nothing")
    )]
    #[error("{0}")]
    Setting(String),
    /// A value of a setting cannot be used.
    #[cfg(any(feature = "faults", feature = "trace", feature = "riop"))]
    #[error("{problem}")]
    Of {
        setting: &'static str,
        problem: String,
    },
}

impl Registry {
    /// The protocols of the application and this ORB's own; those that the configuration names, if
    /// it names some, in that order. Checks the endpoints of the configuration.
    pub(crate) fn new(config: &OrbConfig) -> Result<Self, ProtocolProblem> {
        let mut all = config.pluggable_protocols.clone();
        all.extend(builtin::protocols(config)?);
        for (index, protocol) in all.iter().enumerate() {
            let is_own = |protocol: &PluggableProtocol| protocol.standing == ProtocolRole::Own;
            let same = |other: &PluggableProtocol| {
                let both_own = is_own(other) && is_own(protocol);
                other.scheme() == protocol.scheme() || both_own && other.tag() == protocol.tag()
            };
            if all[..index].iter().any(same) {
                return Err(ProtocolProblem::Twice(protocol.scheme().to_owned()));
            }
        }
        let this = match &config.protocols[..] {
            [] => Self(all),
            named => {
                let all = Self(all);
                let found = named.iter().map(|scheme| all.find(scheme).cloned());
                let found = found.collect::<Result<Vec<_>, _>>()?;
                let mut twice = named.iter().enumerate();
                if let Some((_, scheme)) = twice.find(|(i, scheme)| named[..*i].contains(scheme)) {
                    return Err(ProtocolProblem::Twice(scheme.clone()));
                }
                Self(found)
            }
        };
        let lanes = config.lane_listen_endpoints.iter().map(|(_, e)| e);
        for endpoint in config.listen_endpoints.iter().chain(lanes) {
            let protocol = this.find(&endpoint.scheme).map_err(|problem| {
                ProtocolProblem::Unlistenable(endpoint.clone(), Box::new(problem))
            })?;
            protocol.transport().check(endpoint)?;
        }
        #[cfg(any(feature = "faults", feature = "trace"))]
        let this = Self(super::wrapping::wrapped(this.0, config)?);
        Ok(this)
    }

    /// The protocol of this scheme.
    pub(crate) fn find(&self, scheme: &str) -> Result<&PluggableProtocol, ProtocolProblem> {
        let mut all = self.0.iter();
        all.find(|protocol| protocol.scheme() == scheme)
            .ok_or_else(|| {
                if let Some(feature) = LEFT_OUT.iter().find(|feature| **feature == scheme) {
                    return ProtocolProblem::LeftOut(feature);
                }
                let schemes: Vec<_> = self.0.iter().map(PluggableProtocol::scheme).collect();
                ProtocolProblem::Unknown(scheme.to_owned(), schemes.join(", "))
            })
    }

    /// The protocol of this tag, if there is one; others beside it only where it is not there.
    pub(crate) fn of_tag(&self, tag: u32) -> Option<&PluggableProtocol> {
        let mut found = None;
        for protocol in self.0.iter().filter(|protocol| protocol.tag() == tag) {
            if found.is_none() || protocol.standing == ProtocolRole::Own {
                found = Some(protocol);
            }
        }
        found
    }

    /// The protocol of a way of this ORB.
    pub(crate) fn of_way(&self, way: &Way) -> Option<&PluggableProtocol> {
        self.0.get(way.rank)
    }

    /// Returns the way to this address by one of these protocols.
    pub(crate) fn way(&self, by: &PluggableProtocol, address: Address) -> Way {
        let mut all = self.0.iter();
        Way {
            protocol: by.tag(),
            rank: all.position(|one| std::ptr::eq(one, by)).unwrap_or(0),
            address,
        }
    }

    /// Returns the protocols by which calls may go to addresses that are published by this tag, the
    /// preferred one first.
    pub(crate) fn callers(&self, tag: u32) -> impl Iterator<Item = &PluggableProtocol> {
        let all = self.0.iter();
        all.filter(move |protocol| protocol.tag() == tag && protocol.standing.calls())
    }

    /// The form of addresses in profiles of this tag, where that is known.
    pub(crate) fn form_of(&self, tag: u32) -> Option<AddressForm> {
        match self.of_tag(tag) {
            Some(protocol) => protocol.profiles(),
            // Profiles of IIOP contain other protocols too.
            None => (tag == TAG_INTERNET_IOP).then_some(AddressForm::HOST_AND_PORT),
        }
    }

    /// Whether the profiles of two references have the same content, in the same order. Malformed
    /// ones must have the same octets. Profiles that only have components say nothing about the
    /// object: an ORB that passes a reference on may add one, as omniORB does on bidirectional
    /// connections.
    pub(crate) fn say_the_same(&self, one: &Ior, other: &Ior) -> bool {
        let same = |(one, other): (&TaggedProfile, &TaggedProfile)| {
            let said = |profile: &TaggedProfile| {
                let form = self.form_of(profile.tag)?;
                let mut parts = form.decode(&profile.data).ok()?;
                for component in &mut parts.components {
                    form.normalize(component);
                }
                parts
                    .components
                    .sort_unstable_by(|a, b| (a.tag, &a.data).cmp(&(b.tag, &b.data)));
                Some(parts)
            };
            let is_read_same = || said(one).is_some_and(|parts| said(other) == Some(parts));
            one == other || (one.tag == other.tag && is_read_same())
        };
        match with_addresses(one).count() {
            0 => one.profiles == other.profiles,
            n => {
                let mut pairs = with_addresses(one).zip(with_addresses(other));
                n == with_addresses(other).count() && pairs.all(same)
            }
        }
    }

    pub(crate) fn has(&self, tag: u32) -> bool {
        self.of_tag(tag).is_some()
    }

    /// All of them, the preferred one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PluggableProtocol> {
        self.0.iter()
    }
}

/// The profiles of a reference that have an address.
fn with_addresses(ior: &Ior) -> impl Iterator<Item = &TaggedProfile> {
    let all = ior.profiles.iter();
    all.filter(|profile| profile.tag != TAG_MULTIPLE_COMPONENTS)
}

/// Schemes of protocols whose features, which have the same names, this program is built without.
pub(crate) const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "uiop"))]
    "uiop",
    #[cfg(not(feature = "shmiop"))]
    "shmiop",
    #[cfg(not(feature = "diop"))]
    "diop",
    #[cfg(not(feature = "miop"))]
    "miop",
    #[cfg(not(feature = "ssliop"))]
    "ssliop",
    #[cfg(not(feature = "riop"))]
    "riop",
];
