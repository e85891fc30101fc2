//! Compiles the IDL of the scheduling service.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure()
        .include("idl")
        .owned_servants(true)
        .extern_path("::RtecBase", "crate::idl::rtec_base")
        .compile(&["idl/RtecBase.idl", "idl/RtecScheduler.idl"])
}
