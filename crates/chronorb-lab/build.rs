//! Compiles the IDL of the experiments that run servers and clients.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure().compile(&[
        "idl/lab.idl",
        "idl/failover.idl",
        "idl/hostile.idl",
        "idl/whitebox.idl",
        "idl/peers.idl",
    ])?;
    // By an option, because omniORB's compiler knows no annotations.
    chronorb_build::configure()
        .ami(true)
        .compile(&["idl/endurance.idl"])
}
