//! The decoder: reads values from the octets of a message, and lends what it can.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
mod text;

pub(crate) use text::utf16_units;

use std::any::Any;
use std::fmt;
use std::mem;

use crate::limits::Limits;
use crate::values::ReadNotes;
use crate::{Arena, Cdr, CdrError, Endian, LongDouble, StackLimit, TextForm, stack};

/// The greatest nesting of sequences, encapsulations and other levels of [`Decoder::enter`] in one
/// message. The limit is lower if the stack has less room.
pub const MAX_DEPTH: u8 = 64;

/// Reads values in CDR, and owns the bytes that it reads them from.
///
/// Each byte is handed out once, so that numbers in the other byte order can be swapped in place
/// and be handed out as a slice of the frame. Values that cannot stay in the frame go to the
/// [`Arena`].
///
/// Values are aligned relative to the *origin*, which is the GIOP header of the message or the
/// start of the encapsulation. After an error the position of the decoder is somewhere within the
/// value.
pub struct Decoder<'a> {
    pub(crate) rest: &'a mut [u8],
    position: usize,
    endian: Endian,
    text: TextForm,
    depth: u8,
    /// The difference, modulo 8, between the position and the offset that alignment is relative to.
    phase: u8,
    /// The joint is the end of a chunk of a value.
    pub(crate) in_chunks: bool,
    /// The stack space that processing the values of the open levels takes.
    levels: stack::Room,
    limits: Limits,
    arena: &'a Arena,
    host: Option<&'a dyn Any>,
    /// The position of the next joint; `usize::MAX` if there is none.
    pub(crate) joint: usize,
    later_joints: &'a [u32],
    /// The state of reading values, if the message has any.
    pub(crate) values: Option<Box<dyn ReadNotes>>,
}

/// The greatest number of elements without octets in a sequence, whatever is left of the message.
/// Each of them takes time although it has no octets.
const FREE_ELEMENTS: usize = 256;

impl<'a> Decoder<'a> {
    /// Makes a decoder of `bytes`, which begin `position` octets after the origin.
    #[inline]
    pub fn new(bytes: &'a mut [u8], position: usize, endian: Endian, arena: &'a Arena) -> Self {
        let limits = Limits::of_message(bytes.len(), arena);
        Self {
            rest: bytes,
            // Positions can be added to without overflow: no message is that long.
            position: position.min(isize::MAX as usize),
            endian,
            text: TextForm::default(),
            depth: 0,
            phase: 0,
            in_chunks: false,
            levels: stack::Room::NONE,
            limits,
            arena,
            host: None,
            joint: usize::MAX,
            later_joints: &[],
            values: None,
        }
    }

    /// Makes a decoder of an encapsulation, whose first octet is its byte order.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`] if there is no octet.
    pub fn of_encapsulation(bytes: &'a mut [u8], arena: &'a Arena) -> Result<Self, CdrError> {
        let mut decoder = Self::new(bytes, 0, Endian::Big, arena);
        decoder.endian = Endian::from_flag(decoder.read_bool()?);
        Ok(decoder)
    }

    /// Sets the form of text.
    #[inline]
    #[must_use]
    pub fn with_text(mut self, text: TextForm) -> Self {
        self.text = text;
        self
    }

    /// Sets the data that the layer above needs to make object references. The decoders of
    /// encapsulations inherit it.
    #[inline]
    #[must_use]
    pub fn with_host(mut self, host: Option<&'a dyn Any>) -> Self {
        self.host = host;
        self
    }

    /// Sets the positions at which fragments of GIOP 1.1 begin, in order.
    #[inline]
    pub(crate) fn with_joints(mut self, joints: &'a [u32]) -> Self {
        if let [first, later @ ..] = joints {
            self.joint = *first as usize;
            self.later_joints = later;
        }
        self
    }

    /// Sets the form of text from here on.
    #[inline]
    pub fn set_text(&mut self, text: TextForm) {
        self.text = text;
    }

    /// Goes one level deeper. Decoders of recursive types call this, and
    /// [`leave`](Self::leave) when they succeed; sequences and encapsulations
    /// do so by themselves.
    ///
    /// # Errors
    /// [`CdrError::TooDeep`] at more than [`MAX_DEPTH`] levels, or where the stack has no room for
    /// one more; see [`StackLimit`].
    #[inline]
    pub fn enter(&mut self) -> Result<(), CdrError> {
        self.enter_for::<()>()
    }

    /// [`enter`](Self::enter) for a level that makes a `T`.
    #[inline]
    fn enter_for<T>(&mut self) -> Result<(), CdrError> {
        if self.depth >= MAX_DEPTH {
            return Err(CdrError::TooDeep);
        }
        // The size of the first level depends on the type alone and not on the message.
        if self.depth > 0 {
            let levels = self.levels.with::<T>().ok_or(CdrError::TooDeep)?;
            self.stack_limit().check(levels)?;
            self.levels = levels;
        } else {
            self.levels = stack::Room::of::<T>();
        }
        self.depth += 1;
        Ok(())
    }

    /// Comes back from a level that makes a `T`.
    #[inline]
    fn leave_for<T>(&mut self) {
        self.levels = self.levels.without::<T>();
        self.depth = self.depth.saturating_sub(1);
    }

    /// The limit of the stack.
    #[inline(always)]
    pub(crate) fn stack_limit(&mut self) -> StackLimit {
        self.limits.stack()
    }

    /// Charges work that is not in proportion to the octets that were read. A step is the work on
    /// a part of a value, or on 16 octets of text.
    ///
    /// # Errors
    /// [`CdrError::TooMuchWork`] where the message has taken more than 4096 steps and 16 for each
    /// of its octets.
    #[inline]
    pub fn charge(&mut self, steps: usize) -> Result<(), CdrError> {
        self.limits.charge(steps, self.arena)
    }

    /// The limits as far as they are known.
    #[inline]
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Replaces the limits by those of another decoder of the same message.
    #[inline]
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Comes back from one level.
    #[inline]
    pub fn leave(&mut self) {
        self.leave_for::<()>();
    }

    /// Returns the data set by [`with_host`](Self::with_host).
    #[inline]
    pub fn host(&self) -> Option<&'a dyn Any> {
        self.host
    }

    /// Returns the arena of values that cannot stay in the frame.
    #[inline]
    pub fn arena(&self) -> &'a Arena {
        self.arena
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

    /// Number of octets from the origin to the next octet.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Number of octets that are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether no octets are left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the octets that are left, and leaves them there, if they can be read without
    /// regard to alignment, byte order and fragments: the next one is `phase` octets after a
    /// multiple of 8, numbers have the byte order of this machine, and no joint follows.
    ///
    /// A header with a usual form is read at once from these octets; for any other, the result is
    /// of no use, and the values are read one by one.
    #[inline]
    pub fn lookahead(&self, phase: usize) -> Option<&[u8]> {
        let start = (self.position + usize::from(self.phase)) & 7;
        let plain = start == phase && self.endian.is_native() && self.joint == usize::MAX;
        plain.then_some(&*self.rest)
    }

    /// Takes `n` octets of those that [`lookahead`](Self::lookahead) returns; `None` if there are
    /// fewer, or a joint is among them.
    #[inline(always)]
    pub fn take_ahead(&mut self, n: usize) -> Option<&'a [u8]> {
        if n > self.rest.len() || self.joint != usize::MAX {
            return None;
        }
        let (taken, rest) = mem::take(&mut self.rest).split_at_mut(n);
        self.rest = rest;
        self.position += n;
        Some(taken)
    }

    /// The octets that are left.
    #[inline]
    pub fn into_rest(self) -> &'a mut [u8] {
        self.rest
    }
}

/// Basic types. Each method fails with [`CdrError::EndOfData`] if the message ends within the
/// value; it documents its other errors.
#[allow(clippy::missing_errors_doc)]
impl<'a> Decoder<'a> {
    /// Skips the padding to a multiple of `n`, a power of two.
    #[inline]
    pub fn align(&mut self, n: usize) -> Result<(), CdrError> {
        self.take_aligned(n, 0).map(|_| ())
    }

    /// Reads a `boolean`; every octet but zero is TRUE.
    #[inline]
    pub fn read_bool(&mut self) -> Result<bool, CdrError> {
        Ok(self.read_u8()? != 0)
    }

    /// Reads an `octet` or `uint8`.
    #[inline]
    pub fn read_u8(&mut self) -> Result<u8, CdrError> {
        Ok(self.take_aligned(1, 1)?[0])
    }

    /// Reads an `int8`.
    #[inline]
    pub fn read_i8(&mut self) -> Result<i8, CdrError> {
        Ok(self.read_u8()?.cast_signed())
    }

    /// Reads an `unsigned short`.
    #[inline]
    pub fn read_u16(&mut self) -> Result<u16, CdrError> {
        let value = u16::from_ne_bytes(self.get()?);
        Ok(if self.endian.is_native() {
            value
        } else {
            value.swap_bytes()
        })
    }

    /// Reads a `short`.
    #[inline]
    pub fn read_i16(&mut self) -> Result<i16, CdrError> {
        Ok(self.read_u16()?.cast_signed())
    }

    /// Reads an `unsigned long`.
    #[inline]
    pub fn read_u32(&mut self) -> Result<u32, CdrError> {
        let value = u32::from_ne_bytes(self.get()?);
        Ok(if self.endian.is_native() {
            value
        } else {
            value.swap_bytes()
        })
    }

    /// Reads a `long`.
    #[inline]
    pub fn read_i32(&mut self) -> Result<i32, CdrError> {
        Ok(self.read_u32()?.cast_signed())
    }

    /// Reads an `unsigned long long`.
    #[inline]
    pub fn read_u64(&mut self) -> Result<u64, CdrError> {
        let value = u64::from_ne_bytes(self.get()?);
        Ok(if self.endian.is_native() {
            value
        } else {
            value.swap_bytes()
        })
    }

    /// Reads a `long long`.
    #[inline]
    pub fn read_i64(&mut self) -> Result<i64, CdrError> {
        Ok(self.read_u64()?.cast_signed())
    }

    /// Reads a `float`.
    #[inline]
    pub fn read_f32(&mut self) -> Result<f32, CdrError> {
        Ok(f32::from_bits(self.read_u32()?))
    }

    /// Reads a `double`.
    #[inline]
    pub fn read_f64(&mut self) -> Result<f64, CdrError> {
        Ok(f64::from_bits(self.read_u64()?))
    }

    /// Reads a `long double`.
    #[inline]
    pub fn read_long_double(&mut self) -> Result<LongDouble, CdrError> {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(self.take_aligned(8, 16)?);
        if self.endian.is_little() {
            bytes.reverse();
        }
        Ok(LongDouble(bytes))
    }

    /// Takes `n` octets as they are, with no length and no alignment.
    #[inline]
    pub fn read_octets(&mut self, n: usize) -> Result<&'a [u8], CdrError> {
        Ok(self.take_aligned(1, n)?)
    }

    /// Takes `n` octets as they are, to be decoded in place.
    #[inline]
    pub fn read_octets_mut(&mut self, n: usize) -> Result<&'a mut [u8], CdrError> {
        self.take_aligned(1, n)
    }

    /// Reads the length of a sequence whose elements are at least
    /// `min_element_size` octets long on the wire (zero is taken for one).
    ///
    /// Fails with [`CdrError::LengthOverflow`] if the remaining octets cannot contain that many
    /// elements, so that memory can be allocated for the result.
    #[inline]
    pub fn read_len(&mut self, min_element_size: usize) -> Result<usize, CdrError> {
        let len = self.read_u32()? as usize;
        match len.checked_mul(min_element_size.max(1)) {
            Some(size) if size <= self.rest.len() => Ok(len),
            _ => Err(CdrError::LengthOverflow),
        }
    }

    /// [`read_len`](Self::read_len) of a sequence of `T`. Elements that need neither octets nor
    /// memory, as empty structs, may be more than octets are left: [`FREE_ELEMENTS`].
    #[inline]
    pub(crate) fn read_len_of<T>(&mut self, min_element_size: usize) -> Result<usize, CdrError> {
        if size_of::<T>() != 0 || min_element_size != 0 {
            return self.read_len(min_element_size);
        }
        let len = self.read_u32()? as usize;
        if len > self.rest.len().max(FREE_ELEMENTS) {
            return Err(CdrError::LengthOverflow);
        }
        Ok(len)
    }

    /// Reads a number of `W` octets, and leaves it in this machine's byte order where it lies.
    pub(crate) fn native_word<const W: usize>(&mut self) -> Result<[u8; W], CdrError> {
        let native = self.endian.is_native();
        let octets = self.take_aligned(W.min(8), W)?;
        if !native {
            octets.reverse();
        }
        let mut word = [0; W];
        word.copy_from_slice(octets);
        Ok(word)
    }

    #[inline]
    fn get<const W: usize>(&mut self) -> Result<[u8; W], CdrError> {
        let padding = self.padding_or_joint(W, W)?;
        if self.rest.len() < padding + W {
            return Err(CdrError::EndOfData);
        }
        let rest = mem::take(&mut self.rest).split_at_mut_checked(padding);
        let (_, rest) = rest.ok_or(CdrError::EndOfData)?;
        let split = rest.split_first_chunk_mut();
        let (bytes, rest) = split.ok_or(CdrError::EndOfData)?;
        self.rest = rest;
        self.position += padding + W;
        Ok(*bytes)
    }

    /// Skips the padding to a multiple of `align` and takes `n` octets.
    #[inline]
    pub(crate) fn take_aligned(
        &mut self,
        align: usize,
        n: usize,
    ) -> Result<&'a mut [u8], CdrError> {
        let padding = self.padding_or_joint(align, n)?;
        self.take(padding, n)
    }

    /// The next `n` octets, where they are all there in one piece and start `phase` octets after
    /// a multiple of `align`.
    #[inline]
    pub(crate) fn peek(&self, align: usize, phase: usize, n: usize) -> Option<&[u8]> {
        let start = (self.position + usize::from(self.phase)) & (align - 1);
        if start != phase || n > self.joint.saturating_sub(self.position) {
            return None;
        }
        self.rest.get(..n)
    }

    /// Returns the padding before the next `n` octets. Enters the next fragment first if they are
    /// there.
    #[inline]
    fn padding_or_joint(&mut self, align: usize, n: usize) -> Result<usize, CdrError> {
        let padding = self.padding(align);
        if self.position + padding >= self.joint {
            return self.cross_joint(align, n);
        }
        Ok(padding)
    }

    /// As [`take_aligned`](Self::take_aligned), for the elements of an array or sequence.
    ///
    /// If a fragment ends before the first element, the padding is in that fragment and not in the
    /// next. omniORB, the ORB that sends fragments of GIOP 1.1, does it this way.
    #[inline]
    pub(crate) fn take_elements(
        &mut self,
        align: usize,
        n: usize,
    ) -> Result<&'a mut [u8], CdrError> {
        let mut padding = self.padding(align);
        if self.position + padding >= self.joint
            && (self.in_chunks || self.position + padding > self.joint)
        {
            padding = self.cross_joint(align, n)?;
        }
        self.take(padding, n)
    }

    #[inline]
    fn take(&mut self, padding: usize, n: usize) -> Result<&'a mut [u8], CdrError> {
        let left = self.rest.len();
        if left < padding || left - padding < n {
            return Err(CdrError::EndOfData);
        }
        let rest = mem::take(&mut self.rest).split_at_mut_checked(padding);
        let (_, rest) = rest.ok_or(CdrError::EndOfData)?;
        let split = rest.split_at_mut_checked(n);
        let (taken, rest) = split.ok_or(CdrError::EndOfData)?;
        self.rest = rest;
        self.position += padding + n;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn padding(&self, align: usize) -> usize {
        (self.position + usize::from(self.phase)).wrapping_neg() & (align - 1)
    }

    /// Continues in the next fragment or chunk if the next value, of `n` octets, starts there.
    /// Returns the padding before the value.
    #[cold]
    fn cross_joint(&mut self, align: usize, n: usize) -> Result<usize, CdrError> {
        if self.in_chunks {
            return self.cross_chunk(align, n);
        }
        loop {
            let padding = self.padding(align);
            if self.position + padding < self.joint {
                return Ok(padding);
            }
            let rest_of_fragment = self.joint.saturating_sub(self.position);
            self.rest = mem::take(&mut self.rest)
                .split_at_mut_checked(rest_of_fragment)
                .ok_or(CdrError::EndOfData)?
                .1;
            self.position += rest_of_fragment;
            self.next_joint();
        }
    }

    /// Advances to the next joint. Alignment follows the fragment behind the present one.
    fn next_joint(&mut self) {
        self.phase = (FRAGMENT_HEADER_LEN.wrapping_sub(self.joint) % 8) as u8;
        self.joint = usize::MAX;
        if let [next, later @ ..] = self.later_joints {
            self.joint = *next as usize;
            self.later_joints = later;
        }
    }
}

/// Constructed types.
impl<'a> Decoder<'a> {
    /// Reads a `sequence<T>`. If `T` is a basic type the result is a view of
    /// the frame, otherwise it is in the arena.
    ///
    /// # Errors
    /// [`CdrError::LengthOverflow`] if the remaining octets cannot contain it,
    /// [`CdrError::TooDeep`], [`CdrError::ArenaFull`], and those of the elements.
    #[inline]
    pub fn read_seq<T: Cdr<'a>>(&mut self) -> Result<&'a [T], CdrError> {
        self.read_seq_bounded(u32::MAX)
    }

    /// Reads a `sequence<T, bound>`.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if it is longer, and as
    /// [`read_seq`](Self::read_seq).
    #[inline]
    pub fn read_seq_bounded<T: Cdr<'a>>(&mut self, bound: u32) -> Result<&'a [T], CdrError> {
        let n = self.read_len_of::<T>(T::MIN_SIZE)?;
        if n > bound as usize {
            return Err(CdrError::BoundExceeded);
        }
        if !T::NESTS {
            return T::decode_slice(self, n);
        }
        self.enter_for::<T>()?;
        let items = T::decode_slice(self, n)?;
        self.leave_for::<T>();
        Ok(items)
    }

    /// Reads a sequence by `element`, which reads one element of at least `min_size` octets. It
    /// serves elements whose type alone does not tell how to read them, such as bounded and wide
    /// strings.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] if it is longer than `bound`, and as
    /// [`read_seq`](Self::read_seq).
    #[inline]
    pub fn read_seq_with<T: Copy>(
        &mut self,
        bound: Option<u32>,
        min_size: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, CdrError>,
    ) -> Result<&'a [T], CdrError> {
        let n = self.read_len_of::<T>(min_size)?;
        if bound.is_some_and(|bound| n > bound as usize) {
            return Err(CdrError::BoundExceeded);
        }
        self.enter_for::<T>()?;
        let items = self.arena.fill(n, |_| element(self))?;
        self.leave_for::<T>();
        Ok(items)
    }

    /// Reads a value into the arena, such as a member with `@external` of a type that contains
    /// itself. It is one level deeper.
    ///
    /// # Errors
    /// [`CdrError::TooDeep`] as [`enter`](Self::enter), [`CdrError::ArenaFull`], and those of
    /// `read`.
    #[inline]
    pub fn read_apart_with<T: Copy>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Result<&'a T, CdrError> {
        self.enter_for::<T>()?;
        let value = read(self)?;
        self.leave_for::<T>();
        self.arena.alloc(value)
    }

    /// Reads an array by value.
    ///
    /// # Errors
    /// Those of the elements.
    #[inline]
    pub fn read_array<T: Cdr<'a>, const N: usize>(&mut self) -> Result<[T; N], CdrError> {
        T::decode_array(self)
    }

    /// Reads an array. If `T` is a basic type the result is a view of the
    /// frame, otherwise it is in the arena.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`], and those of the elements.
    #[inline]
    pub fn read_array_ref<T: Cdr<'a>, const N: usize>(&mut self) -> Result<&'a [T; N], CdrError> {
        T::decode_slice(self, N)?
            .try_into()
            .map_err(|_| CdrError::EndOfData)
    }

    /// Reads an array whose elements `element` reads.
    ///
    /// # Errors
    /// Those of `element`.
    #[inline]
    pub fn read_array_with<T: Copy, const N: usize>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, CdrError>,
    ) -> Result<[T; N], CdrError> {
        if N == 0 {
            return Ok(std::array::from_fn(|_| unreachable!("the array is empty")));
        }
        let mut items = [element(self)?; N];
        for item in &mut items[1..] {
            *item = element(self)?;
        }
        Ok(items)
    }

    /// Reads a `sequence<octet>`, a view of the frame.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`], [`CdrError::LengthOverflow`]
    #[inline]
    pub fn read_octet_seq(&mut self) -> Result<&'a [u8], CdrError> {
        let n = self.read_len(1)?;
        self.read_octets(n)
    }

    /// Reads an encapsulation: a decoder of its contents, which has its own
    /// byte order and origin.
    ///
    /// # Errors
    /// [`CdrError::EndOfData`] if it has no octets, [`CdrError::TooDeep`],
    /// [`CdrError::LengthOverflow`].
    pub fn read_encapsulation(&mut self) -> Result<Self, CdrError> {
        let n = self.read_len(1)?;
        let mut inner = Decoder::of_encapsulation(self.read_octets_mut(n)?, self.arena)?
            .with_text(self.text)
            .with_host(self.host);
        inner.depth = self.depth;
        inner.levels = self.levels;
        inner.limits = self.limits;
        inner.enter()?;
        Ok(inner)
    }
}

impl fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("position", &self.position)
            .field("remaining", &self.remaining())
            .field("endian", &self.endian)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// The position of a value in a message, on which its layout depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Number of octets from the origin.
    pub(crate) position: usize,
    phase: u8,
    joint: usize,
    later_joints: &'a [u32],
}

impl Place<'_> {
    /// The origin of a message in one piece.
    pub(crate) const ORIGIN: Self = Self {
        position: 0,
        phase: 0,
        joint: usize::MAX,
        later_joints: &[],
    };

    /// Returns the offset that alignment is relative to.
    pub(crate) fn offset(&self) -> usize {
        self.position + usize::from(self.phase)
    }
}

impl<'a> Decoder<'a> {
    /// Returns the position of the next octet.
    pub(crate) fn place(&self) -> Place<'a> {
        Place {
            position: self.position,
            phase: self.phase,
            joint: if self.in_chunks {
                usize::MAX
            } else {
                self.joint
            },
            later_joints: self.later_joints,
        }
    }

    /// Moves the decoder to `place`; its octets are a copy of those from there on.
    pub(crate) fn at_place(mut self, place: Place<'a>) -> Self {
        self.position = place.position;
        self.phase = place.phase;
        self.joint = place.joint;
        self.later_joints = place.later_joints;
        self
    }

    /// Takes the octets that `look` reads and leaves in the byte order of this machine, with their
    /// position.
    ///
    /// # Errors
    /// The errors of `look`; [`CdrError::OpaqueValue`] within the chunks of a value.
    pub(crate) fn take_native(
        &mut self,
        look: impl FnOnce(&mut Decoder<'_>) -> Result<(), CdrError>,
    ) -> Result<(&'a mut [u8], Place<'a>), CdrError> {
        if self.in_chunks {
            return Err(CdrError::OpaqueValue);
        }
        let ((), size, _) = self.look_ahead(look)?;
        let place = self.place();
        let (octets, rest) = mem::take(&mut self.rest)
            .split_at_mut_checked(size)
            .ok_or(CdrError::EndOfData)?;
        self.rest = rest;
        self.position += size;
        while self.joint < self.position {
            self.next_joint();
        }
        Ok((octets, place))
    }

    /// Calls `look` with a decoder of the remaining octets. Returns its result, the number of
    /// octets that it read, and whether a joint is in them or at their end. This decoder does not
    /// advance, but octets that `look` swapped in place stay swapped.
    ///
    /// # Errors
    /// The errors of `look`; [`CdrError::OpaqueValue`] at the end of a chunk.
    pub(crate) fn look_ahead<T>(
        &mut self,
        look: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>,
    ) -> Result<(T, usize, bool), CdrError> {
        let start = self.position;
        let mut ahead = Decoder {
            rest: self.rest,
            values: None,
            ..*self
        };
        let found = look(&mut ahead)?;
        let end = ahead.position;
        self.limits = ahead.limits;
        Ok((found, end - start, !self.in_chunks && end >= self.joint))
    }
}

/// Number of octets before the body of a fragment in GIOP 1.1.
const FRAGMENT_HEADER_LEN: usize = 12;
