//! The Rust name of each IDL definition.

mod ami;
mod case;
mod distinct;
mod method;
mod parts;
mod scope;
mod table;

pub(crate) use case::{escaped, pascal, screaming, sentence, snake};
pub(crate) use distinct::distinct_parts;
pub(crate) use method::{Method, MethodParam};
pub(crate) use parts::{
    bit_field, bit_field_setter, field, flag, implicit_default, unknown, variant,
};
pub(crate) use scope::Claims;
pub use scope::{Place, SecondName};
pub(crate) use table::Names;
