//! What `chronorb-build` makes of IDL files of which another crate has compiled a part.

#![warn(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    missing_docs,
    single_use_lifetimes,
    unused_lifetimes
)]

/// A module that another crate has begun; what is external is named by its file.
pub mod cellar {
    chronorb::include_idl!("cellar");
}

/// What is external is named by its module.
pub mod street {
    chronorb::include_idl!("street");
}

/// Files that are compiled together, and the one that two of them include, each once.
pub mod shared {
    chronorb::include_idl!("shared/mod");
}

/// Code that is checked in, a file for each module; a test keeps it as the compiler writes it.
pub mod town;
