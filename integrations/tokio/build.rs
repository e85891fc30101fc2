//! Compiles the IDL of the tests.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::compile("idl/numbers.idl")
}
