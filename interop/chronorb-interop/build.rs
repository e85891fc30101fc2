//! Compiles the IDL.

use std::path::Path;
use std::{env, fs};

use chronorb_build::BuildError;

fn main() -> Result<(), BuildError> {
    let files = ["interop", "adapters", "anys", "groups", "values", "naming"]
        .map(|name| format!("idl/{name}.idl"));
    chronorb_build::configure().compile(&files)?;

    // With asynchronous calls, for the tests of these.
    let out_dir = env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?;
    let dir = Path::new(&out_dir).join("asynchronous");
    // If that fails, the file cannot be written either, and that error names its path.
    let _ = fs::create_dir_all(&dir);
    chronorb_build::configure()
        .out_dir(dir)
        .ami(true)
        .compile(&["idl/interop.idl", "idl/groups.idl"])
}
