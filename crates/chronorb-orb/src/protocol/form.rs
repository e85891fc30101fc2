//! The forms of addresses in profiles and their components.

use chronorb_cdr::CdrError;
use chronorb_giop::{
    Component, IiopProfile, PathProfile, TAG_TAO_ENDPOINTS, TaggedComponent, TaoEndpoint,
    TaoPathEndpoint, Version,
};
use chronorb_transport::Address;

/// The form of an address in the profiles of a protocol. The rest of a profile is as in IIOP:
/// version, address, object key, components.
#[derive(Clone, Copy)]
pub struct AddressForm(&'static Codec);

/// The content of a profile.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct ProfileParts {
    pub(crate) version: Version,
    pub(crate) address: Address,
    pub(crate) object_key: Vec<u8>,
    pub(crate) components: Vec<TaggedComponent>,
}

/// An address of each lane, with the priority of its requests.
type Lanes = Vec<(Address, i16)>;

/// Functions, so that a program has only those of the protocols that it has.
struct Codec {
    /// Returns the address that means any address.
    any: fn() -> Address,
    encode: fn(ProfileParts) -> Result<Vec<u8>, CdrError>,
    decode: fn(&[u8]) -> Result<ProfileParts, CdrError>,
    encode_lanes: fn(Lanes) -> Result<TaggedComponent, CdrError>,
    decode_lanes: fn(&TaggedComponent) -> Option<Lanes>,
}

impl AddressForm {
    /// A string for the host, and an `unsigned short` for the port: IIOP, DIOP.
    pub const HOST_AND_PORT: Self = Self(&Codec {
        any: || Address::host("", 0),
        encode: |parts| {
            let (host, port) = parts.address.as_host().ok_or(CdrError::BadReference)?;
            let profile = IiopProfile {
                version: parts.version,
                host: host.to_owned(),
                port,
                object_key: parts.object_key,
                components: parts.components,
            };
            profile.encode()
        },
        decode: |data| {
            let profile = IiopProfile::decode(data)?;
            Ok(ProfileParts {
                version: profile.version,
                address: Address::host(profile.host, profile.port),
                object_key: profile.object_key,
                components: profile.components,
            })
        },
        encode_lanes: |lanes| {
            let endpoint = |(address, priority): &(Address, i16)| {
                let (host, port) = address.as_host()?;
                Some(TaoEndpoint {
                    host: host.to_owned(),
                    port,
                    priority: *priority,
                })
            };
            Component::TaoEndpoints(lanes.iter().filter_map(endpoint).collect()).tagged()
        },
        decode_lanes: |component| {
            let lanes = TaoEndpoint::decode(&component.data).ok()?;
            let lane = |e: TaoEndpoint| (Address::host(e.host, e.port), e.priority);
            Some(lanes.into_iter().map(lane).collect())
        },
    });

    /// A string: the form of UIOP, and of any other protocol whose addresses are strings.
    pub const PATH: Self = Self(&Codec {
        any: || Address::Path(String::new()),
        encode: |parts| {
            let path = parts.address.as_path().ok_or(CdrError::BadReference)?;
            let profile = PathProfile {
                version: parts.version,
                path: path.to_owned(),
                object_key: parts.object_key,
                components: parts.components,
            };
            profile.encode()
        },
        decode: |data| {
            let profile = PathProfile::decode(data)?;
            Ok(ProfileParts {
                version: profile.version,
                address: Address::Path(profile.path),
                object_key: profile.object_key,
                components: profile.components,
            })
        },
        encode_lanes: |lanes| {
            let endpoint = |(address, priority): &(Address, i16)| {
                Some(TaoPathEndpoint {
                    path: address.as_path()?.to_owned(),
                    priority: *priority,
                })
            };
            TaoPathEndpoint::tagged(&lanes.iter().filter_map(endpoint).collect::<Vec<_>>())
        },
        decode_lanes: |component| {
            let lanes = TaoPathEndpoint::decode(&component.data).ok()?;
            let lane = |e: TaoPathEndpoint| (Address::Path(e.path), e.priority);
            Some(lanes.into_iter().map(lane).collect())
        },
    });

    /// The address of a multicast group in a UIPMC profile, as MIOP uses it.
    #[cfg(feature = "miop")]
    pub(super) const GROUP: Self = Self(&Codec {
        any: || Address::host("", 0),
        encode: super::group::encode,
        decode: super::group::decode,
        encode_lanes: |_| Err(CdrError::BadReference),
        decode_lanes: |_| None,
    });

    /// Returns the address that means any address of a listening server.
    pub(crate) fn any(self) -> Address {
        (self.0.any)()
    }

    pub(crate) fn encode(self, parts: ProfileParts) -> Result<Vec<u8>, CdrError> {
        (self.0.encode)(parts)
    }

    pub(crate) fn decode(self, data: &[u8]) -> Result<ProfileParts, CdrError> {
        (self.0.decode)(data)
    }

    /// Rewrites a valid component, so that components of equal content have equal octets.
    pub(crate) fn normalize(self, component: &mut TaggedComponent) {
        let written = match component.tag {
            TAG_TAO_ENDPOINTS => {
                let lanes = self.decode_lanes(component);
                lanes.and_then(|lanes| self.encode_lanes(lanes).ok())
            }
            _ => component.typed().ok().and_then(|typed| typed.tagged().ok()),
        };
        if let Some(written) = written {
            *component = written;
        }
    }

    /// The component [`TAG_TAO_ENDPOINTS`](chronorb_giop::TAG_TAO_ENDPOINTS).
    pub(crate) fn encode_lanes(self, lanes: Lanes) -> Result<TaggedComponent, CdrError> {
        (self.0.encode_lanes)(lanes)
    }

    /// Parses such a component, whatever its tag.
    pub(crate) fn decode_lanes(self, component: &TaggedComponent) -> Option<Lanes> {
        (self.0.decode_lanes)(component)
    }
}
