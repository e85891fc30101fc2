use chronorb_cdr::CdrError;

use crate::encapsulation::{self, Reader};
use crate::{TaggedComponent, TaggedProfile, Version};

/// The tag of IIOP profiles.
pub const TAG_INTERNET_IOP: u32 = 0;
/// The tag of a profile that holds components only.
pub const TAG_MULTIPLE_COMPONENTS: u32 = 1;

/// How an object is reached over IIOP: CORBA 3.3 part 2, clause 9.7.2.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct IiopProfile {
    /// The greatest version that the server accepts.
    pub version: Version,
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// What the server knows the object by.
    pub object_key: Vec<u8>,
    /// More about the server and the object; there are none in IIOP 1.0.
    pub components: Vec<TaggedComponent>,
}

impl IiopProfile {
    /// The content of the profile. In IIOP 1.0 the components are left out.
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if the host
    /// cannot be written.
    pub fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            e.write_u8(self.version.major)?;
            e.write_u8(self.version.minor)?;
            e.write_str(&self.host)?;
            e.write_u16(self.port)?;
            e.write_octet_seq(&self.object_key)?;
            if self.version > Version::V1_0 {
                e.write_len(self.components.len())?;
                for component in &self.components {
                    e.write_u32(component.tag)?;
                    e.write_octet_seq(&component.data)?;
                }
            }
            Ok(())
        })
    }

    /// The content of the profile, with its tag.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn tagged(&self) -> Result<TaggedProfile, CdrError> {
        Ok(TaggedProfile {
            tag: TAG_INTERNET_IOP,
            data: self.encode()?,
        })
    }

    /// Reads the content of a profile of tag [`TAG_INTERNET_IOP`]. What a
    /// newer minor version adds at the end is left out.
    ///
    /// # Errors
    /// What is wrong with it; [`CdrError::InvalidDiscriminator`] if its major
    /// version is not 1.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        let version = Version::new(r.read_u8()?, r.read_u8()?);
        if version.major != 1 {
            return Err(CdrError::InvalidDiscriminator);
        }
        Ok(Self {
            version,
            host: r.read_string()?,
            port: r.read_u16()?,
            object_key: r.read_octet_seq()?.to_vec(),
            components: if version > Version::V1_0 {
                r.read_seq(|r| {
                    Ok(TaggedComponent {
                        tag: r.read_u32()?,
                        data: r.read_octet_seq()?.to_vec(),
                    })
                })?
            } else {
                Vec::new()
            },
        })
    }
}

/// The object key of a profile of tag [`TAG_INTERNET_IOP`], where it lies.
pub(crate) fn object_key(data: &[u8]) -> Result<&[u8], CdrError> {
    let mut r = Reader::new(data)?;
    if r.read_u8()? != 1 {
        return Err(CdrError::InvalidDiscriminator);
    }
    r.read_u8()?;
    r.read_octet_seq()?;
    r.read_u16()?;
    r.read_octet_seq()
}
