//! Compiles the IDL.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure().include("idl").compile(&[
        "idl/types.idl",
        "idl/names.idl",
        "idl/shapes.idl",
    ])
}
