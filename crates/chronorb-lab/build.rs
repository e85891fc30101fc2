//! Compiles the IDL of the experiments that run servers and clients.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure().compile(&[
        "idl/lab.idl",
        "idl/endurance.idl",
        "idl/failover.idl",
        "idl/hostile.idl",
        "idl/whitebox.idl",
        "idl/peers.idl",
    ])
}
