//! The protocols that an ORB has.

use chronorb_transport::Endpoint;
use thiserror::Error;

use super::{PluggableProtocol, builtin};
use crate::config::OrbConfig;

/// The protocols of an ORB, the preferred one first.
#[derive(Debug)]
pub(crate) struct Registry(Vec<PluggableProtocol>);

/// Protocols, or endpoints of them, that cannot be had.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub(crate) enum ProtocolProblem {
    #[error("there is no protocol {0:?}; there are {1}")]
    Unknown(String, String),
    #[error("the protocol {0:?} is there twice")]
    Twice(String),
    #[error("endpoint \"{0}\": {1}")]
    Unlistenable(Endpoint, Box<Self>),
    #[error(transparent)]
    Endpoint(#[from] chronorb_transport::EndpointError),
    /// What a protocol needs cannot be had.
    #[cfg_attr(
        not(feature = "ssliop"),
        expect(dead_code, reason = "others need nothing")
    )]
    #[error("{0}")]
    Setting(String),
    /// What a setting asks for cannot be had.
    #[cfg(any(feature = "faults", feature = "trace"))]
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
            let same = |other: &PluggableProtocol| {
                other.scheme() == protocol.scheme() || other.tag() == protocol.tag()
            };
            if all[..index].iter().any(same) {
                return Err(ProtocolProblem::Twice(protocol.scheme().to_owned()));
            }
        }
        #[cfg_attr(
            not(any(feature = "faults", feature = "trace")),
            expect(unused_mut, reason = "only what wraps changes them")
        )]
        let mut this = match &config.protocols[..] {
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
        super::wrapping::wrap(&mut this.0, config)?;
        Ok(this)
    }

    /// The protocol of this scheme.
    pub(crate) fn find(&self, scheme: &str) -> Result<&PluggableProtocol, ProtocolProblem> {
        let mut all = self.0.iter();
        all.find(|protocol| protocol.scheme() == scheme)
            .ok_or_else(|| {
                let schemes: Vec<_> = self.0.iter().map(PluggableProtocol::scheme).collect();
                ProtocolProblem::Unknown(scheme.to_owned(), schemes.join(", "))
            })
    }

    /// The protocol of this tag, if there is one.
    pub(crate) fn of_tag(&self, tag: u32) -> Option<&PluggableProtocol> {
        self.0.iter().find(|protocol| protocol.tag() == tag)
    }

    pub(crate) fn has(&self, tag: u32) -> bool {
        self.of_tag(tag).is_some()
    }

    /// All of them, the preferred one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PluggableProtocol> {
        self.0.iter()
    }

    /// How many are preferred to it.
    pub(crate) fn rank(&self, tag: u32) -> usize {
        let position = self.0.iter().position(|protocol| protocol.tag() == tag);
        position.unwrap_or(self.0.len())
    }
}
