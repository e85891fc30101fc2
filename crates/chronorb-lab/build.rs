//! Compiles the IDL of the demonstration.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::compile("../../idl/demo.idl")
}
