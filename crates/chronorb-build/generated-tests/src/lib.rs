//! What `chronorb-build` makes of IDL files that use all of the language, under the
//! strictest lints; `tests` call it.

#![warn(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    missing_docs,
    single_use_lifetimes,
    unused_lifetimes
)]

/// All types and parameter modes.
pub mod types {
    chronorb::include_idl!("types");
}

/// Names that are keywords of Rust, or those of its library.
pub mod names {
    chronorb::include_idl!("names");
}

/// Inheritance by two ways, types inside types, and interfaces without anything.
pub mod shapes {
    chronorb::include_idl!("shapes");
}
