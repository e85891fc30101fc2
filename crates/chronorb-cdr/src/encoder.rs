//! The encoder: writes values into a frame.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
mod text;

use std::fmt;
use std::mem;

use crate::values::WriteNotes;
use crate::{Cdr, CdrError, Endian, Frame, LongDouble, StackLimit, TextForm};

/// Appends values to a [`Frame`] in CDR.
///
/// Each value is aligned to its size, up to 8, relative to the *origin*, which is the start of the
/// frame and of the GIOP header. Positions are counted from the origin too.
///
/// A method that fails may have written a part of its value. The message must then be discarded, or
/// cut back with [`truncate`](Self::truncate).
pub struct Encoder<'f> {
    frame: &'f mut Frame,
    /// The offset of the origin in the frame minus the octets that were left out of the frame;
    /// below 0 it wraps.
    origin: usize,
    /// The offset in the frame of the last omitted octets. Nothing before it can be changed.
    floor: usize,
    endian: Endian,
    text: TextForm,
    /// The smallest size of slices that may be left to a [`Gather`].
    great: usize,
    /// The limit of the stack, once a value was nested.
    stack: Option<StackLimit>,
    gather: Option<&'f mut dyn Gather>,
    /// The state of writing values, if the message has any.
    pub(crate) values: Option<Box<dyn WriteNotes>>,
}

/// A receiver of large slices, which are then left out of the encoder's frame; see
/// [`Encoder::gathering`].
pub trait Gather {
    /// Takes `octets`, which follow the present content of `frame` and all slices taken before; or
    /// returns `false`, and they are copied into the frame.
    ///
    /// # Errors
    /// Any; the encoder fails with it.
    fn take(&mut self, frame: &Frame, octets: &[u8]) -> Result<bool, CdrError>;
}

impl<'f> Encoder<'f> {
    /// Makes an encoder that appends to `frame` and whose origin is the start
    /// of the frame.
    #[inline]
    pub fn new(frame: &'f mut Frame, endian: Endian) -> Self {
        Self {
            frame,
            origin: 0,
            floor: 0,
            endian,
            text: TextForm::default(),
            great: usize::MAX,
            stack: None,
            gather: None,
            values: None,
        }
    }

    /// Returns an encoder that continues behind the written values and passes slices of at least
    /// `great` octets to `gather`. These are slices of octets, booleans, characters, and of numbers
    /// in the machine's byte order. They are not copied into the frame but count in all positions.
    /// The content of an encapsulation is always copied.
    pub fn gathering<'s>(&'s mut self, great: usize, gather: &'s mut dyn Gather) -> Encoder<'s> {
        Encoder {
            frame: self.frame,
            origin: self.origin,
            floor: self.floor,
            endian: self.endian,
            text: self.text,
            great: great.max(1),
            stack: self.stack,
            gather: Some(gather),
            values: None,
        }
    }

    /// Passes slices to `gather` as [`gathering`](Self::gathering) does.
    #[inline]
    #[must_use]
    pub fn with_gather(mut self, great: usize, gather: &'f mut dyn Gather) -> Self {
        self.great = great.max(1);
        self.gather = Some(gather);
        self
    }

    /// The limit of the stack.
    #[inline]
    pub(crate) fn stack_limit(&mut self) -> StackLimit {
        *self.stack.get_or_insert_with(StackLimit::of_this_thread)
    }

    /// Sets the form of text.
    #[inline]
    #[must_use]
    pub fn with_text(mut self, text: TextForm) -> Self {
        self.text = text;
        self
    }

    /// Moves the origin to the offset `origin` of the frame.
    #[inline]
    #[must_use]
    pub fn with_origin(mut self, origin: usize) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the form of text from here on.
    #[inline]
    pub fn set_text(&mut self, text: TextForm) {
        self.text = text;
    }

    /// Removes everything that was written from `position` on. Slices that a [`Gather`] took cannot
    /// be recalled, nor can the octets before them: they only stop counting.
    #[inline]
    pub fn truncate(&mut self, position: usize) {
        if let Some(values) = &mut self.values
            && let Some(great) = values.cut(position)
        {
            self.great = great;
        }
        self.cut(position);
    }

    /// Truncates as [`truncate`](Self::truncate) does, without the state of values.
    #[inline]
    pub(crate) fn cut(&mut self, position: usize) {
        let Some(back) = self.position().checked_sub(position) else {
            return;
        };
        let kept = self.frame.len().saturating_sub(back).max(self.floor);
        self.frame.truncate(kept);
        self.origin = kept.wrapping_sub(position);
    }

    /// Writes `value` over the four octets at `position`, which were written
    /// before.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`] if there are no four octets at `position`, or they precede octets
    /// that were left to a [`Gather`].
    pub fn patch_u32(&mut self, position: usize, value: u32) -> Result<(), CdrError> {
        let bytes = match self.endian {
            Endian::Big => value.to_be_bytes(),
            Endian::Little => value.to_le_bytes(),
        };
        self.position()
            .checked_sub(position)
            .and_then(|back| self.frame.len().checked_sub(back))
            .filter(|&start| start >= self.floor)
            .and_then(|start| {
                self.frame
                    .as_mut_slice()
                    .get_mut(start..)?
                    .first_chunk_mut()
            })
            .map(|place| *place = bytes)
            .ok_or(CdrError::EndOfData)
    }

    /// Returns the frame with everything written so far.
    #[inline]
    pub fn frame(&self) -> &Frame {
        self.frame
    }

    /// Returns the frame, to complete the parts that are not CDR.
    #[inline]
    pub fn frame_mut(&mut self) -> &mut Frame {
        self.frame
    }

    /// Number of octets from the origin to the next value.
    #[inline]
    pub fn position(&self) -> usize {
        self.frame.len().wrapping_sub(self.origin)
    }

    /// The byte order.
    #[inline]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The form of text.
    #[inline]
    pub fn text(&self) -> TextForm {
        self.text
    }
}

/// Basic types. Each method fails with [`CdrError::FrameFull`] if the frame would grow over its
/// limit; it documents its other errors.
#[allow(clippy::missing_errors_doc)]
impl Encoder<'_> {
    /// Pads with zeros to a multiple of `n`, a power of two.
    #[inline]
    pub fn align(&mut self, n: usize) -> Result<(), CdrError> {
        self.append_aligned(n, 0).map(|_| ())
    }

    /// Writes a `boolean`.
    #[inline]
    pub fn write_bool(&mut self, value: bool) -> Result<(), CdrError> {
        self.write_u8(u8::from(value))
    }

    /// Writes an `octet` or `uint8`.
    #[inline]
    pub fn write_u8(&mut self, value: u8) -> Result<(), CdrError> {
        self.frame.append(1)?[0] = value;
        Ok(())
    }

    /// Writes an `int8`.
    #[inline]
    pub fn write_i8(&mut self, value: i8) -> Result<(), CdrError> {
        self.write_u8(value.cast_unsigned())
    }

    /// Writes an `unsigned short`.
    #[inline]
    pub fn write_u16(&mut self, value: u16) -> Result<(), CdrError> {
        self.put(match self.endian {
            Endian::Big => value.to_be_bytes(),
            Endian::Little => value.to_le_bytes(),
        })
    }

    /// Writes a `short`.
    #[inline]
    pub fn write_i16(&mut self, value: i16) -> Result<(), CdrError> {
        self.write_u16(value.cast_unsigned())
    }

    /// Writes an `unsigned long`.
    #[inline]
    pub fn write_u32(&mut self, value: u32) -> Result<(), CdrError> {
        self.put(match self.endian {
            Endian::Big => value.to_be_bytes(),
            Endian::Little => value.to_le_bytes(),
        })
    }

    /// Writes a `long`.
    #[inline]
    pub fn write_i32(&mut self, value: i32) -> Result<(), CdrError> {
        self.write_u32(value.cast_unsigned())
    }

    /// Writes an `unsigned long long`.
    #[inline]
    pub fn write_u64(&mut self, value: u64) -> Result<(), CdrError> {
        self.put(match self.endian {
            Endian::Big => value.to_be_bytes(),
            Endian::Little => value.to_le_bytes(),
        })
    }

    /// Writes a `long long`.
    #[inline]
    pub fn write_i64(&mut self, value: i64) -> Result<(), CdrError> {
        self.write_u64(value.cast_unsigned())
    }

    /// Writes a `float`.
    #[inline]
    pub fn write_f32(&mut self, value: f32) -> Result<(), CdrError> {
        self.write_u32(value.to_bits())
    }

    /// Writes a `double`.
    #[inline]
    pub fn write_f64(&mut self, value: f64) -> Result<(), CdrError> {
        self.write_u64(value.to_bits())
    }

    /// Writes a `long double`.
    #[inline]
    pub fn write_long_double(&mut self, value: LongDouble) -> Result<(), CdrError> {
        let mut bytes = value.0;
        if self.endian.is_little() {
            bytes.reverse();
        }
        self.append_aligned(8, 16)?.copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes `bytes` as they are, with no length and no alignment.
    #[inline]
    pub fn write_octets(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        if self.is_great(bytes) {
            return self.write_great(bytes);
        }
        self.frame.extend_from_slice(bytes)
    }

    /// Writes the length of a sequence.
    ///
    /// Fails with [`CdrError::LengthOverflow`] if an `unsigned long` cannot
    /// hold it.
    #[inline]
    pub fn write_len(&mut self, len: usize) -> Result<(), CdrError> {
        self.write_u32(u32::try_from(len).map_err(|_| CdrError::LengthOverflow)?)
    }

    /// Sets the smallest size of slices that may be left to a [`Gather`], and returns the previous
    /// one.
    pub(crate) fn set_great(&mut self, great: usize) -> usize {
        mem::replace(&mut self.great, great)
    }

    /// Whether [`write_octets`](Self::write_octets) may leave the slice to a [`Gather`].
    #[inline]
    pub(crate) fn is_great(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.great
    }

    #[cold]
    fn write_great(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        let taken = match &mut self.gather {
            Some(gather) => gather.take(self.frame, bytes)?,
            None => false,
        };
        if !taken {
            return self.frame.extend_from_slice(bytes);
        }
        self.floor = self.frame.len();
        self.origin = self.origin.wrapping_sub(bytes.len());
        Ok(())
    }

    #[inline]
    fn put<const W: usize>(&mut self, bytes: [u8; W]) -> Result<(), CdrError> {
        self.append_aligned(W, W)?.copy_from_slice(&bytes);
        Ok(())
    }

    /// Appends padding to a multiple of `align`, then `n` octets, and returns those.
    #[inline]
    pub(crate) fn append_aligned(&mut self, align: usize, n: usize) -> Result<&mut [u8], CdrError> {
        let padding = self.position().wrapping_neg() & (align - 1);
        let total = n.checked_add(padding).ok_or(CdrError::FrameFull)?;
        let room = self.frame.append(total)?;
        if padding != 0 {
            // A few octets more than the gap, which the value overwrites, are one store.
            match room.first_chunk_mut::<4>() {
                Some(first) if padding < 4 => *first = [0; 4],
                _ => room[..padding].fill(0),
            }
        }
        Ok(&mut room[padding..])
    }
}

/// Constructed types.
impl Encoder<'_> {
    /// Writes a `sequence<T>`.
    ///
    /// # Errors
    /// [`CdrError::LengthOverflow`] if an `unsigned long` cannot count the elements, and those of
    /// the elements.
    #[inline]
    pub fn write_seq<'x, T: Cdr<'x>>(&mut self, items: &[T]) -> Result<(), CdrError> {
        self.write_len(items.len())?;
        T::encode_slice(items, self)
    }

    /// Writes a `sequence<T, bound>`.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if it is longer, and those of the elements.
    #[inline]
    pub fn write_seq_bounded<'x, T: Cdr<'x>>(
        &mut self,
        items: &[T],
        bound: u32,
    ) -> Result<(), CdrError> {
        if items.len() > bound as usize {
            return Err(CdrError::BoundExceeded);
        }
        self.write_seq(items)
    }

    /// Writes a `sequence<octet>`.
    ///
    /// # Errors
    /// [`CdrError::LengthOverflow`] if an `unsigned long` cannot count the
    /// octets, [`CdrError::FrameFull`].
    #[inline]
    pub fn write_octet_seq(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.write_len(bytes.len())?;
        self.write_octets(bytes)
    }

    /// Writes an encapsulation: a `sequence<octet>` that starts with its byte
    /// order, which is that of this encoder, and is the origin of its own.
    ///
    /// # Errors
    /// Those of `body`.
    pub fn write_encapsulation(
        &mut self,
        body: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        self.write_u32(0)?;
        let start = self.position();
        let origin = self.frame.len();
        // The length is known only at the end, so the whole encapsulation must be in the frame
        // until then.
        let mut inner = Encoder::new(self.frame, self.endian)
            .with_text(self.text)
            .with_origin(origin);
        inner.stack = self.stack;
        inner.write_bool(inner.endian.is_little())?;
        body(&mut inner)?;
        let len = self.position() - start;
        let len = u32::try_from(len).map_err(|_| CdrError::LengthOverflow)?;
        self.patch_u32(start - 4, len)
    }
}

impl fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("position", &self.position())
            .field("endian", &self.endian)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}
