//! The trait of values that are written to and read from CDR, and its basic implementations.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
use crate::{CdrError, Char, CharSet, Decoder, Encoder, Endian, LongDouble, copied, memory};

/// A type that has a form in CDR.
///
/// `'a` is the life of the frame and the arena that a decoded value may point
/// into. Values are `Copy`, so that sequences of them can live in the arena.
/// A wide string has the same Rust type as a string and so no implementation:
/// it is written and read by name, with [`Encoder::write_wstr`] and
/// [`Decoder::read_wstr`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no form in a message",
    label = "neither written nor read as it is",
    note = "views are written and read: `&str` for `String`, `&[T]` for `Vec<T>`, and the view of \
            an owned type, by `as_view` or `as_view_in`"
)]
pub trait Cdr<'a>: Copy {
    /// The least number of octets of a value on the wire, without padding. It bounds the memory
    /// that a decoder reserves for a length on the wire.
    const MIN_SIZE: usize;

    /// Whether a value may contain sequences, encapsulations or values. Decoding a sequence of
    /// types that do not nest needs no further levels of the stack.
    const NESTS: bool = true;

    /// Writes the value.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`], and errors in the value.
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Reads a value.
    ///
    /// # Errors
    /// Any of [`CdrError`].
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError>;

    /// Writes all of `items`, without a length.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    #[inline]
    fn encode_slice(items: &[Self], e: &mut Encoder<'_>) -> Result<(), CdrError> {
        items.iter().try_for_each(|item| item.encode(e))
    }

    /// Reads `n` values. The caller has made sure that `n` is sane, as
    /// [`Decoder::read_len`] does.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and [`CdrError::ArenaFull`].
    #[inline]
    fn decode_slice(d: &mut Decoder<'a>, n: usize) -> Result<&'a [Self], CdrError> {
        d.arena().fill(n, |_| Self::decode(d))
    }

    /// Reads `N` values into an array.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_array<const N: usize>(d: &mut Decoder<'a>) -> Result<[Self; N], CdrError> {
        d.read_array_with(Self::decode)
    }
}

macro_rules! number {
    ($($t:ty, $write:ident, $read:ident;)*) => {$(
        impl<'a> Cdr<'a> for $t {
            const MIN_SIZE: usize = size_of::<$t>();
            const NESTS: bool = false;

            #[inline]
            fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
                e.$write(*self)
            }

            #[inline]
            fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
                d.$read()
            }

            #[inline]
            fn encode_slice(items: &[Self], e: &mut Encoder<'_>) -> Result<(), CdrError> {
                let is_native = e.endian().is_native();
                encode_words::<{ size_of::<$t>() }>(memory::bytes_of(items), is_native, e)
            }

            #[inline]
            fn decode_slice(d: &mut Decoder<'a>, n: usize) -> Result<&'a [Self], CdrError> {
                let bytes = decode_words::<{ size_of::<$t>() }>(d, n, d.endian().is_native())?;
                if let Some(items) = memory::cast(bytes) {
                    return Ok(items);
                }
                // An encapsulation may put numbers where memory is not aligned for them.
                let (words, _) = bytes.as_chunks();
                d.arena().fill(n, |i| Ok(<$t>::from_ne_bytes(words[i])))
            }

            #[inline]
            fn decode_array<const N: usize>(d: &mut Decoder<'a>) -> Result<[Self; N], CdrError> {
                let bytes = decode_words::<{ size_of::<$t>() }>(d, N, d.endian().is_native())?;
                let (words, _) = bytes.as_chunks();
                Ok(std::array::from_fn(|i| <$t>::from_ne_bytes(words[i])))
            }
        }
    )*};
}

number! {
    u8, write_u8, read_u8;
    i8, write_i8, read_i8;
    u16, write_u16, read_u16;
    i16, write_i16, read_i16;
    u32, write_u32, read_u32;
    i32, write_i32, read_i32;
    u64, write_u64, read_u64;
    i64, write_i64, read_i64;
    f32, write_f32, read_f32;
    f64, write_f64, read_f64;
}

impl<'a> Cdr<'a> for LongDouble {
    const MIN_SIZE: usize = 16;
    const NESTS: bool = false;

    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_long_double(*self)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_long_double()
    }

    fn encode_slice(items: &[Self], e: &mut Encoder<'_>) -> Result<(), CdrError> {
        encode_words::<16>(memory::bytes_of(items), e.endian() == Endian::Big, e)
    }

    fn decode_slice(d: &mut Decoder<'a>, n: usize) -> Result<&'a [Self], CdrError> {
        let bytes = decode_words::<16>(d, n, d.endian() == Endian::Big)?;
        memory::cast(bytes).ok_or(CdrError::EndOfData)
    }
}

impl<'a> Cdr<'a> for bool {
    const MIN_SIZE: usize = 1;
    const NESTS: Self = false;

    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_bool(*self)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_bool()
    }

    fn encode_slice(items: &[Self], e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_octets(memory::bytes_of_bools(items))
    }

    fn decode_slice(d: &mut Decoder<'a>, n: usize) -> Result<&'a [Self], CdrError> {
        d.read_octets_mut(n).map(memory::normalize_bools)
    }
}

impl<'a> Cdr<'a> for Char {
    const MIN_SIZE: usize = 1;
    const NESTS: bool = false;

    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_char(*self)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_char()
    }

    fn encode_slice(items: &[Self], e: &mut Encoder<'_>) -> Result<(), CdrError> {
        let bytes = memory::bytes_of(items);
        if e.text().narrow == CharSet::Utf8 && !bytes.is_ascii() {
            return Err(CdrError::UnmappableChar);
        }
        e.write_octets(bytes)
    }

    fn decode_slice(d: &mut Decoder<'a>, n: usize) -> Result<&'a [Self], CdrError> {
        let bytes = d.read_octets(n)?;
        if d.text().narrow == CharSet::Utf8 && !bytes.is_ascii() {
            return Err(CdrError::UnmappableChar);
        }
        memory::cast(bytes).ok_or(CdrError::EndOfData)
    }
}

/// The empty value, the result of an operation without results.
impl<'a> Cdr<'a> for () {
    const MIN_SIZE: usize = 0;
    const NESTS: bool = false;

    fn encode(&self, _: &mut Encoder<'_>) -> Result<(), CdrError> {
        Ok(())
    }

    fn decode(_: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(())
    }
}

/// A `wchar`.
impl<'a> Cdr<'a> for char {
    const MIN_SIZE: usize = 2;
    const NESTS: bool = false;

    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_wchar(*self)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_wchar()
    }
}

/// A `string`.
impl<'a> Cdr<'a> for &'a str {
    const MIN_SIZE: usize = 4;
    const NESTS: bool = false;

    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_str(self)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_str()
    }
}

/// A sequence without a bound.
impl<'a, T: Cdr<'a>> Cdr<'a> for &'a [T] {
    const MIN_SIZE: usize = 4;

    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_seq(self)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        d.read_seq()
    }
}

/// An array; the first index is the outer one.
impl<'a, T: Cdr<'a>, const N: usize> Cdr<'a> for [T; N] {
    const MIN_SIZE: usize = N.saturating_mul(T::MIN_SIZE);

    #[inline]
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        T::encode_slice(self, e)
    }

    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        T::decode_array(d)
    }
}

/// Writes words of `W` octets, reversing each unless `as_is`.
#[inline]
fn encode_words<const W: usize>(
    bytes: &[u8],
    as_is: bool,
    e: &mut Encoder<'_>,
) -> Result<(), CdrError> {
    if bytes.is_empty() {
        return Ok(());
    }
    if as_is && e.is_great(bytes) {
        e.align(W.min(8))?;
        return e.write_octets(bytes);
    }
    let place = e.append_aligned(W.min(8), bytes.len())?;
    place.copy_from_slice(bytes);
    copied::count(bytes.len());
    if !as_is && W != 1 {
        memory::reverse_words::<W>(place.as_chunks_mut().0);
    }
    Ok(())
}

/// Takes `n` words of `W` octets, reversing each where it lies unless `as_is`.
#[inline]
pub(crate) fn decode_words<'a, const W: usize>(
    d: &mut Decoder<'a>,
    n: usize,
    as_is: bool,
) -> Result<&'a [u8], CdrError> {
    // No elements, no padding before them.
    if n == 0 {
        return Ok(&[]);
    }
    let size = n.checked_mul(W).ok_or(CdrError::EndOfData)?;
    let bytes = d.take_elements(W.min(8), size)?;
    if !as_is && W != 1 {
        memory::reverse_words::<W>(bytes.as_chunks_mut().0);
    }
    Ok(bytes)
}
