use chronorb_cdr::CdrError;

use crate::codesets::CodeSetComponentInfo;
use crate::encapsulation::{self, Reader};

/// Which ORB made the reference.
pub const TAG_ORB_TYPE: u32 = 0;
/// The code sets of the server.
pub const TAG_CODE_SETS: u32 = 1;
/// Policies of the object that clients must know.
pub const TAG_POLICIES: u32 = 2;
/// One more address of the server.
pub const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;
/// The addresses of the server, each for one priority, as TAO writes them.
pub const TAG_TAO_ENDPOINTS: u32 = 0x5441_4f02;

/// The type of the PriorityModel policy of RT-CORBA.
pub const POLICY_PRIORITY_MODEL: u32 = 40;

/// A part of a profile, as it travels. Whoever does not know its tag passes
/// it on as it is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedComponent {
    /// What it is, as [`TAG_CODE_SETS`].
    pub tag: u32,
    /// Its content, an encapsulation.
    pub data: Vec<u8>,
}

/// The error of reading the content of a component.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the component of tag {tag:#x} is malformed: {cause}")]
pub struct ComponentError {
    /// The tag of the component.
    pub tag: u32,
    /// What is wrong with its content.
    pub cause: CdrError,
}

impl TaggedComponent {
    /// Reads the content.
    ///
    /// # Errors
    /// [`ComponentError`] if the tag is known and the content is not what it
    /// says. A PriorityModel among the policies is checked too.
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
            TAG_TAO_ENDPOINTS => Self::TaoEndpoints(reader()?.read_seq(|r| {
                Ok(TaoEndpoint {
                    host: r.read_string()?,
                    port: r.read_u16()?,
                    priority: r.read_i16()?,
                })
            })?),
            _ => Self::Unknown(TaggedComponent {
                tag,
                data: data.to_vec(),
            }),
        })
    }
}

/// An address of a server, and the priority of the requests that go there.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaoEndpoint {
    /// A name or an address.
    pub host: String,
    /// The TCP port; TAO's IDL calls it a `short`, but means its bits.
    pub port: u16,
    /// The CORBA priority, 0 to 32767; TAO writes -1 for any.
    pub priority: i16,
}

/// Policies of the object that clients must know: CORBA Messaging, clause 17.3.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Policies(pub Vec<PolicyValue>);

/// A policy, as it travels.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PolicyValue {
    /// The type of the policy, as [`POLICY_PRIORITY_MODEL`].
    pub policy_type: u32,
    /// Its value, an encapsulation.
    pub data: Vec<u8>,
}

/// The value of the PriorityModel policy: RT-CORBA 1.2, clause 5.7.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PriorityModelValue {
    /// 0 is CLIENT_PROPAGATED, 1 is SERVER_DECLARED.
    pub model: u32,
    /// The CORBA priority of requests that bring none, or of all.
    pub server_priority: i16,
}

impl Policies {
    /// The PriorityModel policy alone.
    ///
    /// # Errors
    /// None in practice: the value is small.
    pub fn with_priority_model(value: PriorityModelValue) -> Result<Self, CdrError> {
        Ok(Self(vec![PolicyValue {
            policy_type: POLICY_PRIORITY_MODEL,
            data: encapsulation::build(|e| {
                e.write_u32(value.model)?;
                e.write_i16(value.server_priority)
            })?,
        }]))
    }

    /// The PriorityModel policy, if it is among them.
    pub fn priority_model(&self) -> Option<PriorityModelValue> {
        self.0
            .iter()
            .find(|policy| policy.policy_type == POLICY_PRIORITY_MODEL)
            .and_then(|policy| PriorityModelValue::decode(&policy.data).ok())
    }

    fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            e.write_len(self.0.len())?;
            self.0.iter().try_for_each(|policy| {
                e.write_u32(policy.policy_type)?;
                e.write_octet_seq(&policy.data)
            })
        })
    }

    fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let policies = Reader::new(data)?.read_seq(|r| {
            Ok(PolicyValue {
                policy_type: r.read_u32()?,
                data: r.read_octet_seq()?.to_vec(),
            })
        })?;
        for policy in &policies {
            if policy.policy_type == POLICY_PRIORITY_MODEL {
                PriorityModelValue::decode(&policy.data)?;
            }
        }
        Ok(Self(policies))
    }
}

impl PriorityModelValue {
    fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        let model = r.read_u32()?;
        if model > 1 {
            return Err(CdrError::InvalidEnum);
        }
        Ok(Self {
            model,
            server_priority: r.read_i16()?,
        })
    }
}
