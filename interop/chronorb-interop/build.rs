//! Compiles the IDL.

fn main() -> Result<(), chronorb_build::BuildError> {
    let files =
        ["interop", "adapters", "values", "CosNaming"].map(|name| format!("../../idl/{name}.idl"));
    chronorb_build::configure().compile(&files)
}
