//! Compiles the IDL, but for what `chronorb-generated-tests` has compiled.

use chronorb_build::{BuildError, configure};

fn main() -> Result<(), BuildError> {
    configure()
        .include("../generated-tests/idl")
        .extern_path("base.idl", "::chronorb_generated_tests::base")
        .compile(&["idl/cellar.idl"])?;
    configure()
        .include("../generated-tests/idl")
        .extern_path("::house", "::chronorb_generated_tests::base::house")
        .compile(&["idl/street.idl"])
}
