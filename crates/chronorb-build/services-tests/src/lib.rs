//! Generated code of every IDL file of the repository and of Debian's `omniorb-idl`. The test is
//! that it compiles.

/// The files of the compiler, of the laboratory and of `interop`.
pub mod omg {
    include!(concat!(env!("OUT_DIR"), "/omg/mod.rs"));
}

/// The files of omniORB and of its services; empty if they are not installed.
pub mod omniorb {
    include!(concat!(env!("OUT_DIR"), "/omniorb/mod.rs"));
}
