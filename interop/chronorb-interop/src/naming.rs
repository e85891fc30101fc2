//! The naming service, from a client's point of view.

use crate::Failure;
use crate::cos_naming::NamingContextExt;
use chronorb::prelude::*;

/// Binds an object to a name in the initial reference `NameService`, and replaces a former binding.
///
/// # Errors
/// Those of the ORB, and those of the naming service.
pub fn bind(orb: &Orb, name: &str, object: &Object) -> Result<(), Failure> {
    let service = orb.resolve_initial_references("NameService")?;
    let service = NamingContextExt::narrow(&service)?.ok_or(NO_CONTEXT)?;
    let name = service.to_name(name)?;
    let name: Vec<_> = name.iter().map(|component| component.as_view()).collect();
    Ok(service.rebind(&name, Some(object))?)
}

const NO_CONTEXT: &str = "the object is no naming context";
