//! Values of value types: state that is sent with the name of its type, so that a value sent as its
//! base arrives as the derived type.
//!
//! A value is an [`Arc`] of a type that implements [`Value`]. Two references to one value in a
//! message arrive as two references to one value. The form on the wire is that of CORBA 3.3 part 2,
//! clause 9.3.4: a tag, the repository identifier or a list of them, and the state. The state of a
//! value that may be truncated to a base is in chunks.
//!
//! Values that contain themselves are refused in both directions, because nothing here could ever
//! free them.

mod abstracts;
mod chunks;
mod read;
mod registry;
mod write;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::{CdrError, Decoder, Encoder, Reference, TypeCode, Typed, ValueModifier};

pub use abstracts::{Abstract, AbstractType, narrow_abstract};
pub(crate) use read::ReadNotes;
pub use read::{MAX_VALUE_DEPTH, MAX_VALUES};
pub use registry::{DuplicateRegistration, register_value_factory};
pub(crate) use write::WriteNotes;

/// A value of a value type.
///
/// A type that implements the generated trait of a value type obtains this implementation from
/// [`impl_value!`](crate::impl_value), which names its most derived type.
pub trait Value: Any + Abstract + fmt::Debug + Send + Sync {
    /// Returns the most derived type that the receiver is told of.
    fn info(&self) -> &'static ValueInfo;

    /// Writes the state, the members of the base first.
    ///
    /// # Errors
    /// As [`Cdr::encode`](crate::Cdr::encode).
    fn encode_state(&self, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Offers the value as each of its types.
    fn narrow_to(self: Arc<Self>, to: &mut Narrow<'_>);

    /// Whether both have the same Rust type and the same state.
    fn equals(&self, other: &dyn Value) -> bool;
}

impl PartialEq for dyn Value {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

/// The description of a value's type in messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ValueInfo {
    /// The repository identifier.
    pub repository_id: &'static str,
    /// The bases, nearest first, that a receiver may take the value for if it does not know the
    /// type.
    pub truncatable_to: &'static [&'static str],
    /// Whether the application marshals the value itself.
    pub custom: bool,
}

/// A function that reads the state of a value, without its header.
pub type ReadState = for<'a> fn(&mut Decoder<'a>) -> Result<Arc<dyn Value>, CdrError>;

/// A value type as generated code knows it: `dyn Account` for the value type `Account`, and the
/// struct of a value box.
pub trait ValueType: Send + Sync + 'static {
    /// The description of the type in messages.
    const INFO: &'static ValueInfo;

    /// Writes the state of this type, that of the base included.
    ///
    /// # Errors
    /// As [`Cdr::encode`](crate::Cdr::encode).
    fn encode_state(&self, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Offers the value as this type, its bases, and the abstract interfaces that it supports.
    fn offer(this: Arc<Self>, to: &mut Narrow<'_>);

    /// Whether both have the same state.
    fn has_state_of(&self, other: &Self) -> bool;

    /// Converts to a value of any type.
    fn into_value(this: Arc<Self>) -> Arc<dyn Value>;

    /// Returns the function that reads a value with this identifier, if that is of this type or of
    /// one derived from it and needs no factory.
    fn known(repository_id: &str) -> Option<ReadState>;
}

/// `ValueBase`: only values with registered factories can be read as such.
impl ValueType for dyn Value {
    const INFO: &'static ValueInfo = &ValueInfo {
        repository_id: "IDL:omg.org/CORBA/ValueBase:1.0",
        truncatable_to: &[],
        custom: false,
    };

    fn encode_state(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        Value::encode_state(self, e)
    }

    fn offer(this: Arc<Self>, to: &mut Narrow<'_>) {
        to.offer(this);
    }

    fn has_state_of(&self, other: &Self) -> bool {
        self.equals(other)
    }

    fn into_value(this: Arc<Self>) -> Arc<dyn Value> {
        this
    }

    fn known(_: &str) -> Option<ReadState> {
        None
    }
}

/// A conversion of a value to one of its types; see [`narrow_value`].
pub struct Narrow<'n> {
    /// An empty `Option<Arc<V>>`.
    pub(super) wanted: &'n mut dyn Any,
}

impl Narrow<'_> {
    /// Offers the value as a `V`; it is taken if a `V` was asked for.
    pub fn offer<V: ?Sized + 'static>(&mut self, value: Arc<V>) {
        if let Some(place) = self.wanted.downcast_mut::<Option<Arc<V>>>() {
            *place = Some(value);
        }
    }
}

impl fmt::Debug for Narrow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Narrow").finish_non_exhaustive()
    }
}

/// Converts a value to a `V`: the trait of a value type or of an abstract interface, or the struct
/// of a value box. Returns `None` if it is not a `V`.
pub fn narrow_value<V: ?Sized + 'static>(value: &Arc<dyn Value>) -> Option<Arc<V>> {
    narrow(value.clone())
}

/// Converts as [`narrow_value`] does, without another reference.
fn narrow<V: ?Sized + 'static>(value: Arc<dyn Value>) -> Option<Arc<V>> {
    let mut narrowed: Option<Arc<V>> = None;
    let wanted: &mut dyn Any = &mut narrowed;
    match wanted.downcast_mut::<Option<Arc<dyn Value>>>() {
        // Every value is also a plain `Value`.
        Some(plain) => *plain = Some(value),
        None => value.narrow_to(&mut Narrow { wanted }),
    }
    narrowed
}

/// The stream that a custom value is written to (`CORBA::DataOutputStream`).
pub type DataOutput<'f> = Encoder<'f>;

/// The stream that a custom value is read from (`CORBA::DataInputStream`).
pub type DataInput<'a> = Decoder<'a>;

/// A type that is passed as an [`Arc`] and has reference semantics, with `None` for nil: value
/// types, value boxes and abstract interfaces.
pub trait ByArc: Send + Sync + 'static {
    /// The least number of octets of a value on the wire.
    const MIN_SIZE: usize;

    /// Writes it.
    ///
    /// # Errors
    /// As [`Cdr::encode`](crate::Cdr::encode).
    fn encode_arc(this: Option<&Arc<Self>>, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Reads one.
    ///
    /// # Errors
    /// As [`Cdr::decode`](crate::Cdr::decode).
    fn decode_arc(d: &mut Decoder<'_>) -> Result<Option<Arc<Self>>, CdrError>;
}

impl<V: ByArc + ?Sized> Reference for Arc<V> {
    const MIN_SIZE: usize = V::MIN_SIZE;

    fn encode_reference(this: Option<&Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        V::encode_arc(this, e)
    }

    fn decode_reference(d: &mut Decoder<'_>) -> Result<Option<Self>, CdrError> {
        V::decode_arc(d)
    }
}

/// `ValueBase`.
impl Typed for dyn Value {
    const TYPE_CODE: TypeCode<'static> = TypeCode::Value {
        id: <dyn Value as ValueType>::INFO.repository_id,
        name: "ValueBase",
        modifier: ValueModifier::None,
        base: None,
        members: &[],
    };
}

impl ByArc for dyn Value {
    const MIN_SIZE: usize = 4;

    fn encode_arc(this: Option<&Arc<Self>>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_value(this)
    }

    fn decode_arc(d: &mut Decoder<'_>) -> Result<Option<Arc<Self>>, CdrError> {
        d.read_value()
    }
}

/// Makes a Rust type the implementation of a value type, whose trait it implements:
/// `impl_value!(Savings as Account)`.
#[macro_export]
macro_rules! impl_value {
    ($t:ty as $v:path) => {
        impl $crate::Value for $t {
            fn info(&self) -> &'static $crate::ValueInfo {
                <dyn $v as $crate::ValueType>::INFO
            }

            fn encode_state(
                &self,
                e: &mut $crate::Encoder<'_>,
            ) -> ::core::result::Result<(), $crate::CdrError> {
                <dyn $v as $crate::ValueType>::encode_state(self, e)
            }

            fn narrow_to(self: ::std::sync::Arc<Self>, to: &mut $crate::Narrow<'_>) {
                <dyn $v as $crate::ValueType>::offer(self, to)
            }

            fn equals(&self, other: &dyn $crate::Value) -> bool {
                let other: &dyn ::core::any::Any = other;
                other
                    .downcast_ref::<Self>()
                    .is_some_and(|other| <dyn $v as $crate::ValueType>::has_state_of(self, other))
            }
        }
    };
}
