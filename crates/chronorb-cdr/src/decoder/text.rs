//! Decoding of characters and strings from the code sets of a connection.

use super::Decoder;
use crate::memory::plain_str;
use crate::{CdrError, Char, CharSet, Endian, WideForm};

/// Text. Each method fails with [`CdrError::EndOfData`] or
/// [`CdrError::LengthOverflow`] if the message ends within the value, and with
/// [`CdrError::ArenaFull`] if there is no room for the converted text.
#[allow(clippy::missing_errors_doc)]
impl<'a> Decoder<'a> {
    /// Reads a `char`.
    ///
    /// Fails with [`CdrError::UnmappableChar`] if the octet is a part of a
    /// longer character of the transmission code set.
    #[inline]
    pub fn read_char(&mut self) -> Result<Char, CdrError> {
        let code = self.read_u8()?;
        if self.text.narrow == CharSet::Utf8 && !code.is_ascii() {
            return Err(CdrError::UnmappableChar);
        }
        Ok(Char(code))
    }

    /// Reads a `wchar`.
    ///
    /// Fails with [`CdrError::InvalidWideChar`] if it is not one character of
    /// UTF-16, with [`CdrError::UnmappableChar`] if it is a surrogate alone, and
    /// with [`CdrError::WideNotAllowedRead`] in GIOP 1.0.
    pub fn read_wchar(&mut self) -> Result<char, CdrError> {
        match self.text.wide {
            WideForm::Illegal => Err(CdrError::WideNotAllowedRead),
            WideForm::Ucs2 => {
                let unit = self.read_u16()?;
                char::from_u32(u32::from(unit)).ok_or(CdrError::UnmappableChar)
            }
            WideForm::Utf16 => {
                let n = self.read_u8()?;
                let octets = self.read_octets(usize::from(n))?;
                let mut chars = utf16_chars(utf16_units(octets)?);
                match (chars.next(), chars.next()) {
                    (Some(c), None) => c,
                    _ => Err(CdrError::InvalidWideChar),
                }
            }
        }
    }

    /// Reads a `string`. If it is ASCII, or the transmission code set is
    /// UTF-8, the result is a view of the frame.
    ///
    /// A length of zero, which some ORBs send, is taken for an empty string.
    /// Fails with [`CdrError::UnterminatedString`], [`CdrError::EmbeddedNul`]
    /// or [`CdrError::InvalidUtf8`].
    #[inline]
    pub fn read_str(&mut self) -> Result<&'a str, CdrError> {
        self.read_str_bounded(u32::MAX)
    }

    /// Reads a `string<bound>`; the bound counts octets on the wire.
    ///
    /// Fails with [`CdrError::BoundExceeded`] if it is longer, and as
    /// [`read_str`](Self::read_str).
    pub fn read_str_bounded(&mut self, bound: u32) -> Result<&'a str, CdrError> {
        let len = self.read_len(1)?;
        if len == 0 {
            return Ok("");
        }
        let octets = self.read_octets(len)?;
        if self.text.narrow.exceeds(&octets[..len - 1], bound) {
            return Err(CdrError::BoundExceeded);
        }
        let Some((0, text)) = octets.split_last() else {
            return Err(CdrError::UnterminatedString);
        };
        if let Some(text) = plain_str(text) {
            return Ok(text);
        }
        if text.contains(&0) {
            return Err(CdrError::EmbeddedNul);
        }
        match self.text.narrow {
            CharSet::Latin1 if !text.is_ascii() => {
                self.convert(|| text.iter().map(|&code| Ok(char::from(code))))
            }
            _ => str::from_utf8(text).map_err(|_| CdrError::InvalidUtf8),
        }
    }

    /// Reads a `wstring`; the result is in the arena.
    ///
    /// Fails with [`CdrError::InvalidWideChar`], with
    /// [`CdrError::UnmappableChar`] if a surrogate stands alone, with
    /// [`CdrError::UnterminatedString`], [`CdrError::EmbeddedNul`], and with
    /// [`CdrError::WideNotAllowedRead`] in GIOP 1.0.
    #[inline]
    pub fn read_wstr(&mut self) -> Result<&'a str, CdrError> {
        self.read_wstr_bounded(u32::MAX)
    }

    /// Reads a `wstring<bound>`; the bound counts units of UTF-16.
    ///
    /// Fails with [`CdrError::BoundExceeded`] if it is longer, and as
    /// [`read_wstr`](Self::read_wstr).
    pub fn read_wstr_bounded(&mut self, bound: u32) -> Result<&'a str, CdrError> {
        match self.text.wide {
            WideForm::Illegal => Err(CdrError::WideNotAllowedRead),
            WideForm::Ucs2 => self.read_ucs2(bound),
            WideForm::Utf16 => {
                let n = self.read_len(1)?;
                let octets = self.read_octets(n)?;
                self.convert_utf16(utf16_units(octets)?, bound)
            }
        }
    }

    fn read_ucs2(&mut self, bound: u32) -> Result<&'a str, CdrError> {
        let n = self.read_len(2)?;
        if n == 0 {
            return Ok("");
        }
        // The length is aligned to 4, so there is no padding before the units.
        let (units, _) = self.read_octets(n * 2)?.as_chunks::<2>();
        let Some(([0, 0], units)) = units.split_last() else {
            return Err(CdrError::UnterminatedString);
        };
        let endian = self.endian;
        let units = units.iter().map(move |&unit| match endian {
            Endian::Big => u16::from_be_bytes(unit),
            Endian::Little => u16::from_le_bytes(unit),
        });
        self.convert_utf16(units, bound)
    }

    fn convert_utf16(
        &self,
        units: impl ExactSizeIterator<Item = u16> + Clone,
        bound: u32,
    ) -> Result<&'a str, CdrError> {
        if units.len() > bound as usize {
            return Err(CdrError::BoundExceeded);
        }
        self.convert(|| utf16_chars(units.clone()))
    }

    /// Puts characters into the arena as a `str`. `chars` is called twice:
    /// to count octets, and to copy them.
    fn convert<I>(&self, chars: impl Fn() -> I) -> Result<&'a str, CdrError>
    where
        I: Iterator<Item = Result<char, CdrError>>,
    {
        let mut len = 0;
        for c in chars() {
            match c? {
                '\0' => return Err(CdrError::EmbeddedNul),
                c => len += c.len_utf8(),
            }
        }
        let mut octets = chars().flatten().flat_map(|c| {
            let mut octets = [0; 4];
            let n = c.encode_utf8(&mut octets).len();
            octets.into_iter().take(n)
        });
        let text = self
            .arena
            .fill(len, |_| octets.next().ok_or(CdrError::EndOfData))?;
        str::from_utf8(text).map_err(|_| CdrError::InvalidUtf8)
    }
}

/// The units of UTF-16 in `octets`, without their byte order mark.
pub(crate) fn utf16_units(
    octets: &[u8],
) -> Result<impl ExactSizeIterator<Item = u16> + Clone, CdrError> {
    let (units, []) = octets.as_chunks::<2>() else {
        return Err(CdrError::InvalidWideChar);
    };
    let (units, little) = match units {
        [[0xfe, 0xff], units @ ..] => (units, false),
        [[0xff, 0xfe], units @ ..] => (units, true),
        units => (units, false),
    };
    Ok(units.iter().map(move |&unit| {
        if little {
            u16::from_le_bytes(unit)
        } else {
            u16::from_be_bytes(unit)
        }
    }))
}

fn utf16_chars(units: impl Iterator<Item = u16>) -> impl Iterator<Item = Result<char, CdrError>> {
    char::decode_utf16(units).map(|c| c.map_err(|_| CdrError::UnmappableChar))
}
