//! interop
/// idl
pub mod idl { chronorb::include_idl!("interop"); }
/// naming
pub mod naming { chronorb::include_idl!("CosNaming"); }
