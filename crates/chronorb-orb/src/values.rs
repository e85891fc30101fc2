//! Value types, value boxes and abstract interfaces, as programs use them. The code that is
//! generated for each of them is in the module of its IDL.

pub use chronorb_cdr::{
    Abstract, DataInput, DataOutput, DuplicateRegistration, MAX_VALUE_DEPTH, MAX_VALUES, Value,
    ValueInfo, ValueType, narrow_abstract, narrow_value, register_value_factory,
};

pub use crate::abstract_base::AbstractBase;
