//! An empty program, with the size of the standard library in any program. `cargo xtask size`
//! subtracts it from the server's size.

fn main() {}
