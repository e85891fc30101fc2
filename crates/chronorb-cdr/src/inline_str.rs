//! Bounded strings that are stored in place.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;

use crate::{Cdr, CdrError, Decoder, Encoder};

/// A text of at most `N` octets of UTF-8 that is stored inline: the Rust type of a `string<N>` with
/// `@rt::inline`. It borrows nothing, so that a struct with such members is `Copy` and has no
/// lifetime.
///
/// ```
/// use chronorb_cdr::InlineStr;
///
/// let symbol: InlineStr<8> = "ACME".parse().unwrap();
/// assert_eq!(symbol.len(), 4);
/// assert!("too long a text".parse::<InlineStr<8>>().is_err());
/// ```
#[derive(Clone, Copy)]
pub struct InlineStr<const N: usize> {
    len: u32,
    octets: [u8; N],
}

impl<const N: usize> InlineStr<N> {
    /// The empty text.
    pub const EMPTY: Self = Self {
        len: 0,
        octets: [0; N],
    };

    /// The text.
    pub fn as_str(&self) -> &str {
        // The octets were copied from a complete text.
        std::str::from_utf8(&self.octets[..self.len as usize]).unwrap_or_default()
    }
}

impl<const N: usize> TryFrom<&str> for InlineStr<N> {
    type Error = CdrError;

    /// # Errors
    /// [`CdrError::BoundExceeded`] for more than `N` octets.
    fn try_from(text: &str) -> Result<Self, CdrError> {
        let mut inline = Self::EMPTY;
        let place = inline.octets.get_mut(..text.len());
        place
            .ok_or(CdrError::BoundExceeded)?
            .copy_from_slice(text.as_bytes());
        inline.len = text.len() as u32;
        Ok(inline)
    }
}

impl<const N: usize> FromStr for InlineStr<N> {
    type Err = CdrError;

    fn from_str(text: &str) -> Result<Self, CdrError> {
        Self::try_from(text)
    }
}

impl<'a, const N: usize> Cdr<'a> for InlineStr<N> {
    const MIN_SIZE: usize = 4;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_str_bounded(self, N as u32)
    }

    /// Fails with [`CdrError::BoundExceeded`] too where the text is within its bound on the wire
    /// and longer in UTF-8.
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_str_bounded(N as u32)?.try_into()
    }
}

impl<const N: usize> Default for InlineStr<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> Deref for InlineStr<N> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> AsRef<str> for InlineStr<N> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl<const N: usize> Borrow<str> for InlineStr<N> {
    fn borrow(&self) -> &str {
        self
    }
}

impl<const N: usize> PartialEq for InlineStr<N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<const N: usize> Eq for InlineStr<N> {}

impl<const N: usize> PartialEq<str> for InlineStr<N> {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&str> for InlineStr<N> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl<const N: usize> PartialOrd for InlineStr<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> Ord for InlineStr<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<const N: usize> Hash for InlineStr<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<const N: usize> fmt::Debug for InlineStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<const N: usize> fmt::Display for InlineStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Arena, CharSet, Endian, Frame, TextForm};

    use super::*;

    #[test]
    fn it_is_a_string_on_the_wire() {
        let mut frame = Frame::new(64, 64);
        let mut e = Encoder::new(&mut frame, Endian::Big);
        InlineStr::<8>::try_from("ACME")
            .unwrap()
            .encode(&mut e)
            .unwrap();
        assert_eq!(frame.as_slice(), b"\0\0\0\x05ACME\0");
        let arena = Arena::new(0);
        let mut d = Decoder::new(frame.as_mut_slice(), 0, Endian::Big, &arena);
        assert_eq!(InlineStr::<4>::decode(&mut d).unwrap(), "ACME");
    }

    #[test]
    fn what_is_longer_is_refused_on_the_wire_and_in_memory() {
        let arena = Arena::new(64);
        let mut octets = *b"\0\0\0\x05ACME\0";
        let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
        assert_eq!(InlineStr::<3>::decode(&mut d), Err(CdrError::BoundExceeded));
        // Two octets on the wire, four in memory.
        let mut octets = *b"\0\0\0\x03\xe4\xf6\0";
        let text = TextForm {
            narrow: CharSet::Latin1,
            ..TextForm::default()
        };
        let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena).with_text(text);
        assert_eq!(InlineStr::<2>::decode(&mut d), Err(CdrError::BoundExceeded));
    }

    #[test]
    fn what_stood_there_before_makes_no_difference() {
        let mut a = InlineStr::<8>::try_from("longer").unwrap();
        a = "ab".parse().unwrap_or(a);
        assert_eq!(a, InlineStr::try_from("ab").unwrap());
        assert!(a < InlineStr::try_from("b").unwrap());
        assert_eq!(format!("[{a:4}] {a:?}"), "[ab  ] \"ab\"");
    }
}
