//! Encoding of characters and strings in the code sets of a connection.

use super::Encoder;
use crate::memory::is_plain;
use crate::{CdrError, Char, CharSet, Endian, WideForm, copied};

/// Text. Each method fails with [`CdrError::FrameFull`] if the frame would
/// grow over its limit, and with [`CdrError::UnmappableChar`] if the
/// transmission code set lacks a character.
#[allow(clippy::missing_errors_doc)]
impl Encoder<'_> {
    /// Writes a `char`.
    #[inline]
    pub fn write_char(&mut self, value: Char) -> Result<(), CdrError> {
        if self.text.narrow == CharSet::Utf8 && !value.0.is_ascii() {
            return Err(CdrError::UnmappableChar);
        }
        self.write_u8(value.0)
    }

    /// Writes a `wchar`, which must be in the basic multilingual plane.
    ///
    /// Fails with [`CdrError::WideNotAllowedWrite`] in GIOP 1.0.
    pub fn write_wchar(&mut self, value: char) -> Result<(), CdrError> {
        let unit = u16::try_from(u32::from(value)).map_err(|_| CdrError::UnmappableChar)?;
        match self.text.wide {
            WideForm::Illegal => Err(CdrError::WideNotAllowedWrite),
            WideForm::Ucs2 => self.write_u16(unit),
            WideForm::Utf16 => {
                let mark = mark_before(Some(value));
                self.write_u8(mark.len() as u8 + 2)?;
                self.write_octets(mark)?;
                self.write_octets(&unit.to_be_bytes())
            }
        }
    }

    /// Writes a `string`.
    ///
    /// Fails with [`CdrError::EmbeddedNul`] if there is a NUL in it.
    #[inline]
    pub fn write_str(&mut self, value: &str) -> Result<(), CdrError> {
        self.write_str_bounded(value, u32::MAX)
    }

    /// Writes a `string<bound>`; the bound counts octets on the wire.
    ///
    /// Fails with [`CdrError::BoundExceeded`] if it is longer, and with
    /// [`CdrError::EmbeddedNul`] if there is a NUL in it.
    #[inline]
    pub fn write_str_bounded(&mut self, value: &str, bound: u32) -> Result<(), CdrError> {
        let bytes = value.as_bytes();
        if !is_plain(bytes) {
            if bytes.contains(&0) {
                return Err(CdrError::EmbeddedNul);
            }
            if self.text.narrow == CharSet::Latin1 && !value.is_ascii() {
                return self.write_latin1(value, bound);
            }
        }
        if self.text.narrow.exceeds(bytes, bound) {
            return Err(CdrError::BoundExceeded);
        }
        let room = self.append_str(bytes.len(), u32::MAX)?;
        let Some((nul, text)) = room.split_last_mut() else {
            return Ok(());
        };
        text.copy_from_slice(bytes);
        copied::count(bytes.len());
        *nul = 0;
        Ok(())
    }

    /// Writes a `wstring`.
    ///
    /// Fails with [`CdrError::EmbeddedNul`] if there is a NUL in it, and with
    /// [`CdrError::WideNotAllowedWrite`] in GIOP 1.0.
    #[inline]
    pub fn write_wstr(&mut self, value: &str) -> Result<(), CdrError> {
        self.write_wstr_bounded(value, u32::MAX)
    }

    /// Writes a `wstring<bound>`; the bound counts units of UTF-16.
    ///
    /// Fails with [`CdrError::BoundExceeded`] if it is longer, and as
    /// [`write_wstr`](Self::write_wstr).
    pub fn write_wstr_bounded(&mut self, value: &str, bound: u32) -> Result<(), CdrError> {
        if self.text.wide == WideForm::Illegal {
            return Err(CdrError::WideNotAllowedWrite);
        }
        if value.as_bytes().contains(&0) {
            return Err(CdrError::EmbeddedNul);
        }
        let units = value.encode_utf16().count();
        if units > bound as usize {
            return Err(CdrError::BoundExceeded);
        }
        if self.text.wide == WideForm::Ucs2 {
            self.write_len(units + 1)?;
            for unit in value.encode_utf16() {
                self.write_u16(unit)?;
            }
            return self.write_u16(0);
        }
        let mark = mark_before(value.chars().next());
        self.write_len(mark.len() + units * 2)?;
        self.write_octets(mark)?;
        let room = self.frame.append(units * 2)?;
        for (place, unit) in room.chunks_exact_mut(2).zip(value.encode_utf16()) {
            place.copy_from_slice(&unit.to_be_bytes());
        }
        Ok(())
    }

    fn write_latin1(&mut self, value: &str, bound: u32) -> Result<(), CdrError> {
        if value.chars().any(|c| u32::from(c) > 0xff) {
            return Err(CdrError::UnmappableChar);
        }
        let n = value.chars().count();
        let (text, nul) = self.append_str(n, bound)?.split_at_mut(n);
        for (place, c) in text.iter_mut().zip(value.chars()) {
            *place = c as u8;
        }
        nul.fill(0);
        Ok(())
    }

    /// Writes the length of a string of `n` octets and appends room for them and for its NUL.
    #[inline]
    fn append_str(&mut self, n: usize, bound: u32) -> Result<&mut [u8], CdrError> {
        if n > bound as usize {
            return Err(CdrError::BoundExceeded);
        }
        let len = u32::try_from(n + 1).map_err(|_| CdrError::LengthOverflow)?;
        let len = match self.endian {
            Endian::Big => len.to_be_bytes(),
            Endian::Little => len.to_le_bytes(),
        };
        let room = self.append_aligned(4, 4 + n + 1)?;
        let (place, room) = room.split_at_mut(4);
        place.copy_from_slice(&len);
        Ok(room)
    }
}

/// Returns the byte order mark to write before UTF-16 that begins with `first`. It is empty unless
/// the reader would mistake `first` for a byte order mark.
fn mark_before(first: Option<char>) -> &'static [u8] {
    match first {
        Some('\u{feff}' | '\u{fffe}') => &[0xfe, 0xff],
        _ => &[],
    }
}
