//! Values whose layout on the wire follows from their type alone, so that many of them are read and
//! written without computing the position of each member.
//!
//! Alignment makes the layout of a struct depend on its start, modulo 8. A member of the greatest
//! alignment removes this dependency, so all elements of a sequence but the first have the same
//! layout. The first element takes the ordinary path; one check of the remaining length suffices
//! for the others.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use crate::memory::{self, Plain};
use crate::{Cdr, CdrError, Char, CharSet, Decoder, Encoder, LongDouble};

/// A type whose layout in memory is its layout on the wire, except for the byte order: numbers,
/// enums, and structs and arrays of them.
///
/// The IDL compiler generates the implementations, and uses them through [`Decoder::read_flat`] and
/// [`Encoder::write_flat`].
pub trait Flat: Copy {
    /// Size and alignment on the wire.
    const LAYOUT: Layout;

    /// Reads a value, all octets of which are present.
    fn get<const SWAP: bool>(r: &mut FlatReader<'_, SWAP>) -> Self;

    /// Writes a value for which there is room.
    fn put(&self, w: &mut FlatWriter<'_>);

    /// Reads as many values as the array has.
    #[inline(always)]
    fn get_array<const SWAP: bool, const N: usize>(r: &mut FlatReader<'_, SWAP>) -> [Self; N] {
        std::array::from_fn(|_| Self::get(r))
    }

    /// Writes all of `items`.
    #[inline(always)]
    fn put_slice(items: &[Self], w: &mut FlatWriter<'_>) {
        items.iter().for_each(|item| item.put(w));
    }
}

/// The number of octets of a value, by the position of its start modulo 8.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    /// The greatest alignment of a part.
    align: usize,
    /// The size with its padding, by the position of the start modulo 8.
    sizes: [usize; 8],
}

impl Layout {
    /// The layout of no members.
    pub const EMPTY: Self = Self {
        align: 1,
        sizes: [0; 8],
    };

    /// Returns the layout of a number of `width` octets, aligned to its size, up to 8.
    pub const fn number(width: usize) -> Self {
        let align = if width < 8 { width } else { 8 };
        let mut sizes = [width; 8];
        let mut start = 0;
        while start < 8 {
            sizes[start] += padding(start, align);
            start += 1;
        }
        Self { align, sizes }
    }

    /// Returns the layout of this followed by `next`, as of the members of a struct.
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        let mut sizes = self.sizes;
        let mut start = 0;
        while start < 8 {
            sizes[start] += next.sizes[(start + sizes[start]) % 8];
            start += 1;
        }
        let align = if self.align < next.align {
            next.align
        } else {
            self.align
        };
        Self { align, sizes }
    }

    /// Returns the layout of `n` of these, as of an array.
    #[must_use]
    pub const fn times(self, n: usize) -> Self {
        if n == 0 {
            return Self::EMPTY;
        }
        let mut sizes = self.sizes;
        let mut start = 0;
        while start < 8 {
            sizes[start] += (n - 1) * self.stride();
            start += 1;
        }
        Self { sizes, ..self }
    }

    /// Returns the start of each value but the first of several, modulo the alignment.
    const fn phase(self) -> usize {
        self.sizes[0] % self.align
    }

    /// Returns the distance between the starts of each two values but the first.
    const fn stride(self) -> usize {
        self.sizes[self.phase()]
    }
}

/// A reader of consecutive values of a layout.
#[derive(Debug)]
pub struct FlatReader<'c, const SWAP: bool> {
    octets: &'c [u8],
    /// The index of the next octet.
    at: usize,
    /// The start of the octets, modulo the alignment.
    phase: usize,
    narrow: CharSet,
    sound: bool,
}

impl<const SWAP: bool> FlatReader<'_, SWAP> {
    /// Records whether a value is valid for its type. One invalid value makes the whole read
    /// invalid; [`Cdr::decode`] then reads it again and reports the error.
    #[inline(always)]
    pub fn check(&mut self, sound: bool) {
        self.sound &= sound;
    }

    #[inline(always)]
    fn word<const W: usize>(&mut self, align: usize) -> [u8; W] {
        let start = self.at + padding(self.phase + self.at, align);
        self.at = start + W;
        let rest = self.octets.get(start..).unwrap_or_default();
        // The layout guarantees that the octets are present, as the compiler can see.
        let Some(word) = rest.first_chunk() else {
            self.sound = false;
            return [0; W];
        };
        *word
    }

    #[inline(always)]
    fn words<const W: usize, const N: usize>(&mut self, align: usize) -> [[u8; W]; N] {
        let start = self.at + padding(self.phase + self.at, align);
        self.at = start + W * N;
        let rest = self.octets.get(start..).unwrap_or_default();
        let Some(words) = rest.as_chunks().0.first_chunk() else {
            self.sound = false;
            return [[0; W]; N];
        };
        *words
    }
}

/// A writer of consecutive values of a layout, in the byte order of this machine.
#[derive(Debug)]
pub struct FlatWriter<'c> {
    octets: &'c mut [u8],
    at: usize,
    phase: usize,
    narrow: CharSet,
    sound: bool,
}

impl FlatWriter<'_> {
    /// Pads, and calls `f` to fill the next `n` octets.
    #[inline(always)]
    fn place(&mut self, align: usize, n: usize, f: impl FnOnce(&mut [u8])) {
        let start = self.at + padding(self.phase + self.at, align);
        let end = start + n;
        // The layout guarantees the room, as the compiler can see.
        match self.octets.get_mut(self.at..end) {
            Some(place) => {
                let (gap, place) = place.split_at_mut(start - self.at);
                gap.fill(0);
                f(place);
            }
            None => self.sound = false,
        }
        self.at = end;
    }
}

impl<'a> Decoder<'a> {
    /// Reads `n` values, as [`Cdr::decode_slice`] does.
    ///
    /// # Errors
    /// As [`Cdr::decode_slice`].
    #[inline]
    pub fn read_flat<T: Cdr<'a> + Flat>(&mut self, n: usize) -> Result<&'a [T], CdrError> {
        if n == 0 {
            return Ok(&[]);
        }
        let first = T::decode(self)?;
        let items = if self.endian().is_native() {
            self.read_alike::<T, false>(first, n - 1)?
        } else {
            self.read_alike::<T, true>(first, n - 1)?
        };
        if let Some(items) = items {
            return Ok(items);
        }
        self.arena().fill(n, |index| match index {
            0 => Ok(first),
            _ => T::decode(self),
        })
    }

    /// Reads `n` values behind the first. Returns `None`, and reads nothing, if they are not
    /// complete, not contiguous, or not all valid.
    #[inline]
    fn read_alike<T: Flat, const SWAP: bool>(
        &mut self,
        first: T,
        n: usize,
    ) -> Result<Option<&'a [T]>, CdrError> {
        let (stride, phase) = (T::LAYOUT.stride(), T::LAYOUT.phase());
        let size = n.checked_mul(stride).unwrap_or_default();
        if size == 0 {
            return Ok(None);
        }
        let Some(octets) = self.peek(T::LAYOUT.align, phase, size) else {
            return Ok(None);
        };
        let narrow = self.text().narrow;
        let mut sound = true;
        let rest = octets.chunks_exact(stride).map(|octets| {
            let mut r = FlatReader::<SWAP> {
                octets,
                at: 0,
                phase,
                narrow,
                sound: true,
            };
            let value = T::get(&mut r);
            sound &= r.sound;
            value
        });
        let items = self.arena().copy_behind(first, n, rest)?;
        if !sound {
            return Ok(None);
        }
        self.take_aligned(1, n * stride)?;
        Ok(Some(items))
    }
}

impl Encoder<'_> {
    /// Writes all of `items`, as [`Cdr::encode_slice`] does.
    ///
    /// # Errors
    /// As [`Cdr::encode_slice`].
    #[inline]
    pub fn write_flat<'x, T: Cdr<'x> + Flat>(&mut self, items: &[T]) -> Result<(), CdrError> {
        let Some((first, rest)) = items.split_first() else {
            return Ok(());
        };
        first.encode(self)?;
        let start = self.position();
        // The ORB writes in its own byte order alone.
        if self.endian().is_native() && self.write_alike(rest) {
            return Ok(());
        }
        self.truncate(start);
        rest.iter().try_for_each(|item| item.encode(self))
    }

    /// Writes values behind the first; returns `false` if there is no room, or one of them cannot
    /// be written.
    #[inline]
    fn write_alike<T: Flat>(&mut self, items: &[T]) -> bool {
        let (stride, phase) = (T::LAYOUT.stride(), T::LAYOUT.phase());
        if stride == 0 {
            return true;
        }
        let narrow = self.text().narrow;
        let size = stride.saturating_mul(items.len());
        let Ok(place) = self.append_aligned(1, size) else {
            return false;
        };
        let mut sound = true;
        for (octets, item) in place.chunks_exact_mut(stride).zip(items) {
            let mut w = FlatWriter {
                octets,
                at: 0,
                phase,
                narrow,
                sound: true,
            };
            item.put(&mut w);
            sound &= w.sound;
        }
        sound
    }
}

macro_rules! number {
    ($($t:ty)*) => {$(
        impl Flat for $t {
            const LAYOUT: Layout = Layout::number(size_of::<Self>());

            #[inline(always)]
            fn get<const SWAP: bool>(r: &mut FlatReader<'_, SWAP>) -> Self {
                let word = r.word::<{ size_of::<Self>() }>(size_of::<Self>());
                Self::from_ne_bytes(reversed_if::<SWAP, _>(word))
            }

            #[inline(always)]
            fn put(&self, w: &mut FlatWriter<'_>) {
                let word = self.to_ne_bytes();
                w.place(word.len(), word.len(), |place| place.copy_from_slice(&word));
            }

            #[inline(always)]
            fn get_array<const SWAP: bool, const N: usize>(
                r: &mut FlatReader<'_, SWAP>,
            ) -> [Self; N] {
                let words = r.words::<{ size_of::<Self>() }, N>(size_of::<Self>());
                words.map(|word| Self::from_ne_bytes(reversed_if::<SWAP, _>(word)))
            }

            #[inline(always)]
            fn put_slice(items: &[Self], w: &mut FlatWriter<'_>) {
                put_words::<_, { size_of::<Self>() }>(items, w);
            }
        }
    )*};
}

number! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

impl Flat for LongDouble {
    const LAYOUT: Layout = Layout::number(16);

    #[inline(always)]
    fn get<const SWAP: bool>(r: &mut FlatReader<'_, SWAP>) -> Self {
        let word = r.word::<16>(8);
        Self::from_bits(u128::from_ne_bytes(reversed_if::<SWAP, _>(word)))
    }

    #[inline(always)]
    fn put(&self, w: &mut FlatWriter<'_>) {
        let word = self.to_bits().to_ne_bytes();
        w.place(8, 16, |place| place.copy_from_slice(&word));
    }
}

impl Flat for bool {
    const LAYOUT: Layout = Layout::number(1);

    #[inline(always)]
    fn get<const SWAP: bool>(r: &mut FlatReader<'_, SWAP>) -> Self {
        u8::get(r) != 0
    }

    #[inline(always)]
    fn put(&self, w: &mut FlatWriter<'_>) {
        u8::from(*self).put(w);
    }
}

impl Flat for Char {
    const LAYOUT: Layout = Layout::number(1);

    #[inline(always)]
    fn get<const SWAP: bool>(r: &mut FlatReader<'_, SWAP>) -> Self {
        let code = u8::get(r);
        r.check(r.narrow != CharSet::Utf8 || code.is_ascii());
        Self(code)
    }

    #[inline(always)]
    fn put(&self, w: &mut FlatWriter<'_>) {
        w.sound &= w.narrow != CharSet::Utf8 || self.0.is_ascii();
        self.0.put(w);
    }
}

impl<T: Flat, const N: usize> Flat for [T; N] {
    const LAYOUT: Layout = T::LAYOUT.times(N);

    #[inline(always)]
    fn get<const SWAP: bool>(r: &mut FlatReader<'_, SWAP>) -> Self {
        T::get_array(r)
    }

    #[inline(always)]
    fn put(&self, w: &mut FlatWriter<'_>) {
        T::put_slice(self, w);
    }
}

#[inline(always)]
fn put_words<T: Plain, const W: usize>(items: &[T], w: &mut FlatWriter<'_>) {
    w.place(W, size_of_val(items), |place| {
        place.copy_from_slice(memory::bytes_of(items));
    });
}

#[inline(always)]
fn reversed_if<const SWAP: bool, const W: usize>(mut word: [u8; W]) -> [u8; W] {
    if SWAP {
        word.reverse();
    }
    word
}

/// The octets from `position` to a multiple of `align`.
const fn padding(position: usize, align: usize) -> usize {
    position.wrapping_neg() & (align - 1)
}
