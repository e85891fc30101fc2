//! The output of `chronorb-build` for programs that do not allocate.

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

/// Maps, and structs that extend others. The test is that the code compiles.
pub mod extended {
    chronorb::include_idl!("extended");
}

/// Recursive types.
pub mod recursive {
    chronorb::include_idl!("recursive");
}
