//! Compiles the IDL.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure().compile(&["../../idl/interop.idl", "../../idl/CosNaming.idl"])
}
