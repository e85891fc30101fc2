//! Small encapsulations: those of profiles, components and contexts, which
//! have no large sequences of numbers and need not be changed to be read.

use chronorb_cdr::{CdrError, Encoder, Endian, Frame};

/// Makes an encapsulation in the byte order of this machine.
pub(crate) fn build(
    body: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<Vec<u8>, CdrError> {
    let mut frame = Frame::new(128, usize::MAX);
    let mut e = Encoder::new(&mut frame, Endian::NATIVE);
    e.write_bool(Endian::NATIVE.is_little())?;
    body(&mut e)?;
    Ok(frame.as_slice().to_vec())
}

/// Reads octets that stay as they are.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    endian: Endian,
}

impl<'a> Reader<'a> {
    /// Makes a reader of an encapsulation, whose first octet is its byte order.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, CdrError> {
        let little = *bytes.first().ok_or(CdrError::EndOfData)? != 0;
        Ok(Self::at(bytes, 1, Endian::from_flag(little)))
    }

    /// Makes a reader of a part of `bytes`, which start at the origin.
    pub(crate) fn at(bytes: &'a [u8], position: usize, endian: Endian) -> Self {
        Self {
            bytes,
            position,
            endian,
        }
    }

    pub(crate) fn read_u8(&mut self) -> Result<u8, CdrError> {
        self.get::<1>().map(|[byte]| byte)
    }

    pub(crate) fn read_u16(&mut self) -> Result<u16, CdrError> {
        let bytes = self.get()?;
        Ok(match self.endian {
            Endian::Big => u16::from_be_bytes(bytes),
            Endian::Little => u16::from_le_bytes(bytes),
        })
    }

    pub(crate) fn read_i16(&mut self) -> Result<i16, CdrError> {
        self.read_u16().map(u16::cast_signed)
    }

    pub(crate) fn read_u32(&mut self) -> Result<u32, CdrError> {
        let bytes = self.get()?;
        Ok(match self.endian {
            Endian::Big => u32::from_be_bytes(bytes),
            Endian::Little => u32::from_le_bytes(bytes),
        })
    }

    pub(crate) fn read_u64(&mut self) -> Result<u64, CdrError> {
        let bytes = self.get()?;
        Ok(match self.endian {
            Endian::Big => u64::from_be_bytes(bytes),
            Endian::Little => u64::from_le_bytes(bytes),
        })
    }

    /// Reads a length that can be true: there is an octet for each element.
    pub(crate) fn read_len(&mut self) -> Result<usize, CdrError> {
        let len = self.read_u32()? as usize;
        if len > self.bytes.len().saturating_sub(self.position) {
            return Err(CdrError::LengthOverflow);
        }
        Ok(len)
    }

    pub(crate) fn read_octet_seq(&mut self) -> Result<&'a [u8], CdrError> {
        let len = self.read_len()?;
        self.take(1, len)
    }

    /// Reads a string of ISO 8859-1.
    pub(crate) fn read_string(&mut self) -> Result<String, CdrError> {
        let octets = self.read_octet_seq()?;
        let text = match octets.split_last() {
            None => octets,
            Some((0, text)) => text,
            Some(_) => return Err(CdrError::UnterminatedString),
        };
        if text.contains(&0) {
            return Err(CdrError::EmbeddedNul);
        }
        Ok(text.iter().copied().map(char::from).collect())
    }

    /// Reads a sequence.
    pub(crate) fn read_seq<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, CdrError>,
    ) -> Result<Vec<T>, CdrError> {
        let len = self.read_len()?;
        (0..len).map(|_| element(self)).collect()
    }

    fn get<const W: usize>(&mut self) -> Result<[u8; W], CdrError> {
        let mut bytes = [0; W];
        bytes.copy_from_slice(self.take(W, W)?);
        Ok(bytes)
    }

    fn take(&mut self, align: usize, n: usize) -> Result<&'a [u8], CdrError> {
        let start = self.position.next_multiple_of(align);
        let end = start.checked_add(n).ok_or(CdrError::EndOfData)?;
        let taken = self.bytes.get(start..end).ok_or(CdrError::EndOfData)?;
        self.position = end;
        Ok(taken)
    }
}
