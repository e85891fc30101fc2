//! Protocols: GIOP over the available transports, and their addresses in object references.
//!
//! The tutorial's pluggable protocols framework: no module above this one knows a transport, and
//! this module has no part in requests. The protocols of this ORB are in `builtin.rs`, each behind
//! a cargo feature of its name; an application adds its own by
//! [`OrbConfig::add_protocol`](crate::OrbConfig::add_protocol).

mod builtin;
mod form;
#[cfg(feature = "miop")]
mod group;
#[cfg(feature = "uiop")]
mod omniorb;
#[cfg(any(feature = "uiop", feature = "shmiop"))]
mod place;
mod registry;
#[cfg(feature = "riop")]
mod riop;
#[cfg(feature = "ssliop")]
mod ssliop;
#[cfg(any(feature = "faults", feature = "trace"))]
mod wrapping;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use chronorb_cdr::CdrError;
use chronorb_giop::{TAG_INTERNET_IOP, TaggedComponent, TaggedProfile, Version};
use chronorb_transport::{Address, Endpoint, Messages, Transport};

pub use form::AddressForm;
pub(crate) use form::ProfileParts;
#[cfg(test)]
pub(crate) use registry::LEFT_OUT;
pub(crate) use registry::{ProtocolProblem, Registry};
#[cfg(feature = "ssliop")]
pub(crate) use ssliop::{is_forbidden, requires_protection};

/// A protocol: messages over a transport, and the form of its addresses in references.
///
/// A handle; clones are the same protocol.
#[derive(Clone)]
pub struct PluggableProtocol {
    transport: Arc<dyn Transport>,
    tag: u32,
    /// References have profiles of this protocol, with its tag.
    profiles: Option<AddressForm>,
    /// References also publish it by components of the profile of IIOP.
    components: Option<Components>,
    place: Option<Place>,
    standing: ProtocolRole,
}

/// The role of a protocol among those of its tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ProtocolRole {
    /// The tag is its own.
    Own,
    /// The tag is that of another one, and so are references: only how octets are moved differs.
    Beside,
    /// As `Beside`, for servers only.
    #[cfg(feature = "riop")]
    BesideForServers,
}

impl ProtocolRole {
    /// Whether clients use it.
    fn calls(self) -> bool {
        #[cfg(feature = "riop")]
        return self != Self::BesideForServers;
        #[cfg(not(feature = "riop"))]
        true
    }
}

/// Addresses as components of the profile of IIOP.
#[derive(Clone, Copy)]
pub(crate) struct Components {
    pub(crate) write: fn(&[Address], Plain) -> Result<Vec<TaggedComponent>, CdrError>,
    /// Returns the addresses in the components of a profile, at this host of IIOP.
    pub(crate) read: fn(&[TaggedComponent], &str) -> Vec<Address>,
    /// The tag of the component with the lanes' endpoints, in the form of IIOP; `None` if they are
    /// in profiles of the protocol's own.
    pub(crate) lanes: Option<u32>,
}

/// Whether the server can be reached by IIOP itself, too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Plain {
    Open,
    Closed,
}

/// Addresses that mean something in one place only.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Returns the component with the name of that place.
    pub(crate) component: fn() -> Option<TaggedComponent>,
    /// Whether a profile with these components is of here. Of a reference of this process it is
    /// enough that it may be.
    pub(crate) is_here: fn(&[TaggedComponent], Source) -> bool,
}

/// The source of a reference, which decides how far it is trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// This process: its POAs, texts and files.
    Application,
    /// A message. A local address in it is used only if the reference proves that it is of this
    /// machine: else a peer could have this process connect to any local socket.
    ///
    /// The number is that of the connection, if its client claims listen points.
    Message(Option<NonZeroU64>),
}

impl Source {
    pub(crate) fn claimant(self) -> Option<NonZeroU64> {
        match self {
            Self::Message(claimant) => claimant,
            Self::Application => None,
        }
    }
}

impl PluggableProtocol {
    /// Makes a protocol whose references have profiles of this tag, with addresses of this form,
    /// and otherwise the content of a profile of IIOP.
    ///
    /// The scheme of the transport is that of its endpoints and of its `corbaloc:` URLs. Tags are
    /// given out by the OMG; a range is free for one's own experiments.
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>, tag: u32, form: AddressForm) -> Self {
        Self {
            transport,
            tag,
            profiles: Some(form),
            components: None,
            place: None,
            standing: ProtocolRole::Own,
        }
    }

    /// Another way to move the octets of IIOP, whose references are those of IIOP, so that peers
    /// need not know it.
    ///
    /// Makes a protocol whose endpoints are published as those of IIOP. Calls to each published
    /// address may use it or IIOP, in the order of
    /// [`OrbConfig::protocols`](crate::OrbConfig::protocols).
    #[must_use]
    pub fn beside_iiop(transport: Arc<dyn Transport>) -> Self {
        Self {
            standing: ProtocolRole::Beside,
            ..Self::new(transport, TAG_INTERNET_IOP, AddressForm::HOST_AND_PORT)
        }
    }

    /// Restricts the protocol to servers.
    #[cfg(feature = "riop")]
    fn for_servers(self) -> Self {
        Self {
            standing: ProtocolRole::BesideForServers,
            ..self
        }
    }

    /// The protocol of groups, by this transport.
    #[cfg(feature = "miop")]
    pub(crate) fn of_groups(transport: Arc<dyn Transport>) -> Self {
        Self::new(transport, chronorb_giop::TAG_UIPMC, AddressForm::GROUP)
    }

    /// Declares that addresses are files of this machine.
    #[cfg(any(feature = "uiop", feature = "shmiop"))]
    fn by_files(self) -> Self {
        Self {
            place: Some(place::OF_FILES),
            ..self
        }
    }

    /// Declares that its files are published to omniORB, and by it.
    #[cfg(feature = "uiop")]
    fn with_omniorb(self) -> Self {
        Self {
            components: Some(omniorb::UNIX),
            ..self
        }
    }

    /// The scheme of its endpoints, for example `iiop`.
    pub fn scheme(&self) -> &str {
        self.transport.scheme()
    }

    /// Returns the tag of its profiles (`IOP::ProfileId`), if it has some.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns the transport.
    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// Any address of it, where the transport chooses one.
    pub(crate) fn any_endpoint(&self) -> Endpoint {
        Endpoint {
            scheme: self.scheme().to_owned(),
            version: None,
            address: self.profiles.unwrap_or(AddressForm::HOST_AND_PORT).any(),
            options: Vec::new(),
        }
    }

    /// Returns a profile with only these parts.
    pub(crate) fn profile(
        &self,
        version: Version,
        address: Address,
        object_key: &[u8],
    ) -> Result<TaggedProfile, CdrError> {
        let mut parts = ProfileParts {
            version,
            address,
            object_key: object_key.to_vec(),
            components: Vec::new(),
        };
        let mut tag = self.tag;
        if let (None, Some(components)) = (self.profiles, self.components) {
            let (host, _) = parts.address.as_host().ok_or(CdrError::BadReference)?;
            let host = Address::host(host, 0);
            let address = std::mem::replace(&mut parts.address, host);
            parts.version = version.max(Version::V1_1);
            parts.components = (components.write)(&[address], Plain::Closed)?;
            tag = TAG_INTERNET_IOP;
        }
        let form = self.profiles.unwrap_or(AddressForm::HOST_AND_PORT);
        Ok(TaggedProfile {
            tag,
            data: form.encode(parts)?,
        })
    }

    pub(crate) fn profiles(&self) -> Option<AddressForm> {
        self.profiles
    }

    pub(crate) fn components(&self) -> Option<Components> {
        self.components
    }

    pub(crate) fn place(&self) -> Option<Place> {
        self.place
    }
}

impl fmt::Debug for PluggableProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluggableProtocol")
            .field("scheme", &self.scheme())
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

/// A way to a server: a protocol, and an address there.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Way {
    /// The tag by which references name the protocol.
    pub(crate) protocol: u32,
    /// The position in the ORB's order of preference, from 0.
    pub(crate) rank: usize,
    pub(crate) address: Address,
}

impl Way {
    /// The host; empty for an address on this machine that has none.
    pub(crate) fn host(&self) -> &str {
        self.address.as_host().map_or("", |(host, _)| host)
    }

    /// Whether references publish both alike.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        (self.protocol, &self.address) == (other.protocol, &other.address)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// Returns the message format: GIOP messages of at most so many octets.
pub(crate) fn messages(max: usize) -> Messages {
    Messages {
        len: chronorb_giop::framing::message_len,
        max,
    }
}
