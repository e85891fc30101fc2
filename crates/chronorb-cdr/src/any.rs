//! The IDL type `any`: a value together with its type.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
mod body;
mod copy;
mod owned;
pub(crate) mod walk;
mod wide;

pub use owned::AnyBuf;
pub use wide::WideStr;

use std::fmt;

use crate::{Arena, Cdr, CdrError, Decoder, Encoder, TypeCode, Typed};
use body::Body;

/// An IDL `any`: a value together with its type code.
///
/// An any that is made of a value refers to it, and writes it when the any is written. An any that
/// was received refers to the frame. The decoder has walked it once by its type code, so the
/// content is known to be well-formed. Each [`extract`](Self::extract) decodes the octets anew,
/// into the arena of the message.
///
/// ```
/// use chronorb_cdr::{Any, Arena, Cdr, CdrError, Decoder, Encoder, Endian, Frame};
///
/// # fn main() -> Result<(), CdrError> {
/// let mut frame = Frame::new(64, 1024);
/// let mut encoder = Encoder::new(&mut frame, Endian::Big);
/// Any::of(&[0.25, 1.0].as_slice()).encode(&mut encoder)?;
///
/// let arena = Arena::new(1024);
/// let any = Any::decode(&mut Decoder::new(frame.as_mut_slice(), 0, Endian::Big, &arena))?;
/// assert_eq!(any.type_code().to_string(), "sequence<double>");
/// assert_eq!(any.extract::<&[f64]>()?, [0.25, 1.0]);
/// assert_eq!(any.extract::<u32>(), Err(CdrError::WrongType));
/// # Ok(())
/// # }
/// ```
///
/// Values that only code which knows their type can read, such as valuetypes other than null, are
/// refused with [`CdrError::OpaqueValue`].
#[derive(Clone, Copy)]
pub struct Any<'a> {
    type_code: &'a TypeCode<'a>,
    content: Content<'a>,
}

#[derive(Clone, Copy)]
enum Content<'a> {
    /// A value, and the arena into which it can be extracted.
    Value(&'a dyn Encode, Option<&'a Arena>),
    /// A received value.
    Body(&'a Body<'a>),
    /// An owned any, which is written as it is.
    Owned(&'a AnyBuf),
    /// The error of a value that could not be encoded. Encoding the `any` returns it.
    Invalid(CdrError),
}

/// A source of an any's value.
trait Encode {
    fn write(&self, e: &mut Encoder<'_>) -> Result<(), CdrError>;
}

impl<'x, T: Cdr<'x>> Encode for T {
    fn write(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.encode(e)
    }
}

/// The type code of a type, in static memory.
struct TypeOf<T>(T);

impl<T: Typed> TypeOf<T> {
    const REF: &'static TypeCode<'static> = &T::TYPE_CODE;
}

impl<'a> Any<'a> {
    /// An any that holds nothing.
    pub const NULL: Any<'static> = Any {
        type_code: &TypeCode::Null,
        content: Content::Value(&(), None),
    };

    /// An any of `value`, to be written: it has no arena to extract the value into.
    pub fn of<'x, T: Cdr<'x> + Typed>(value: &'a T) -> Self {
        Self::with_type(TypeOf::<T>::REF, value)
    }

    /// Makes an any with an explicit type code: of an alias, a bounded string, or another type that
    /// Rust has no type for. The caller guarantees that the value is of that type.
    pub fn with_type<'x, T: Cdr<'x>>(type_code: &'a TypeCode<'a>, value: &'a T) -> Self {
        Self {
            type_code,
            content: Content::Value(value, None),
        }
    }

    /// Makes an any of a copy of `value` in the arena. The copy still borrows everything that
    /// `value` borrows.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    pub fn new<T: Cdr<'a> + Typed + 'a>(value: &T, arena: &'a Arena) -> Result<Self, CdrError> {
        Ok(Self {
            type_code: TypeOf::<T>::REF,
            content: Content::Value(arena.alloc(*value)?, Some(arena)),
        })
    }

    /// The type of the value.
    pub const fn type_code(&self) -> &'a TypeCode<'a> {
        self.type_code
    }

    /// Whether the value is a `T`, aliases aside.
    pub fn holds<T: Typed>(&self) -> bool {
        T::TYPE_CODE.equivalent(self.type_code)
    }

    /// Decodes the value. It borrows from the arena that this was received or made with, and each
    /// call takes room there.
    ///
    /// # Errors
    /// [`CdrError::WrongType`] if it is of another type; [`CdrError::ArenaFull`] if it has no
    /// room; [`CdrError::NoArena`] if this was made by [`of`](Self::of),
    /// [`with_type`](Self::with_type) or [`AnyBuf::as_view`].
    pub fn extract<T: Cdr<'a> + Typed>(&self) -> Result<T, CdrError> {
        self.extract_with(&T::TYPE_CODE, T::decode)
    }

    /// Extracts the value as [`extract`](Self::extract) does, by a function that reads a value of
    /// that type.
    ///
    /// # Errors
    /// As [`extract`](Self::extract), and those of `read`.
    pub fn extract_with<T>(
        &self,
        type_code: &TypeCode<'_>,
        read: impl FnOnce(&mut Decoder<'a>) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        if !type_code.equivalent(self.type_code) {
            return Err(CdrError::WrongType);
        }
        let body = match self.content {
            Content::Body(body) => body,
            Content::Value(value, Some(arena)) => &owned::view(self.type_code, value, arena)?,
            Content::Value(_, None) | Content::Owned(_) => return Err(CdrError::NoArena),
            Content::Invalid(error) => return Err(error),
        };
        let mut d = body.decoder()?;
        if is_exception(self.type_code) && walk::begins_with_id(self.type_code, &mut d) {
            d.read_str()?;
        }
        read(&mut d)
    }

    /// Makes the owning form. If the value cannot be written, the error is reported when the result
    /// is used.
    #[allow(clippy::should_implement_trait)]
    pub fn to_owned(&self) -> AnyBuf {
        AnyBuf::from(self)
    }

    /// Attaches the data that the layer above needs to make object references of the value.
    ///
    /// # Errors
    /// [`CdrError::ArenaFull`]
    pub fn with_host(self, host: &'a dyn std::any::Any) -> Result<Self, CdrError> {
        let Content::Body(body) = self.content else {
            return Ok(self);
        };
        Ok(Self {
            content: Content::Body(body.with_host(host)?),
            ..self
        })
    }
}

impl<'a> Cdr<'a> for Any<'a> {
    const MIN_SIZE: usize = TypeCode::MIN_SIZE;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.type_code.encode(e)?;
        match self.content {
            Content::Value(value, _) => encode_value(self.type_code, value, e),
            Content::Body(body) => body.encode(self.type_code, e),
            Content::Owned(any) => any.encode_value(e),
            Content::Invalid(error) => Err(error),
        }
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        let arena = d.arena();
        let type_code = arena.alloc(TypeCode::decode(d)?)?;
        let body = arena.alloc(Body::decode(type_code, d)?)?;
        Ok(Self {
            type_code,
            content: Content::Body(body),
        })
    }
}

/// An any that holds nothing.
impl Default for Any<'_> {
    fn default() -> Self {
        Self::NULL
    }
}

/// Whether the type codes are the same and the values have the same octets. This allocates.
impl PartialEq for Any<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.type_code == other.type_code && self.to_owned() == other.to_owned()
    }
}

impl fmt::Debug for Any<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Any({})", self.type_code)
    }
}

/// Writes a value as the body of an any. An exception begins with its repository identifier.
fn encode_value(
    type_code: &TypeCode<'_>,
    value: &dyn Encode,
    e: &mut Encoder<'_>,
) -> Result<(), CdrError> {
    if is_exception(type_code) {
        e.write_str(type_code.unaliased().id().unwrap_or_default())?;
    }
    value.write(e)
}

fn is_exception(type_code: &TypeCode<'_>) -> bool {
    matches!(type_code.unaliased(), TypeCode::Except { .. })
}
