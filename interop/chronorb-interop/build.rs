//! Compiles the IDL.

fn main() -> Result<(), chronorb_build::BuildError> {
    let files =
        ["interop", "adapters", "anys", "CosNaming"].map(|name| format!("../../idl/{name}.idl"));
    chronorb_build::configure().compile(&files)
}
