//! Awkward names in every position: that this compiles is the test.

#![warn(clippy::all, clippy::nursery, clippy::pedantic, missing_docs)]

chronorb::include_idl!("words");
