//! Compiles the IDL, except for the files that `chronorb-generated-tests` has compiled.

use std::path::Path;
use std::{env, fs};

use chronorb_build::{BuildError, configure};

fn main() -> Result<(), BuildError> {
    configure()
        .include("../generated-tests/idl")
        .extern_path("base.idl", "::chronorb_generated_tests::base")
        .compile(&["idl/cellar.idl"])?;
    let out_dir = env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?;
    let shared = Path::new(&out_dir).join("shared");
    // If that fails, the files cannot be written either, and that error names their path.
    let _ = fs::create_dir_all(&shared);
    configure()
        .include("idl")
        .out_dir(shared)
        .shared("crate::shared")
        .extern_path("base.idl", "::chronorb_generated_tests::base")
        .include("../generated-tests/idl")
        .compile(&["idl/cellar.idl", "idl/wine.idl", "idl/guests.idl"])?;
    configure()
        .include("../generated-tests/idl")
        .extern_path("::house", "::chronorb_generated_tests::base::house")
        .compile(&["idl/street.idl"])
}
