//! Compiles the IDL of the whole endsystems.

use std::env;

fn main() -> Result<(), chronorb_build::BuildError> {
    println!("cargo::rustc-check-cfg=cfg(unoptimised)");
    // Frames of functions are several times as large.
    if env::var("OPT_LEVEL").is_ok_and(|level| level == "0") {
        println!("cargo::rustc-cfg=unoptimised");
    }
    chronorb_build::configure()
        .ami(true)
        .compile(&["idl/hostile.idl"])
}
