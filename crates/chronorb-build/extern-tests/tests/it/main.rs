//! Generated code that uses what another crate generated.

mod calls;
mod checked_in;
