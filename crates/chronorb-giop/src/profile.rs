//! Profiles of references: the addresses at which an object is reached.

use chronorb_cdr::{CdrError, Encoder};

use crate::encapsulation::{self, Reader};
use crate::{TaggedComponent, TaggedProfile, Version, minor};

/// The tag of IIOP profiles.
pub const TAG_INTERNET_IOP: u32 = 0;
/// The tag of a profile that holds components only.
pub const TAG_MULTIPLE_COMPONENTS: u32 = 1;
/// The tag of profiles of UIOP, GIOP over Unix-domain sockets, as TAO writes them: [`PathProfile`].
pub const TAG_UIOP: u32 = 0x5441_4f00;
/// The tag of profiles of DIOP, GIOP in UDP datagrams, as TAO writes them: [`IiopProfile`].
pub const TAG_DIOP: u32 = 0x5441_4f04;
/// The tag of profiles of chronorb's GIOP over shared memory: [`PathProfile`].
pub const TAG_SHMIOP: u32 = minor::CHRONORB | 2;

/// The profile of an object that is reached over IIOP: CORBA 3.3 part 2, clause 9.7.2.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct IiopProfile {
    /// The greatest version that the server accepts.
    pub version: Version,
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The object's key at the server.
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
            write_version(e, self.version)?;
            e.write_str(&self.host)?;
            e.write_u16(self.port)?;
            write_rest(e, self.version, &self.object_key, &self.components)
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

    /// Reads the content of a profile of tag [`TAG_INTERNET_IOP`]. Fields that a newer minor
    /// version adds at the end are ignored.
    ///
    /// # Errors
    /// Those of malformed content; [`CdrError::InvalidDiscriminator`] if its major
    /// version is not 1.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        let version = read_version(&mut r)?;
        let (host, port) = (r.read_string()?, r.read_u16()?);
        let (object_key, components) = read_rest(&mut r, version)?;
        Ok(Self {
            version,
            host,
            port,
            object_key,
            components,
        })
    }
}

/// The profile of an object whose protocol has paths as addresses: UIOP, SHMIOP.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PathProfile {
    /// The greatest version that the server accepts.
    pub version: Version,
    /// The path, of ISO 8859-1.
    pub path: String,
    /// The object's key at the server.
    pub object_key: Vec<u8>,
    /// More about the server and the object; there are none in version 1.0.
    pub components: Vec<TaggedComponent>,
}

impl PathProfile {
    /// The content of the profile.
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if the path
    /// cannot be written.
    pub fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            write_version(e, self.version)?;
            e.write_str(&self.path)?;
            write_rest(e, self.version, &self.object_key, &self.components)
        })
    }

    /// Reads the content of a profile, as [`IiopProfile::decode`] does.
    ///
    /// # Errors
    /// As there.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        let version = read_version(&mut r)?;
        let path = r.read_string()?;
        let (object_key, components) = read_rest(&mut r, version)?;
        Ok(Self {
            version,
            path,
            object_key,
            components,
        })
    }
}

fn write_version(e: &mut Encoder<'_>, version: Version) -> Result<(), CdrError> {
    e.write_u8(version.major)?;
    e.write_u8(version.minor)
}

fn read_version(r: &mut Reader<'_>) -> Result<Version, CdrError> {
    let version = Version::new(r.read_u8()?, r.read_u8()?);
    match version.major {
        1 => Ok(version),
        _ => Err(CdrError::InvalidDiscriminator),
    }
}

/// Writes the fields after the address.
fn write_rest(
    e: &mut Encoder<'_>,
    version: Version,
    object_key: &[u8],
    components: &[TaggedComponent],
) -> Result<(), CdrError> {
    e.write_octet_seq(object_key)?;
    if version > Version::V1_0 {
        e.write_len(components.len())?;
        for component in components {
            e.write_u32(component.tag)?;
            e.write_octet_seq(&component.data)?;
        }
    }
    Ok(())
}

fn read_rest(
    r: &mut Reader<'_>,
    version: Version,
) -> Result<(Vec<u8>, Vec<TaggedComponent>), CdrError> {
    let object_key = r.read_octet_seq()?.to_vec();
    if version == Version::V1_0 {
        return Ok((object_key, Vec::new()));
    }
    Ok((object_key, read_components(r)?))
}

fn read_components(r: &mut Reader<'_>) -> Result<Vec<TaggedComponent>, CdrError> {
    r.read_seq(|r| {
        Ok(TaggedComponent {
            tag: r.read_u32()?,
            data: r.read_octet_seq()?.to_vec(),
        })
    })
}

/// Reads the content of a profile of tag [`TAG_MULTIPLE_COMPONENTS`]: the components that belong to
/// all profiles of its reference (CORBA 3.3 part 2, clause 7.6.4).
///
/// # Errors
/// Those of malformed content.
pub fn decode_components(data: &[u8]) -> Result<Vec<TaggedComponent>, CdrError> {
    read_components(&mut Reader::new(data)?)
}

/// The object key of a profile, where it lies; there is none in one of another tag than
/// those above.
pub(crate) fn object_key(tag: u32, data: &[u8]) -> Option<&[u8]> {
    let mut r = Reader::new(data).ok()?;
    read_version(&mut r).ok()?;
    r.read_octet_seq().ok()?;
    match tag {
        TAG_INTERNET_IOP | TAG_DIOP => drop(r.read_u16().ok()?),
        TAG_UIOP | TAG_SHMIOP => {}
        _ => return None,
    }
    r.read_octet_seq().ok()
}
