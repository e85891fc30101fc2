//! Awkward names in every position. The test is that this compiles.

#![warn(clippy::all, clippy::nursery, clippy::pedantic, missing_docs)]

chronorb::include_idl!("words");
