//! What `chronorb-build` makes of IDL for programs that do not allocate.

#![warn(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    missing_docs,
    single_use_lifetimes,
    unused_lifetimes
)]

/// A gauge, its samples and its exceptions.
pub mod gauge {
    chronorb::include_idl!("gauge");
}
