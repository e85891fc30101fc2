//! Interoperable object references.

use std::fmt::{self, Write};
use std::str::FromStr;

use chronorb_cdr::{Arena, CdrError, Decoder, Encoder};

use crate::{TaggedProfileView, encapsulation};

/// An interoperable object reference: CORBA 3.3 part 2, clause 7.6.2.
///
/// The text form is `IOR:` and the hexadecimal digits of its encapsulation.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ior {
    /// The repository id of the object's interface; empty if it is not known.
    pub type_id: String,
    /// The ways to reach the object; none in the nil reference.
    pub profiles: Vec<TaggedProfile>,
}

/// A way to reach an object, as it travels.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedProfile {
    /// The kind of the profile, for example [`TAG_INTERNET_IOP`](crate::TAG_INTERNET_IOP).
    pub tag: u32,
    /// The content, for most tags an encapsulation.
    pub data: Vec<u8>,
}

impl TaggedProfile {
    /// The profile, borrowed.
    #[inline]
    pub fn as_view(&self) -> TaggedProfileView<'_> {
        TaggedProfileView {
            tag: self.tag,
            data: &self.data,
        }
    }
}

/// The reason why a text is not an object reference.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IorError {
    /// The text does not start with `IOR:`.
    #[error("an object reference starts with \"IOR:\"")]
    NoPrefix,
    /// The number of hexadecimal digits is odd, so text is missing at the end.
    #[error("the number of hexadecimal digits is odd")]
    OddDigits,
    /// A character is not a hexadecimal digit. The number is its offset in the text, from 0.
    #[error("the character at {0} is not a hexadecimal digit")]
    NotHex(usize),
    /// The octets are not an object reference.
    #[error("the octets of the reference are malformed: {0}")]
    Malformed(#[from] CdrError),
}

impl Ior {
    /// The nil reference.
    pub const fn nil() -> Self {
        Self {
            type_id: String::new(),
            profiles: Vec::new(),
        }
    }

    /// Whether this is the nil reference, which names no object.
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty()
    }

    /// Writes the reference as a value.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`], and [`CdrError::UnmappableChar`] or
    /// [`CdrError::EmbeddedNul`] if the type id cannot be written.
    pub fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_str(&self.type_id)?;
        e.write_len(self.profiles.len())?;
        for profile in &self.profiles {
            e.write_u32(profile.tag)?;
            e.write_octet_seq(&profile.data)?;
        }
        Ok(())
    }

    /// The most profiles that a reference may have. Those of real ORBs have a few.
    pub const MAX_PROFILES: usize = 64;

    /// Reads a reference as a value.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if it has more than [`MAX_PROFILES`](Self::MAX_PROFILES)
    /// profiles; other errors where the octets are malformed.
    pub fn decode(d: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let type_id = d.read_str()?.to_owned();
        let n = d.read_len(8)?;
        if n > Self::MAX_PROFILES {
            return Err(CdrError::BoundExceeded);
        }
        let profiles = (0..n)
            .map(|_| {
                Ok(TaggedProfile {
                    tag: d.read_u32()?,
                    data: d.read_octet_seq()?.to_vec(),
                })
            })
            .collect::<Result<_, CdrError>>()?;
        Ok(Self { type_id, profiles })
    }

    /// The reference as an encapsulation of its own.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn to_encapsulation(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| self.encode(e))
    }

    /// Reads a reference from an encapsulation of its own.
    ///
    /// # Errors
    /// Those of malformed content.
    pub fn from_encapsulation(data: &[u8]) -> Result<Self, CdrError> {
        let mut data = data.to_vec();
        // A type id outside of ASCII takes at most twice its octets in UTF-8.
        let arena = Arena::new(2 * data.len());
        Self::decode(&mut Decoder::of_encapsulation(&mut data, &arena)?)
    }
}

/// Formats the text form. A type id that is not in ISO 8859-1 is omitted: it is a hint, and the
/// reference works without it.
impl fmt::Display for Ior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = self
            .to_encapsulation()
            .or_else(|_| {
                let profiles = self.profiles.clone();
                let type_id = String::new();
                Self { type_id, profiles }.to_encapsulation()
            })
            .map_err(|_| fmt::Error)?;
        f.write_str(PREFIX)?;
        for octet in data {
            for digit in [octet >> 4, octet & 0xf] {
                f.write_char(char::from(b"0123456789abcdef"[usize::from(digit)]))?;
            }
        }
        Ok(())
    }
}

/// Reads the text form. Case does not matter; white space around it is left out.
impl FromStr for Ior {
    type Err = IorError;

    fn from_str(text: &str) -> Result<Self, IorError> {
        let start = text.len() - text.trim_start().len();
        let text = text.trim();
        let digits = match text.as_bytes().split_at_checked(PREFIX.len()) {
            Some((prefix, digits)) if prefix.eq_ignore_ascii_case(PREFIX.as_bytes()) => digits,
            _ => return Err(IorError::NoPrefix),
        };
        let nibble = |(at, &digit): (usize, &u8)| {
            char::from(digit)
                .to_digit(16)
                .map(|value| value as u8)
                .ok_or(IorError::NotHex(start + PREFIX.len() + at))
        };
        let nibbles = digits
            .iter()
            .enumerate()
            .map(nibble)
            .collect::<Result<Vec<_>, _>>()?;
        let (pairs, []) = nibbles.as_chunks::<2>() else {
            return Err(IorError::OddDigits);
        };
        let data: Vec<_> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        Ok(Self::from_encapsulation(&data)?)
    }
}

const PREFIX: &str = "IOR:";
