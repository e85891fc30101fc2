//! The excerpts of the book's pages on build scripts. A test is no build script, so it has no
//! folder to write to.

use chronorb_build::{BuildError, OperationDemux};

#[test]
fn options_are_set_in_a_chain() {
    let compiled = chronorb_build::configure()
        .include("idl")
        .define("LIMIT", "64")
        .compile(&["idl/market.idl", "idl/broker.idl"]);
    assert!(
        matches!(compiled, Err(BuildError::NoOutDir)),
        "{compiled:?}"
    );
}

#[test]
fn the_search_for_operations_is_chosen() {
    let compiled = chronorb_build::configure()
        .operation_demux(OperationDemux::BinarySearch)
        .compile(&["idl/quoter.idl"]);
    assert!(
        matches!(compiled, Err(BuildError::NoOutDir)),
        "{compiled:?}"
    );
}
