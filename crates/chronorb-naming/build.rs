//! Compiles the IDL of the naming service and of leases.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure()
        .include("idl")
        .extern_path("::CosNaming", "crate::idl::cos_naming")
        .compile(&["idl/CosNaming.idl", "idl/ChronorbNaming.idl"])
}
