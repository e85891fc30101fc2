//! An `any` that owns its octets.

#![allow(clippy::disallowed_methods, reason = "an owned value is allocated")]
use std::fmt;
use std::sync::Arc;

use super::body::Body;
use super::walk::Traits;
use super::{Any, Content, Encode, TypeOf, encode_value};
use crate::{
    Arena, Bounds, Cdr, CdrError, CharSet, Decoder, Encoder, Endian, Frame, TextForm, TypeCode,
    TypeCodeBuf, Typed, WideForm,
};

/// An any that owns its value; the owning form of [`Any`]. Clones are cheap.
///
/// The value has its own memory, so no arena is needed. [`new`](Self::new) encodes a value,
/// [`extract`](Self::extract) decodes it, and [`as_view`](Self::as_view) passes it to a call. The
/// lifetime is not bound to a message or a thread.
///
/// Two of them are equal if their type codes are and the octets of their values: a NaN is equal to
/// itself.
///
/// ```
/// use chronorb_cdr::{AnyBuf, Cdr, CdrError, Encoder, Endian, Frame};
///
/// # fn main() -> Result<(), CdrError> {
/// let mut last = AnyBuf::new(&2.5)?;
/// assert_eq!(last.extract::<f64>()?, 2.5);
///
/// // A value that borrows is read where it is lent.
/// last = AnyBuf::new(&"ACME")?;
/// let symbol = last.with_view(|any| any.extract::<&str>().map(str::to_owned))?;
/// assert_eq!(symbol, "ACME");
///
/// // Functions that send an any take the view.
/// let mut frame = Frame::new(64, 1024);
/// last.as_view().encode(&mut Encoder::new(&mut frame, Endian::Big))?;
/// # Ok(())
/// # }
/// ```
///
/// Object references belong to an ORB, which this crate does not know: `Orb::any` of the ORB crate
/// makes a view that extracts them.
#[derive(Clone)]
pub struct AnyBuf {
    type_code: TypeCodeBuf,
    content: Result<Arc<Octets>, CdrError>,
}

/// A value in its canonical form: in the byte order of this machine, from the origin on.
struct Octets {
    octets: Box<[u8]>,
    traits: Traits,
}

impl AnyBuf {
    /// Makes an any of a value.
    ///
    /// # Errors
    /// Those of writing the value; [`CdrError::OpaqueValue`].
    pub fn new<'x, T: Cdr<'x> + Typed>(value: &T) -> Result<Self, CdrError> {
        Self::of_value(TypeCodeBuf::from_static(TypeOf::<T>::REF), value)
    }

    /// As [`new`](Self::new), with a type code of its own.
    ///
    /// # Errors
    /// As [`new`](Self::new), and those of a value that is not of the type.
    pub fn with_type<'x, T: Cdr<'x>>(
        type_code: impl Into<TypeCodeBuf>,
        value: &T,
    ) -> Result<Self, CdrError> {
        Self::of_value(type_code.into(), value)
    }

    /// Makes an any of the `T` that `encode` writes, as the generated owned types do:
    /// `AnyBuf::encoded::<BoardBuf>(|e| board.encode(e))`.
    ///
    /// # Errors
    /// Those of `encode`; [`CdrError::OpaqueValue`]; those of octets that are not a `T`.
    pub fn encoded<T: Typed>(
        encode: impl Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<Self, CdrError> {
        Self::of_value(
            TypeCodeBuf::from_static(TypeOf::<T>::REF),
            &EncodeFn(encode),
        )
    }

    fn of_value(type_code: TypeCodeBuf, value: &dyn Encode) -> Result<Self, CdrError> {
        let view = type_code.as_view();
        let octets = Octets::write(view, |e| encode_value(view, value, e))?;
        Ok(Self {
            type_code,
            content: Ok(Arc::new(octets)),
        })
    }

    /// The type of the value.
    pub fn type_code(&self) -> &TypeCode<'_> {
        self.type_code.as_view()
    }

    /// The number of octets that the value has here.
    ///
    /// # Errors
    /// The error of writing the value when this was made, as [`CdrError::OutOfMemory`].
    pub fn octets(&self) -> Result<usize, CdrError> {
        let content = self.content.as_ref().map_err(Clone::clone)?;
        Ok(content.octets.len())
    }

    /// Whether the value is a `T`, aliases aside.
    pub fn holds<T: Typed>(&self) -> bool {
        T::TYPE_CODE.equivalent(self.type_code())
    }

    /// Returns the value, if its type borrows nothing.
    ///
    /// # Errors
    /// [`CdrError::WrongType`] if it is of another type; the error of writing the value when this
    /// was made.
    pub fn extract<T: for<'x> Cdr<'x> + Typed>(&self) -> Result<T, CdrError> {
        self.with_view(|any| any.extract::<T>())
    }

    /// Calls `read` with the borrowed form, which can be extracted from, and returns its result.
    /// `read` is called again with more memory where it fails with [`CdrError::ArenaFull`], up to
    /// a bound in proportion to the size of the value.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn with_view<R>(
        &self,
        mut read: impl FnMut(&Any<'_>) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        let octets = self
            .content
            .as_deref()
            .map_or(0, |octets| octets.octets.len());
        with_room(octets, |arena| read(&self.as_view_in(arena)?))
    }

    /// Returns the borrowed form to be sent. It has no arena to extract the value into, and refuses
    /// that with [`CdrError::NoArena`].
    pub fn as_view(&self) -> Any<'_> {
        Any {
            type_code: self.type_code(),
            content: Content::Owned(self),
        }
    }

    /// The borrowed form, which extracts into `arena`.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    pub fn as_view_in<'a>(&'a self, arena: &'a Arena) -> Result<Any<'a>, CdrError> {
        Ok(Any {
            type_code: self.type_code(),
            content: match &self.content {
                Ok(octets) => Content::Body(arena.alloc(octets.body(arena))?),
                Err(error) => Content::Invalid(*error),
            },
        })
    }

    /// Writes the any, as its borrowed form is written.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`], and the error of writing the value when this was made.
    pub fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.type_code().encode(e)?;
        self.encode_value(e)
    }

    /// Writes the value without its type.
    pub(super) fn encode_value(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        let octets = self.content.as_deref().map_err(|error| *error)?;
        let start = e.position();
        with_room(octets.octets.len(), |arena| {
            e.truncate(start);
            octets.body(arena).encode(self.type_code(), e)
        })
    }
}

/// A function as the source of a value.
struct EncodeFn<F>(F);

impl<F: Fn(&mut Encoder<'_>) -> Result<(), CdrError>> Encode for EncodeFn<F> {
    fn write(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        (self.0)(e)
    }
}

impl Octets {
    /// Serializes the output of `write`, which must be a value of that type.
    fn write(
        type_code: &TypeCode<'_>,
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<Self, CdrError> {
        let mut frame = Frame::new(64, u32::MAX as usize);
        write(&mut Encoder::new(&mut frame, Endian::NATIVE).with_text(TEXT))?;
        let n = frame.len();
        let traits = with_room(n, |arena| {
            let octets = frame.as_mut_slice();
            let mut d = Decoder::new(octets, 0, Endian::NATIVE, arena).with_text(TEXT);
            let body = Body::decode(type_code, &mut d)?;
            match d.remaining() {
                0 => Ok(body.traits()),
                _ => Err(CdrError::WrongType),
            }
        })?;
        let mut octets = Vec::new();
        octets
            .try_reserve_exact(n)
            .map_err(|_| CdrError::OutOfMemory)?;
        octets.extend_from_slice(frame.as_slice());
        Ok(Self {
            octets: octets.into(),
            traits,
        })
    }

    fn body<'a>(&'a self, arena: &'a Arena) -> Body<'a> {
        Body::of_octets(&self.octets, TEXT, self.traits, arena)
    }
}

/// The body of an any of `value`.
pub(super) fn view<'a>(
    type_code: &TypeCode<'_>,
    value: &dyn Encode,
    arena: &'a Arena,
) -> Result<Body<'a>, CdrError> {
    let own = Octets::write(type_code, |e| encode_value(type_code, value, e))?;
    let octets = arena.copy_slice(&own.octets)?;
    Ok(Body::of_octets(octets, TEXT, own.traits, arena))
}

/// The form of text in memory, in which every character can be represented.
const TEXT: TextForm = TextForm {
    narrow: CharSet::Process,
    wide: WideForm::Utf16,
};

/// Calls `work` with arenas of growing capacity until one suffices for a value of so many octets.
fn with_room<T>(
    octets: usize,
    mut work: impl FnMut(&Arena) -> Result<T, CdrError>,
) -> Result<T, CdrError> {
    let mut capacity = 0;
    loop {
        let mut arena = Arena::new(capacity);
        arena.set_bounds(Bounds::NONE);
        match work(&arena) {
            // A decoded type code takes about twenty times its octets, or more where it refers to
            // its parts.
            Err(CdrError::ArenaFull) if capacity < octets * 64 + 4096 => {
                capacity = (capacity * 8).max(octets * 2 + 64);
            }
            result => return result,
        }
    }
}

impl From<&Any<'_>> for AnyBuf {
    fn from(any: &Any<'_>) -> Self {
        let type_code = any.type_code();
        let content = match any.content {
            Content::Value(value, _) => {
                Octets::write(type_code, |e| encode_value(type_code, value, e))
            }
            Content::Body(body) => Octets::write(type_code, |e| {
                let start = e.position();
                with_room(body.octets().len(), |arena| {
                    e.truncate(start);
                    body.with_arena(arena).copy_to(type_code, e)
                })
            }),
            Content::Owned(any) => return any.clone(),
            Content::Invalid(error) => Err(error),
        };
        Self {
            type_code: TypeCodeBuf::from(type_code),
            content: content.map(Arc::new),
        }
    }
}

impl From<Any<'_>> for AnyBuf {
    fn from(any: Any<'_>) -> Self {
        Self::from(&any)
    }
}

/// An any that holds nothing.
impl Default for AnyBuf {
    fn default() -> Self {
        Self {
            type_code: TypeCodeBuf::default(),
            content: Ok(Arc::new(Octets {
                octets: Box::default(),
                traits: Traits::default(),
            })),
        }
    }
}

impl PartialEq for AnyBuf {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.content, &other.content) {
            (Ok(octets), Ok(others)) => octets.octets == others.octets,
            (Err(error), Err(other)) => error == other,
            _ => false,
        };
        same && self.type_code == other.type_code
    }
}

impl Eq for AnyBuf {}

impl fmt::Debug for AnyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyBuf({})", self.type_code())
    }
}
