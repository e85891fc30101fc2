//! IDL files that are part of the compiler, for includes that no directory has.

use std::path::{Path, PathBuf};

/// The text of `#include <NAME>` where no such file is found.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "orb.idl" => include_str!("../idl/orb.idl"),
        "CORBA.idl" => include_str!("../idl/CORBA.idl"),
        "InterfaceRepository.idl" => include_str!("../idl/InterfaceRepository.idl"),
        "Components.idl" => include_str!("../idl/Components.idl"),
        _ => return None,
    })
}

/// What such a file is called in messages and in the model.
pub(crate) fn path(name: &str) -> PathBuf {
    format!("<{name}>").into()
}

/// Whether this is such a path.
pub(crate) fn is_built_in(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    path.starts_with(b"<") && path.ends_with(b">")
}
