//! Compiles the IDL of the event channel.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure()
        .include("idl")
        .owned_servants(true)
        .ami(true)
        .extern_path("::RtecBase", "crate::idl::rtec_base")
        .extern_path("::RtecEventComm", "crate::idl::rtec_event_comm")
        .extern_path(
            "::RtecEventChannelAdmin",
            "crate::idl::rtec_event_channel_admin",
        )
        .compile(&[
            "idl/RtecBase.idl",
            "idl/RtecEventComm.idl",
            "idl/RtecEventChannelAdmin.idl",
            "idl/ChronorbEvents.idl",
        ])
}
