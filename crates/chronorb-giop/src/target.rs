//! The target of a request: an object key, a profile or a whole reference.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{Cdr, CdrError, Decoder, Encoder};

use crate::profile::object_key;
use crate::{Ior, Version};

/// The address of a request's target. GIOP 1.0 and 1.1 have the key only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target<'a> {
    /// The object key of the profile in use.
    Key(&'a [u8]),
    /// The profile in use.
    Profile(TaggedProfileView<'a>),
    /// The whole reference.
    Reference {
        /// The index of the profile in use, from 0.
        index: u32,
        /// The reference; one that was received is in the arena.
        ior: &'a Ior,
    },
}

/// A profile where it lies in its message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TaggedProfileView<'a> {
    /// The kind of the profile, for example [`TAG_INTERNET_IOP`](crate::TAG_INTERNET_IOP).
    pub tag: u32,
    /// The content.
    pub data: &'a [u8],
}

/// The form of target that a server requires: the body of the replies NEEDS_ADDRESSING_MODE and
/// LOC_NEEDS_ADDRESSING_MODE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AddressingDisposition {
    /// The form [`Target::Key`].
    Key = 0,
    /// The form [`Target::Profile`].
    Profile = 1,
    /// The form [`Target::Reference`].
    Reference = 2,
}

impl<'a> Target<'a> {
    /// The object key, whichever way it was named. There is none if the
    /// profile is malformed or of another protocol, or if the reference has no
    /// profile of that index.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        let profile = match *self {
            Self::Key(key) => return Some(key),
            Self::Profile(profile) => profile,
            Self::Reference { index, ior } => ior.profiles.get(index as usize)?.as_view(),
        };
        object_key(profile.tag, profile.data)
    }

    pub(crate) fn encode(&self, e: &mut Encoder<'_>, version: Version) -> Result<(), CdrError> {
        if version < Version::V1_2 {
            return e.write_octet_seq(self.key().ok_or(CdrError::BadReference)?);
        }
        match self {
            Self::Key(key) => {
                e.write_u16(AddressingDisposition::Key as u16)?;
                e.write_octet_seq(key)
            }
            Self::Profile(profile) => {
                e.write_u16(AddressingDisposition::Profile as u16)?;
                profile.encode(e)
            }
            Self::Reference { index, ior } => {
                e.write_u16(AddressingDisposition::Reference as u16)?;
                e.write_u32(*index)?;
                ior.encode(e)
            }
        }
    }

    #[inline(always)]
    pub(crate) fn decode(d: &mut Decoder<'a>, version: Version) -> Result<Self, CdrError> {
        let disposition = if version < Version::V1_2 {
            AddressingDisposition::Key
        } else {
            AddressingDisposition::decode(d)?
        };
        Ok(match disposition {
            AddressingDisposition::Key => Self::Key(d.read_octet_seq()?),
            AddressingDisposition::Profile => Self::Profile(TaggedProfileView {
                tag: d.read_u32()?,
                data: d.read_octet_seq()?,
            }),
            AddressingDisposition::Reference => Self::Reference {
                index: d.read_u32()?,
                ior: decode_kept(d)?,
            },
        })
    }
}

/// Reads a reference into the arena.
#[cold]
fn decode_kept<'a>(d: &mut Decoder<'a>) -> Result<&'a Ior, CdrError> {
    let ior = Ior::decode(d)?;
    Ok(d.arena().keep(ior))
}

impl AddressingDisposition {
    /// Writes it, as the body of a reply.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`]
    pub fn encode(self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_u16(self as u16)
    }

    /// Reads it, from the body of a reply.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`], [`CdrError::InvalidDiscriminator`]
    #[inline]
    pub fn decode(d: &mut Decoder<'_>) -> Result<Self, CdrError> {
        match d.read_u16()? {
            0 => Ok(Self::Key),
            1 => Ok(Self::Profile),
            2 => Ok(Self::Reference),
            _ => Err(CdrError::InvalidDiscriminator),
        }
    }
}

impl<'a> Cdr<'a> for TaggedProfileView<'a> {
    const MIN_SIZE: usize = 8;
    const NESTS: bool = false;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_u32(self.tag)?;
        e.write_octet_seq(self.data)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            tag: d.read_u32()?,
            data: d.read_octet_seq()?,
        })
    }
}
