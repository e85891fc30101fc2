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

/// Maps, and structs that extend others: that the code compiles is the test.
pub mod extended {
    chronorb::include_idl!("extended");
}

/// Types that hold themselves.
pub mod recursive {
    chronorb::include_idl!("recursive");
}
