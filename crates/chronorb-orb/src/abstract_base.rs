//! `CORBA::AbstractBase`: any object, or any value.

use std::sync::Arc;

use chronorb_cdr::{
    Abstract, AbstractType, ByArc, CdrError, Decoder, Encoder, Narrow, ReadState, TypeCode, Typed,
};

use crate::core::Object;

/// The base of every abstract interface (`CORBA::AbstractBase`): implemented by all references
/// and values.
pub trait AbstractBase: Abstract {}

impl<T: Abstract> AbstractBase for T {}

impl Abstract for Object {
    fn encode_abstract(self: Arc<Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_bool(true)?;
        Self::encode_reference(Some(&self), e)
    }

    fn narrow_abstract_to(self: Arc<Self>, to: &mut Narrow<'_>) {
        to.offer(self);
    }
}

/// Compares identities: equal only if both are the same reference or value.
impl PartialEq for dyn AbstractBase {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl AbstractType for dyn AbstractBase {
    fn into_abstract(this: Arc<Self>) -> Arc<dyn Abstract> {
        this
    }

    fn decode_object(d: &mut Decoder<'_>) -> Result<Option<Arc<Self>>, CdrError> {
        let object = Object::decode_reference(d)?;
        Ok(object.map(|object| -> Arc<Self> { Arc::new(object) }))
    }

    fn known(_: &str) -> Option<ReadState> {
        None
    }
}

impl ByArc for dyn AbstractBase {
    const MIN_SIZE: usize = 5;

    fn encode_arc(this: Option<&Arc<Self>>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_abstract(this)
    }

    fn decode_arc(d: &mut Decoder<'_>) -> Result<Option<Arc<Self>>, CdrError> {
        d.read_abstract()
    }
}

impl Typed for dyn AbstractBase {
    const TYPE_CODE: TypeCode<'static> = TypeCode::AbstractInterface {
        id: "IDL:omg.org/CORBA/AbstractBase:1.0",
        name: "AbstractBase",
    };
}
