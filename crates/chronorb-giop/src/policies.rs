//! Policies in references, and their layouts.

use chronorb_cdr::CdrError;

use crate::encapsulation::{self, Reader};
use crate::profile::TAG_INTERNET_IOP;

/// The type of the PriorityModel policy of RT-CORBA.
pub const POLICY_PRIORITY_MODEL: u32 = 40;
/// The type of the ServerProtocol policy of RT-CORBA.
pub const POLICY_SERVER_PROTOCOL: u32 = 42;
/// The type of the ClientProtocol policy of RT-CORBA.
pub const POLICY_CLIENT_PROTOCOL: u32 = 43;
/// The type of the PrivateConnection policy of RT-CORBA.
pub const POLICY_PRIVATE_CONNECTION: u32 = 44;
/// The type of the PriorityBandedConnection policy of RT-CORBA.
pub const POLICY_PRIORITY_BANDED_CONNECTION: u32 = 45;
/// The type of the Rebind policy of CORBA Messaging.
pub const POLICY_REBIND: u32 = 23;
/// The type of the SyncScope policy of CORBA Messaging.
pub const POLICY_SYNC_SCOPE: u32 = 24;
/// The type of the RequestEndTime policy of CORBA Messaging.
pub const POLICY_REQUEST_END_TIME: u32 = 28;
/// The type of the ReplyEndTime policy of CORBA Messaging.
pub const POLICY_REPLY_END_TIME: u32 = 30;
/// The type of the RelativeRequestTimeout policy of CORBA Messaging.
pub const POLICY_RELATIVE_REQUEST_TIMEOUT: u32 = 31;
/// The type of TAO's BufferingConstraint policy.
pub const POLICY_BUFFERING_CONSTRAINT: u32 = 0x5441_0001;
/// The type of TAO's ConnectionTimeout policy.
pub const POLICY_CONNECTION_TIMEOUT: u32 = 0x5441_0008;
/// The type of the Bidirectional policy of GIOP.
pub const POLICY_BIDIRECTIONAL: u32 = 37;
/// The type of chronorb's policy for fail-over: a number that this ORB chose.
pub const POLICY_FAILOVER: u32 = 0x4352_0001;
/// The type of the RelativeRoundtripTimeout policy of CORBA Messaging.
pub const POLICY_RELATIVE_ROUNDTRIP_TIMEOUT: u32 = 32;

/// Policies of the object that clients must know: CORBA Messaging, clause 17.3.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Policies(pub Vec<PolicyValue>);

/// A policy, as it travels.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PolicyValue {
    /// The type of the policy, as [`POLICY_PRIORITY_MODEL`].
    pub policy_type: u32,
    /// The value, an encapsulation.
    pub data: Vec<u8>,
}

/// The value of the PriorityModel policy: RT-CORBA 1.2, “Real-Time CORBA Priority Models”.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PriorityModelValue {
    /// 0 is CLIENT_PROPAGATED, 1 is SERVER_DECLARED.
    pub model: u32,
    /// The CORBA priority of requests that bring none, or of all.
    pub server_priority: i16,
}

/// One band of the PriorityBandedConnection policy, whose value is a sequence of them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PriorityBandValue {
    /// The least CORBA priority in it.
    pub low: i16,
    /// The greatest.
    pub high: i16,
}

/// One protocol of the ClientProtocol policy, whose value is a sequence of them in order of
/// preference.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ProtocolValue {
    /// IIOP, profile tag 0.
    Iiop(TcpPropertiesValue),
    /// A protocol of another profile tag. The properties that TAO writes for it are skipped, and
    /// written as zeros and empty strings.
    Other(u32),
}

/// Properties of TCP connections.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TcpPropertiesValue {
    /// Octets; 0 for the system's choice.
    pub send_buffer_size: i32,
    /// Octets; 0 for the system's choice.
    pub recv_buffer_size: i32,
    /// `SO_KEEPALIVE`
    pub keep_alive: bool,
    /// `SO_DONTROUTE`
    pub dont_route: bool,
    /// `TCP_NODELAY`
    pub no_delay: bool,
}

impl PolicyValue {
    /// The PriorityModel policy.
    ///
    /// ```text
    /// 0            1     4       8          10
    /// | byte order | pad | model | priority |
    /// ```
    ///
    /// # Errors
    /// None in practice: the value is small.
    pub fn priority_model(value: PriorityModelValue) -> Result<Self, CdrError> {
        let data = encapsulation::build(|e| {
            e.write_u32(value.model)?;
            e.write_i16(value.server_priority)
        })?;
        Ok(Self {
            policy_type: POLICY_PRIORITY_MODEL,
            data,
        })
    }

    /// The PriorityBandedConnection policy.
    ///
    /// ```text
    /// 0            1     4        8     10     12
    /// | byte order | pad | number | low | high | low …
    /// ```
    ///
    /// # Errors
    /// None in practice.
    pub fn priority_bands(bands: &[PriorityBandValue]) -> Result<Self, CdrError> {
        let data = encapsulation::build(|e| {
            e.write_len(bands.len())?;
            bands.iter().try_for_each(|band| {
                e.write_i16(band.low)?;
                e.write_i16(band.high)
            })
        })?;
        Ok(Self {
            policy_type: POLICY_PRIORITY_BANDED_CONNECTION,
            data,
        })
    }

    /// The ClientProtocol policy, in the form of TAO. In the standard the properties are local
    /// objects without a form on the wire.
    ///
    /// ```text
    /// 0            1     4        8     12     16        20           21           22         23
    /// | byte order | pad | number | tag | send | receive | keep-alive | dont-route | no-delay | …
    /// ```
    ///
    /// # Errors
    /// [`CdrError::InvalidEnum`] for a tag whose properties TAO does not have.
    pub fn client_protocols(protocols: &[ProtocolValue]) -> Result<Self, CdrError> {
        let data = encapsulation::build(|e| {
            e.write_len(protocols.len())?;
            protocols.iter().try_for_each(|protocol| match protocol {
                ProtocolValue::Iiop(tcp) => {
                    e.write_u32(TAG_INTERNET_IOP)?;
                    e.write_i32(tcp.send_buffer_size)?;
                    e.write_i32(tcp.recv_buffer_size)?;
                    e.write_bool(tcp.keep_alive)?;
                    e.write_bool(tcp.dont_route)?;
                    e.write_bool(tcp.no_delay)
                }
                ProtocolValue::Other(TAG_TAO_UIOP) => {
                    e.write_u32(TAG_TAO_UIOP)?;
                    e.write_i32(0)?;
                    e.write_i32(0)
                }
                ProtocolValue::Other(TAG_TAO_SHMIOP) => {
                    e.write_u32(TAG_TAO_SHMIOP)?;
                    e.write_i32(0)?;
                    e.write_str("")?;
                    e.write_str("")
                }
                ProtocolValue::Other(_) => Err(CdrError::InvalidEnum),
            })
        })?;
        Ok(Self {
            policy_type: POLICY_CLIENT_PROTOCOL,
            data,
        })
    }
}

impl Policies {
    /// The PriorityModel policy, if it is among them.
    pub fn priority_model(&self) -> Option<PriorityModelValue> {
        PriorityModelValue::decode(self.value(POLICY_PRIORITY_MODEL)?).ok()
    }

    /// Returns the PriorityBandedConnection policy, if it is among them, or an error if it is
    /// malformed. The bands are not validated.
    pub fn priority_bands(&self) -> Option<Result<Vec<PriorityBandValue>, CdrError>> {
        Some(bands(self.value(POLICY_PRIORITY_BANDED_CONNECTION)?))
    }

    /// Returns the ClientProtocol policy, if it is among them, or an error if it is malformed. A
    /// protocol with properties of an unknown form is an error too, because the end of them cannot
    /// be found.
    pub fn client_protocols(&self) -> Option<Result<Vec<ProtocolValue>, CdrError>> {
        let data = self.value(POLICY_CLIENT_PROTOCOL)?;
        Some(Reader::new(data).and_then(|mut r| r.read_seq(ProtocolValue::decode)))
    }

    fn value(&self, policy_type: u32) -> Option<&[u8]> {
        let mut policies = self.0.iter();
        let policy = policies.find(|policy| policy.policy_type == policy_type)?;
        Some(&policy.data)
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            e.write_len(self.0.len())?;
            self.0.iter().try_for_each(|policy| {
                e.write_u32(policy.policy_type)?;
                e.write_octet_seq(&policy.data)
            })
        })
    }

    pub(crate) fn decode(data: &[u8]) -> Result<Self, CdrError> {
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

impl ProtocolValue {
    fn decode(r: &mut Reader<'_>) -> Result<Self, CdrError> {
        match r.read_u32()? {
            TAG_INTERNET_IOP => Ok(Self::Iiop(TcpPropertiesValue {
                send_buffer_size: r.read_u32()?.cast_signed(),
                recv_buffer_size: r.read_u32()?.cast_signed(),
                keep_alive: r.read_u8()? != 0,
                dont_route: r.read_u8()? != 0,
                no_delay: r.read_u8()? != 0,
            })),
            tag @ TAG_TAO_UIOP => {
                r.read_u32()?;
                r.read_u32()?;
                Ok(Self::Other(tag))
            }
            tag @ TAG_TAO_SHMIOP => {
                r.read_u32()?;
                r.read_octet_seq()?;
                r.read_octet_seq()?;
                Ok(Self::Other(tag))
            }
            _ => Err(CdrError::InvalidEnum),
        }
    }
}

fn bands(data: &[u8]) -> Result<Vec<PriorityBandValue>, CdrError> {
    Reader::new(data)?.read_seq(|r| {
        Ok(PriorityBandValue {
            low: r.read_i16()?,
            high: r.read_i16()?,
        })
    })
}

/// TAO's protocols over local sockets and shared memory.
const TAG_TAO_UIOP: u32 = 0x5441_4f00;
const TAG_TAO_SHMIOP: u32 = 0x5441_4f02;
