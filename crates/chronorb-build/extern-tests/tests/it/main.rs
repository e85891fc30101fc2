//! Tests of generated code that uses another crate's generated code.

mod calls;
mod checked_in;
