//! The output of `chronorb-build` for IDL files of which another crate has compiled a part.

#![warn(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    missing_docs,
    single_use_lifetimes,
    unused_lifetimes
)]

/// A module that another crate has begun; external definitions are named by their file.
pub mod cellar {
    chronorb::include_idl!("cellar");
}

/// A module whose external definitions are named by their module.
pub mod street {
    chronorb::include_idl!("street");
}

/// Files that are compiled together, and the one that two of them include, each once.
pub mod shared {
    chronorb::include_idl!("shared/mod");
}

/// Checked-in code, one file per module; a test compares it with the compiler's output.
pub mod town;
