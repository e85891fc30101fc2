//! Compiles the IDL.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::compile("idl/avionics.idl")
}
