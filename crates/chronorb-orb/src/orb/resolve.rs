//! Conversion of texts and names to references.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use chronorb_giop::url::{CorbalocAddress, CorbalocPlace, NAME_SERVICE, ObjectUrl, UrlError};
use chronorb_giop::{Ior, SystemException, SystemExceptionKind, TAG_INTERNET_IOP, minor};
use chronorb_rt::Text;
use chronorb_transport::Address;

use crate::core::{Core, Object};
use crate::failure::because;

use super::names;

/// Resolves a name in the standard's order: registered here, `-ORBInitRef`, `-ORBDefaultInitRef`.
pub(crate) fn resolve(
    core: &Arc<Core>,
    name: &str,
    depth: u32,
) -> Result<Option<Object>, SystemException> {
    let references = &core.initial_references;
    if let Some(ior) = references.registered(name.as_bytes()) {
        return Ok(Object::from_ior(core, ior));
    }
    if let Some((_, url)) = references.given.iter().find(|(given, _)| given == name) {
        return read(core, url, depth + 1, true).map(Some);
    }
    if let Some(prefix) = &references.default {
        let url = format!("{}/{name}", prefix.trim_end_matches('/'));
        return string_to_object(core, &url, depth + 1).map(Some);
    }
    Ok(None)
}

/// Converts the text form of a reference.
pub(crate) fn string_to_object(
    core: &Arc<Core>,
    text: &str,
    depth: u32,
) -> Result<Object, SystemException> {
    read(core, text, depth, core.initial_references.files)
}

/// Like [`string_to_object`]; `files` is whether the text may name a file.
fn read(core: &Arc<Core>, text: &str, depth: u32, files: bool) -> Result<Object, SystemException> {
    if depth > MAX_DEPTH {
        let cause = format_args!("more than {MAX_DEPTH} texts lead to each other");
        return Err(bad_param(minor::STRING_TO_OBJECT, cause));
    }
    #[cfg(feature = "miop")]
    if let Some(group) =
        chronorb_giop::parse_group_url(text).map_err(|error| refused(text, &error))?
    {
        return object(core, group);
    }
    let url = ObjectUrl::parse(text).map_err(|error| refused(text, &error))?;
    let ior = match url {
        ObjectUrl::Ior(ior) => ior,
        ObjectUrl::Corbaloc { addresses, key } => corbaloc(core, &addresses, &key)?,
        ObjectUrl::CorbalocRir { key } => return initial(core, &key, depth),
        ObjectUrl::File(path) if !files => {
            let setting = "-ORBFileReferences false lets no text name a file";
            let cause = format_args!("{path}: {setting}");
            return Err(bad_param(minor::BAD_SCHEME, cause));
        }
        ObjectUrl::File(path) => {
            let text = chronorb_rt::read_text(Path::new(&path));
            let text = text.map_err(|error| {
                let cause = format_args!("the file {path} cannot be read: {error}");
                bad_param(minor::STRING_TO_OBJECT, cause)
            })?;
            return read(core, text.trim(), depth + 1, files);
        }
        ObjectUrl::Corbaname {
            addresses,
            key,
            name,
        } => {
            let context = if addresses.is_empty() {
                initial(core, &key, depth)?
            } else {
                object(core, corbaloc(core, &addresses, &key)?)?
            };
            return if name.is_empty() {
                Ok(context)
            } else {
                names::resolve(&context, &name)
            };
        }
        // The enum is open for further schemes.
        _ => return Err(refused(text, &UrlError::Scheme)),
    };
    object(core, ior)
}

fn object(core: &Arc<Core>, ior: Ior) -> Result<Object, SystemException> {
    Object::from_ior(core, ior).ok_or(SystemException::no(SystemExceptionKind::InvObjref, 0))
}

/// Returns the initial reference that a URL with `rir:` means.
fn initial(core: &Arc<Core>, key: &[u8], depth: u32) -> Result<Object, SystemException> {
    let name = String::from_utf8_lossy(key);
    let name = if key.is_empty() { NAME_SERVICE } else { &name };
    resolve(core, name, depth)?.ok_or_else(|| {
        let known = "no initial reference has this name";
        let cause = format_args!("{name:?}: {known} (-ORBInitRef {name}=URL gives one)");
        bad_param(minor::BAD_SCHEME_SPECIFIC, cause)
    })
}

/// Returns the exception for a malformed text, and records its beginning and the error.
#[cold]
fn refused(text: &str, error: &UrlError) -> SystemException {
    let beginning = Text::<80>::of(text.trim());
    bad_param(error.minor(), format_args!("{:?}: {error}", &*beginning))
}

/// Returns `BAD_PARAM`, and records its cause.
#[cold]
fn bad_param(minor: u32, cause: fmt::Arguments<'_>) -> SystemException {
    let exception = SystemException::no(SystemExceptionKind::BadParam, minor);
    because(exception, cause)
}

/// The reference of a `corbaloc:` URL, with one profile for each address.
///
/// # Errors
/// `BAD_PARAM` (OMG minor 8) where the ORB lacks a protocol, or an address is not one of it.
fn corbaloc(
    core: &Core,
    addresses: &[CorbalocAddress],
    key: &[u8],
) -> Result<Ior, SystemException> {
    let profile = |address: &CorbalocAddress| {
        let protocol = core.protocols.find(&address.protocol).ok();
        // Protocols that share IIOP's profiles also handle its addresses.
        let is_iiop = address.protocol == "iiop";
        let beside = || core.protocols.of_tag(TAG_INTERNET_IOP);
        let protocol = protocol.or_else(|| is_iiop.then(beside).flatten());
        let protocol = protocol.ok_or_else(|| unknown(core, &address.protocol))?;
        let place = match &address.place {
            CorbalocPlace::Host { host, port } => Address::host(host.clone(), *port),
            CorbalocPlace::Path(path) => Address::Path(path.clone()),
        };
        protocol
            .profile(address.version, place, key)
            .map_err(|error| {
                let cause = format_args!("{}: {error}", address.protocol);
                bad_param(minor::BAD_ADDRESS, cause)
            })
    };
    let profiles = addresses.iter().map(profile);
    Ok(Ior {
        type_id: String::new(),
        profiles: profiles.collect::<Result<Vec<_>, SystemException>>()?,
    })
}

/// Returns the exception for an unknown protocol, and records which protocols there are.
#[cold]
fn unknown(core: &Core, scheme: &str) -> SystemException {
    let problem = core.protocols.find(scheme).err();
    problem.map_or(
        SystemException::no(SystemExceptionKind::BadParam, minor::BAD_ADDRESS),
        |problem| bad_param(minor::BAD_ADDRESS, format_args!("{problem}")),
    )
}

/// The greatest length of a chain of texts: `file://` to `corbaloc:rir:` to `-ORBInitRef` …
const MAX_DEPTH: u32 = 8;
