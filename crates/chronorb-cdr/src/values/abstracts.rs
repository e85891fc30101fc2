//! Abstract interfaces: references to an object, or to a value.

use std::fmt;
use std::sync::Arc;

use super::{Narrow, ReadState, narrow};
use crate::{CdrError, Decoder, Encoder, Value};

/// A value that can be passed where an abstract interface is expected: every value type, and the
/// references that are generated from IDL.
pub trait Abstract: fmt::Debug + Send + Sync + 'static {
    /// Writes it with the boolean that tells a reference from a value.
    ///
    /// # Errors
    /// As [`Cdr::encode`](crate::Cdr::encode).
    fn encode_abstract(self: Arc<Self>, e: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Offers it as each of its types.
    fn narrow_abstract_to(self: Arc<Self>, to: &mut Narrow<'_>);
}

/// Converts an object or value behind an abstract interface to a `V`: a typed reference, the struct
/// of a value box, or the trait of a value type or abstract interface. Returns `None` if it is not
/// a `V`.
pub fn narrow_abstract<V: ?Sized + 'static>(this: Arc<dyn Abstract>) -> Option<Arc<V>> {
    let mut narrowed: Option<Arc<V>> = None;
    this.narrow_abstract_to(&mut Narrow {
        wanted: &mut narrowed,
    });
    narrowed
}

impl<V: Value> Abstract for V {
    fn encode_abstract(self: Arc<Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        let value: Arc<dyn Value> = self;
        e.write_bool(false)?;
        e.write_value(Some(&value))
    }

    fn narrow_abstract_to(self: Arc<Self>, to: &mut Narrow<'_>) {
        let value: Arc<dyn Value> = self.clone();
        to.offer(value);
        self.narrow_to(to);
    }
}

/// An abstract interface as generated code knows it: `dyn Describable`.
pub trait AbstractType: Send + Sync + 'static {
    /// Converts to an object or value of any abstract interface.
    fn into_abstract(this: Arc<Self>) -> Arc<dyn Abstract>;

    /// Reads an object reference.
    ///
    /// # Errors
    /// As [`Reference::decode_reference`](crate::Reference::decode_reference).
    fn decode_object(d: &mut Decoder<'_>) -> Result<Option<Arc<Self>>, CdrError>;

    /// Returns the function that reads a value with this identifier, if that supports the interface
    /// and needs no factory.
    fn known(repository_id: &str) -> Option<ReadState>;
}

impl Encoder<'_> {
    /// Writes an object or a value behind an abstract interface; nil is a null value.
    ///
    /// # Errors
    /// As [`write_value`](Self::write_value).
    pub fn write_abstract<A: AbstractType + ?Sized>(
        &mut self,
        this: Option<&Arc<A>>,
    ) -> Result<(), CdrError> {
        match this {
            Some(this) => A::into_abstract(this.clone()).encode_abstract(self),
            None => {
                self.write_bool(false)?;
                self.write_value::<dyn Value>(None)
            }
        }
    }
}

impl Decoder<'_> {
    /// Reads an object or a value behind an abstract interface.
    ///
    /// # Errors
    /// [`CdrError::WrongValueType`] if it is a value that does not support the interface, and as
    /// [`read_value`](Self::read_value).
    pub fn read_abstract<A: AbstractType + ?Sized>(&mut self) -> Result<Option<Arc<A>>, CdrError> {
        if self.read_bool()? {
            return A::decode_object(self);
        }
        let Some(value) = self.read_untyped("", A::known)? else {
            return Ok(None);
        };
        narrow(value).map(Some).ok_or(CdrError::WrongValueType)
    }
}
