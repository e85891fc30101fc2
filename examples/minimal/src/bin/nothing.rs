//! Does nothing: what the standard library takes in any program. `cargo xtask size` subtracts it
//! from the server's size.

fn main() {}
