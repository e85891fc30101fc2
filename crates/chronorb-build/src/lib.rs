//! IDL to Rust for chronorb, to be called from build.rs.
