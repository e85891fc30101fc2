//! The command `chronorb`.
fn main() {}
