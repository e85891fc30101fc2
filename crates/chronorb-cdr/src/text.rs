//! Code sets of characters and forms of wide characters.

use std::fmt;

/// The code set in which `char` and `string` travel.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CharSet {
    /// ISO 8859-1, the code set where none was negotiated.
    #[default]
    Latin1,
    /// UTF-8.
    Utf8,
    /// The text of a value that an any owns, never of a message. It is UTF-8, but each `char` is
    /// its octet, and bounds count characters, of which no message can have more.
    Process,
}

impl CharSet {
    /// Whether a string of these octets is longer than a bound.
    pub(crate) fn exceeds(self, text: &[u8], bound: u32) -> bool {
        let bound = bound as usize;
        let characters = || text.iter().filter(|&octet| octet & 0xc0 != 0x80).count();
        text.len() > bound && (self != Self::Process || characters() > bound)
    }
}

/// The form in which `wchar` and `wstring` travel; it follows from the
/// version of GIOP.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum WideForm {
    /// GIOP 1.0: wide text is not supported.
    Illegal,
    /// GIOP 1.1: units of two octets in the byte order of the message; a
    /// string counts units and ends in NUL.
    Ucs2,
    /// GIOP 1.2: UTF-16, big-endian unless there is a byte order mark; a string counts octets and
    /// has no NUL.
    #[default]
    Utf16,
}

/// The encoding of text in a message.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct TextForm {
    /// The code set of `char` and `string`.
    pub narrow: CharSet,
    /// The form of `wchar` and `wstring`.
    pub wide: WideForm,
}

/// An IDL `char`: one character of ISO 8859-1.
///
/// If the transmission code set is UTF-8 only its ASCII half can travel, as a
/// `char` is one octet on the wire in every code set.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Char(pub u8);

/// The error of making a [`Char`] from a character that ISO 8859-1 lacks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the character {0:?} is not in ISO 8859-1")]
pub struct NotLatin1(pub char);

impl From<Char> for char {
    #[inline]
    fn from(c: Char) -> Self {
        Self::from(c.0)
    }
}

impl From<u8> for Char {
    #[inline]
    fn from(code: u8) -> Self {
        Self(code)
    }
}

impl TryFrom<char> for Char {
    type Error = NotLatin1;

    #[inline]
    fn try_from(c: char) -> Result<Self, NotLatin1> {
        u8::try_from(u32::from(c))
            .map(Self)
            .map_err(|_| NotLatin1(c))
    }
}

impl fmt::Debug for Char {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&char::from(*self), f)
    }
}

impl fmt::Display for Char {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&char::from(*self), f)
    }
}
