//! Tagged components of profiles.

use chronorb_cdr::CdrError;

use crate::codesets::CodeSetComponentInfo;
use crate::encapsulation::{self, Reader};
use crate::policies::Policies;
use crate::ssl::SslSecTrans;

/// The ORB that made the reference.
pub const TAG_ORB_TYPE: u32 = 0;
/// The code sets of the server.
pub const TAG_CODE_SETS: u32 = 1;
/// Policies of the object that clients must know.
pub const TAG_POLICIES: u32 = 2;
/// One more address of the server.
pub const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;
/// The TLS endpoint of the server, and its requirements on clients.
pub const TAG_SSL_SEC_TRANS: u32 = 20;
/// The addresses of the server, each for one priority, as TAO writes them.
pub const TAG_TAO_ENDPOINTS: u32 = 0x5441_4f02;

/// A component of a profile in its wire form. A component with an unknown tag is passed on
/// unchanged.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedComponent {
    /// The kind of the component, for example [`TAG_CODE_SETS`].
    pub tag: u32,
    /// The content, an encapsulation.
    pub data: Vec<u8>,
}

/// The error of reading the content of a component.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the component of tag {tag:#x} is malformed: {cause}")]
pub struct ComponentError {
    /// The tag of the component.
    pub tag: u32,
    /// The error in its content.
    pub cause: CdrError,
}

impl TaggedComponent {
    /// Reads the content.
    ///
    /// # Errors
    /// [`ComponentError`] if the tag is known and the content is malformed. A PriorityModel among
    /// the policies is checked too.
    pub fn typed(&self) -> Result<Component, ComponentError> {
        Component::decode(self.tag, &self.data).map_err(|cause| ComponentError {
            tag: self.tag,
            cause,
        })
    }
}

/// The content of a component.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Component {
    /// [`TAG_ORB_TYPE`]
    OrbType(u32),
    /// [`TAG_CODE_SETS`]
    CodeSets(CodeSetComponentInfo),
    /// [`TAG_POLICIES`]
    Policies(Policies),
    /// [`TAG_ALTERNATE_IIOP_ADDRESS`]
    AlternateIiopAddress {
        /// A name or an address.
        host: String,
        /// The TCP port.
        port: u16,
    },
    /// [`TAG_SSL_SEC_TRANS`]
    SslSecTrans(SslSecTrans),
    /// [`TAG_TAO_ENDPOINTS`]
    TaoEndpoints(Vec<TaoEndpoint>),
    /// A component whose tag is not known here.
    Unknown(TaggedComponent),
}

impl Component {
    /// The component as it travels.
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if a host
    /// cannot be written.
    pub fn tagged(&self) -> Result<TaggedComponent, CdrError> {
        let (tag, data) = match self {
            Self::OrbType(orb) => (TAG_ORB_TYPE, encapsulation::build(|e| e.write_u32(*orb))?),
            Self::CodeSets(info) => (TAG_CODE_SETS, info.encode()?),
            Self::Policies(policies) => (TAG_POLICIES, policies.encode()?),
            Self::AlternateIiopAddress { host, port } => (
                TAG_ALTERNATE_IIOP_ADDRESS,
                encapsulation::build(|e| {
                    e.write_str(host)?;
                    e.write_u16(*port)
                })?,
            ),
            Self::SslSecTrans(ssl) => (TAG_SSL_SEC_TRANS, ssl.encode()?),
            Self::TaoEndpoints(endpoints) => (
                TAG_TAO_ENDPOINTS,
                encapsulation::build(|e| {
                    e.write_len(endpoints.len())?;
                    endpoints.iter().try_for_each(|endpoint| {
                        e.write_str(&endpoint.host)?;
                        e.write_u16(endpoint.port)?;
                        e.write_i16(endpoint.priority)
                    })
                })?,
            ),
            Self::Unknown(component) => return Ok(component.clone()),
        };
        Ok(TaggedComponent { tag, data })
    }

    fn decode(tag: u32, data: &[u8]) -> Result<Self, CdrError> {
        let reader = || Reader::new(data);
        Ok(match tag {
            TAG_ORB_TYPE => Self::OrbType(reader()?.read_u32()?),
            TAG_CODE_SETS => Self::CodeSets(CodeSetComponentInfo::decode(data)?),
            TAG_POLICIES => Self::Policies(Policies::decode(data)?),
            TAG_ALTERNATE_IIOP_ADDRESS => {
                let mut r = reader()?;
                Self::AlternateIiopAddress {
                    host: r.read_string()?,
                    port: r.read_u16()?,
                }
            }
            TAG_SSL_SEC_TRANS => Self::SslSecTrans(SslSecTrans::decode(data)?),
            TAG_TAO_ENDPOINTS => Self::TaoEndpoints(TaoEndpoint::decode(data)?),
            _ => Self::Unknown(TaggedComponent {
                tag,
                data: data.to_vec(),
            }),
        })
    }
}

/// An address of a lane, and the priority of the requests that clients send to it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaoEndpoint {
    /// A name or an address.
    pub host: String,
    /// The TCP port. TAO's IDL declares a `short`; its bits are the unsigned port.
    pub port: u16,
    /// The CORBA priority, 0 to 32767. TAO writes -1 if the endpoint takes requests of any
    /// priority.
    pub priority: i16,
}

impl TaoEndpoint {
    /// Reads the content of a component [`TAG_TAO_ENDPOINTS`], or of another one of its form.
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn decode(data: &[u8]) -> Result<Vec<Self>, CdrError> {
        Reader::new(data)?.read_seq(|r| {
            Ok(Self {
                host: r.read_string()?,
                port: r.read_u16()?,
                priority: r.read_i16()?,
            })
        })
    }
}

/// The equivalent of [`TaoEndpoint`] in profiles of UIOP and SHMIOP:
/// [`PathProfile`](crate::PathProfile).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaoPathEndpoint {
    /// The path.
    pub path: String,
    /// As in [`TaoEndpoint`].
    pub priority: i16,
}

impl TaoPathEndpoint {
    /// The component [`TAG_TAO_ENDPOINTS`] of a profile whose addresses are paths.
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if a path cannot be written.
    pub fn tagged(endpoints: &[Self]) -> Result<TaggedComponent, CdrError> {
        let data = encapsulation::build(|e| {
            e.write_len(endpoints.len())?;
            endpoints.iter().try_for_each(|endpoint| {
                e.write_str(&endpoint.path)?;
                e.write_i16(endpoint.priority)
            })
        })?;
        Ok(TaggedComponent {
            tag: TAG_TAO_ENDPOINTS,
            data,
        })
    }

    /// Reads the content of such a component.
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn decode(data: &[u8]) -> Result<Vec<Self>, CdrError> {
        Reader::new(data)?.read_seq(|r| {
            Ok(Self {
                path: r.read_string()?,
                priority: r.read_i16()?,
            })
        })
    }
}
