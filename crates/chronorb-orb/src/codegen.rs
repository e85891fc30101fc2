//! What generated code calls. Not for applications: it changes with the generator.
//!
//! The version in the path keeps generated code and runtime together: code of a generator that
//! expects another runtime does not compile.

/// Runtime of generated code, version 1.
pub mod v1 {
    pub use chronorb_cdr::{
        Arena, Cdr, CdrError, Char, Decoder, Encoder, Flat, FlatReader, FlatWriter, Layout,
        LongDouble, Reference,
    };
    pub use chronorb_giop::SystemException;

    pub use crate::call::{
        Call, Operation, Reply, ReplyWriter, Skeleton, UserException, bad_operation, reply_error,
        unknown_user_exception,
    };
    pub use crate::client::Pending;
    pub use crate::object::{Interface, Object, narrow};
    pub use crate::operation_table::{
        BinarySearchTable, DynamicHashTable, LinearSearchTable, OperationTable,
    };
    pub use crate::scope::Scope;
}
