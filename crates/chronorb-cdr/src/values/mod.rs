//! Values of value types: state that travels with its type's name, so that what was sent as the
//! base arrives as the derived.
//!
//! A value is an [`Arc`] of something that implements [`Value`]. Two references to one value in a
//! message are two references to one value where it arrives. The form on the wire is that of
//! CORBA 3.3 part 2, clause 9.3.4: a tag, the repository identifier or a list of them, and the
//! state; that of a value which may be truncated to a base stands in chunks.
//!
//! Values that hold themselves are refused, both ways: nothing here could ever be freed.

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
pub use registry::{AlreadyRegistered, register_value_factory};
pub(crate) use write::WriteNotes;

/// A value of a value type.
///
/// A type that implements the trait of a value type, as generated from IDL, has this from
/// [`impl_value!`](crate::impl_value), which says of which type it is most exactly.
pub trait Value: Any + Abstract + fmt::Debug + Send + Sync {
    /// The most derived type that the receiver is told of.
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

/// What a message says about the type of a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ValueInfo {
    /// The repository identifier.
    pub repository_id: &'static str,
    /// The bases that a receiver may take it for which does not know the type, the nearest first.
    pub truncatable_to: &'static [&'static str],
    /// Whether the program marshals it by itself.
    pub custom: bool,
}

/// Reads the state of a value, without what stands before it.
pub type ReadState = for<'a> fn(&mut Decoder<'a>) -> Result<Arc<dyn Value>, CdrError>;

/// A value type as generated code knows it: `dyn Account` for the value type `Account`, and the
/// struct of a value box.
pub trait ValueType: Send + Sync + 'static {
    /// What messages say of values that are of this type most exactly.
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

    /// The value, of whatever type.
    fn into_value(this: Arc<Self>) -> Arc<dyn Value>;

    /// How to read a value with this identifier, where it is of this type or of one derived from
    /// it and needs no factory.
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

/// Takes a value as one of its types, see [`narrow_value`].
pub struct Narrow<'n> {
    /// An empty `Option<Arc<V>>`.
    pub(super) wanted: &'n mut dyn Any,
}

impl Narrow<'_> {
    /// The value as a `V`, which is taken if that was asked for.
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

/// The value as a `V`, which may be the trait of a value type or of an abstract interface, or the
/// struct of a value box; `None` if it is none.
pub fn narrow_value<V: ?Sized + 'static>(value: &Arc<dyn Value>) -> Option<Arc<V>> {
    let mut narrowed: Option<Arc<V>> = None;
    let mut to = Narrow {
        wanted: &mut narrowed,
    };
    value.clone().narrow_to(&mut to);
    // Everything is also just a value.
    to.offer(value.clone());
    narrowed
}

/// What a custom value is written to (`CORBA::DataOutputStream`).
pub type DataOutput<'f> = Encoder<'f>;

/// What a custom value is read from (`CORBA::DataInputStream`).
pub type DataInput<'a> = Decoder<'a>;

/// What is passed as an [`Arc`] and travels like a reference, so that nil is `None`: value types,
/// value boxes and abstract interfaces.
pub trait ByArc: Send + Sync + 'static {
    /// The fewest octets that one takes on the wire.
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

/// Makes a Rust type values of a value type, whose trait it implements:
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
