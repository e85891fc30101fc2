//! chronorb's side of the interoperability programs: the servants of `idl/interop.idl`, and the
//! checks of any ORB's server of them.
//!
//! The modules [`adapters`], [`anys`] and [`groups`] do the same for `idl/adapters.idl`,
//! `idl/anys.idl` and `idl/groups.idl`.
//!
//! The programs `chronorb-interop-server` and `chronorb-interop-client` are beside those of other
//! ORBs in `interop/`. Each client checks each server.

pub mod adapters;
pub mod anys;
mod checks;
pub mod groups;
mod naming;
mod report;
mod servants;
mod server;
mod values;

use std::fs;

/// The definitions of `idl/interop.idl`.
pub mod idl {
    chronorb::include_idl!("interop");

    pub use self::interop::*;
}

/// The definitions of `idl/values.idl`.
pub mod value_types {
    chronorb::include_idl!("values");

    pub use self::values::*;
}

/// The naming service.
pub mod cos_naming {
    chronorb::include_idl!("naming");

    pub use self::cos_naming::*;
}

pub use adapters::serve_adapters;
pub use checks::{GROUPS, Group, Subject};
pub use naming::bind;
pub use report::Report;
pub use server::serve;

/// An error of any kind, for people.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Writes a line to a file atomically: other processes see it complete or not at all.
///
/// # Errors
/// Any error of writing the file.
pub fn write_file(path: &str, text: &str) -> Result<(), Failure> {
    let partial = format!("{path}.part");
    fs::write(&partial, format!("{text}\n"))?;
    Ok(fs::rename(&partial, path)?)
}
