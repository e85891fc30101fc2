//! Object references inside CDR data.

use crate::{Cdr, CdrError, Decoder, Encoder};

/// A typed object reference, as the ORB makes it.
///
/// CDR knows only that a reference can be written and read; how it becomes an
/// object that can be called is the matter of the layer above, which finds
/// its own state in [`Decoder::host`]. A reference that is part of a decoded
/// value lives in the arena of its decoder, so it must be allowed to be
/// dropped wherever the arena goes.
pub trait Reference: Send + Sized + 'static {
    /// The fewest octets that one takes on the wire: by default those of an empty repository id
    /// (some ORBs send it without its NUL) and no profiles.
    const MIN_SIZE: usize = 8;

    /// Writes `this` as an interoperable object reference; `None` is nil.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`], or [`CdrError::BadReference`] if there is no
    /// way to write this reference.
    fn encode_reference(this: Option<&Self>, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Reads an interoperable object reference; nil is `None`.
    ///
    /// # Errors
    /// Any of [`CdrError`]; [`CdrError::BadReference`] if the octets are well-formed but no
    /// reference can be made of them.
    fn decode_reference(d: &mut Decoder<'_>) -> Result<Option<Self>, CdrError>;

    /// Reads an interoperable object reference that is not to be nil.
    ///
    /// # Errors
    /// As [`decode_reference`](Self::decode_reference); [`CdrError::BadReference`] for nil.
    fn decode_nonnil(d: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Self::decode_reference(d)?.ok_or(CdrError::BadReference)
    }
}

impl<'a, R: Reference> Cdr<'a> for Option<&'a R> {
    const MIN_SIZE: usize = R::MIN_SIZE;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        R::encode_reference(*self, e)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(R::decode_reference(d)?.map(|reference| d.arena().keep(reference)))
    }
}

/// A reference that is never nil.
impl<'a, R: Reference> Cdr<'a> for &'a R {
    const MIN_SIZE: usize = 8;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        R::encode_reference(Some(*self), e)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(d.arena().keep(R::decode_nonnil(d)?))
    }
}
