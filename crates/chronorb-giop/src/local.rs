//! Components of protocols within one machine.

use chronorb_cdr::CdrError;

use crate::encapsulation::{self, Reader};
use crate::{TaggedComponent, minor};

/// The tag of chronorb's component with the machine, and the file system namespace, of the path of
/// a profile: [`Place`].
pub const TAG_PLACE: u32 = minor::CHRONORB | 3;
/// The tag of omniORB's component for a Unix-domain socket: [`OmniOrbUnixAddress`].
pub const TAG_OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;

/// The namespace in which paths are valid. Processes with the same name see the same files.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Place(pub String);

impl Place {
    /// The component as it travels.
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if the name cannot be written.
    pub fn tagged(&self) -> Result<TaggedComponent, CdrError> {
        Ok(TaggedComponent {
            tag: TAG_PLACE,
            data: encapsulation::build(|e| e.write_str(&self.0))?,
        })
    }

    /// Reads the content of a component of tag [`TAG_PLACE`].
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        Ok(Self(Reader::new(data)?.read_string()?))
    }
}

/// A socket file, as in omniORB's component of the profile of IIOP. The profile's port is 0 if the
/// server listens nowhere else.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct OmniOrbUnixAddress {
    /// The name of the machine, as `gethostname` gives it.
    pub host: String,
    /// The path of the file.
    pub path: String,
}

impl OmniOrbUnixAddress {
    /// The component as it travels.
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if one of them cannot be written.
    pub fn tagged(&self) -> Result<TaggedComponent, CdrError> {
        let data = encapsulation::build(|e| {
            e.write_str(&self.host)?;
            e.write_str(&self.path)
        })?;
        Ok(TaggedComponent {
            tag: TAG_OMNIORB_UNIX_TRANS,
            data,
        })
    }

    /// Reads the content of a component of tag [`TAG_OMNIORB_UNIX_TRANS`].
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        Ok(Self {
            host: r.read_string()?,
            path: r.read_string()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back() {
        let place = Place("of files".to_owned());
        let component = place.tagged().expect("it fits");
        assert_eq!(component.tag, 0x4352_0003);
        assert_eq!(Place::decode(&component.data), Ok(place));
        assert!(Place::decode(&component.data[..6]).is_err());
    }

    #[test]
    fn omniorbs_address_is_read_and_written_as_omniorb_does() {
        // Of a reference of omniNames 4.2.5 that listens at giop:unix:/tmp/names.sock.
        let recorded = b"\x01\0\0\0\x03\0\0\0vm\0\0\x10\0\0\0/tmp/names.sock\0";
        let address = OmniOrbUnixAddress {
            host: "vm".to_owned(),
            path: "/tmp/names.sock".to_owned(),
        };
        assert_eq!(OmniOrbUnixAddress::decode(recorded), Ok(address.clone()));
        let written = address.tagged().expect("it fits");
        assert_eq!(written.tag, 0x4154_5402);
        if cfg!(target_endian = "little") {
            assert_eq!(written.data, recorded);
        }
        assert!(OmniOrbUnixAddress::decode(&recorded[..20]).is_err());
    }
}
