//! The naming service, from a client's point of view.

use chronorb::prelude::*;
use chronorb_giop::url::ObjectUrl;

use crate::Failure;
use crate::cos_naming::{NameComponent, NamingContextExt};

/// Returns the object of a text: one for [`Orb::string_to_object`], or `corbaname:…`, whose name is
/// resolved by its naming service.
///
/// # Errors
/// Those of the ORB, and those of the naming service.
pub fn resolve(orb: &Orb, text: &str) -> Result<Object, Failure> {
    let Ok(ObjectUrl::Corbaname { name, .. }) = ObjectUrl::parse(text) else {
        return Ok(orb.string_to_object(text)?);
    };
    let context = context(orb, &context_url(text))?;
    let name: Vec<NameComponent<'_>> = name
        .iter()
        .map(|component| NameComponent {
            id: &component.id,
            kind: &component.kind,
        })
        .collect();
    Ok(context
        .resolve(&name)?
        .ok_or("a nil reference is bound to the name")?)
}

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

fn context(orb: &Orb, url: &str) -> Result<NamingContextExt, Failure> {
    let object = orb.string_to_object(url)?;
    Ok(NamingContextExt::narrow(&object)?.ok_or(NO_CONTEXT)?)
}

/// Returns the `corbaloc:` of the naming context in a `corbaname:`.
fn context_url(corbaname: &str) -> String {
    let rest = corbaname.split_once(':').map_or("", |(_, rest)| rest);
    let context = rest.split('#').next().unwrap_or_default();
    match context.split_once('/') {
        Some((_, key)) if !key.is_empty() => format!("corbaloc:{context}"),
        _ => format!("corbaloc:{}/NameService", context.trim_end_matches('/')),
    }
}

const NO_CONTEXT: &str = "the object is no naming context";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_context_is_name_service_where_a_url_has_none() {
        for (corbaname, corbaloc) in [
            ("corbaname::h:1#a/b", "corbaloc::h:1/NameService"),
            ("corbaname::h:1/#a/b", "corbaloc::h:1/NameService"),
            ("corbaname::h:1/Names#a/b", "corbaloc::h:1/Names"),
            ("corbaname:rir:", "corbaloc:rir:/NameService"),
        ] {
            assert_eq!(context_url(corbaname), corbaloc);
        }
    }
}
