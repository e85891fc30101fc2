//! The runtime of generated code. Not for applications: it changes with the generator.
//!
//! The version in the path keeps generated code and runtime together: code that was generated for
//! another runtime does not compile.

/// Runtime of generated code, version 1.
pub mod v1 {
    pub use chronorb_cdr::{
        Abstract, AbstractType, ByArc, DataInput, DataOutput, DuplicateRegistration, Narrow,
        ReadState, Value, ValueInfo, ValueType, impl_value, narrow_abstract, narrow_value,
        register_value_factory,
    };
    pub use chronorb_cdr::{
        Any, AnyBuf, Arena, Cdr, CdrError, Char, Decoder, Encoder, Fixed, Flat, FlatReader,
        FlatWriter, InlineStr, Layout, Lazy, LongDouble, Native, Reference, StructMember, TypeCode,
        TypeCodeBuf, Typed, UnionMember, ValueMember, ValueModifier, WideStr, decode_context,
        display_flags, encode_context, select_context,
    };
    pub use chronorb_giop::SystemException;

    pub use crate::abstract_base::AbstractBase;
    pub use crate::call::{
        Call, Operation, Reply, ReplyWriter, Skeleton, UserException, bad_operation, reply_error,
        unknown_user_exception,
    };
    pub use crate::client::PendingReply;
    pub use crate::core::{Interface, Object, narrow};
    pub use crate::operation_table::{
        BinarySearchTable, DynamicHashTable, LinearSearchTable, OperationTable,
    };
    pub use crate::scope::Scope;
}
