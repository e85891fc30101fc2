//! Compiles the IDL of the example `quoter`, with asynchronous calls.

fn main() -> Result<(), chronorb_build::BuildError> {
    chronorb_build::configure()
        .ami(true)
        .compile(&["../quoter/idl/quoter.idl"])
}
