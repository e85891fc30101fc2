//! Compiles the IDL for programs that do not allocate.

use chronorb_build::{BuildError, configure};

fn main() -> Result<(), BuildError> {
    configure().no_alloc(true).compile(&[
        "idl/gauge.idl",
        "../generated-tests/idl/extended.idl",
        "../generated-tests/idl/recursive.idl",
    ])
}
