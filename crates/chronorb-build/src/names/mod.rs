//! The Rust name of each IDL definition.

mod ami;
mod case;
mod method;
mod parts;
mod scope;
mod table;

pub(crate) use case::{escaped, pascal, screaming, sentence, snake};
pub(crate) use method::{Method, MethodParam};
pub(crate) use parts::{bit_field, field, flag, implicit_default, unknown, variant};
pub(crate) use scope::Claims;
pub use scope::Place;
pub(crate) use table::Names;
