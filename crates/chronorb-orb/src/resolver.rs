//! From texts and names to references.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use chronorb_giop::url::{CorbalocAddress, CorbalocPlace, ObjectUrl};
use chronorb_giop::{Ior, SystemException, SystemExceptionKind, TAG_INTERNET_IOP, minor};
use chronorb_rt::PiMutex;
use chronorb_transport::Address;

use crate::config::OrbConfig;
use crate::core::Core;
use crate::object::Object;
use crate::orb::ResolveError;

/// The initial references of an ORB.
pub(crate) struct Resolver {
    given: Vec<(String, String)>,
    default: Option<String>,
    /// Whether texts may name files; those of `-ORBInitRef` always may.
    files: bool,
    registered: PiMutex<HashMap<String, Ior>>,
}

impl Resolver {
    pub(crate) fn new(config: &OrbConfig) -> Self {
        Self {
            given: config.init_refs.clone(),
            default: config.default_init_ref.clone(),
            files: config.file_references,
            registered: PiMutex::new(HashMap::new()),
        }
    }

    pub(crate) fn register(&self, name: &str, ior: Ior) -> Result<(), ResolveError> {
        let mut registered = self.registered.lock();
        if name.is_empty() || registered.contains_key(name) {
            return Err(ResolveError::InvalidName);
        }
        registered.insert(name.to_owned(), ior);
        Ok(())
    }

    /// The reference registered under a plain key, for `corbaloc:` requests of others.
    pub(crate) fn registered(&self, key: &[u8]) -> Option<Ior> {
        let name = std::str::from_utf8(key).ok()?;
        self.registered.lock().get(name).cloned()
    }
}

/// Looks a name up in the standard's order: registered here, `-ORBInitRef`, `-ORBDefaultInitRef`.
pub(crate) fn resolve(
    core: &Arc<Core>,
    name: &str,
    depth: u32,
) -> Result<Option<Object>, SystemException> {
    let resolver = &core.resolver;
    if let Some(ior) = resolver.registered(name.as_bytes()) {
        return Ok(Object::from_ior(core, ior));
    }
    if let Some((_, url)) = resolver.given.iter().find(|(given, _)| given == name) {
        return read(core, url, depth + 1, true).map(Some);
    }
    if let Some(prefix) = &resolver.default {
        let url = format!("{}/{name}", prefix.trim_end_matches('/'));
        return string_to_object(core, &url, depth + 1).map(Some);
    }
    Ok(None)
}

/// Reads the text form of a reference.
pub(crate) fn string_to_object(
    core: &Arc<Core>,
    text: &str,
    depth: u32,
) -> Result<Object, SystemException> {
    read(core, text, depth, core.resolver.files)
}

/// As [`string_to_object`]; `files` is whether the text may name a file.
fn read(core: &Arc<Core>, text: &str, depth: u32, files: bool) -> Result<Object, SystemException> {
    let bad_param = |minor| SystemException::no(SystemExceptionKind::BadParam, minor);
    if depth > MAX_DEPTH {
        return Err(bad_param(minor::STRING_TO_OBJECT));
    }
    #[cfg(feature = "miop")]
    if let Some(group) =
        chronorb_giop::parse_group_url(text).map_err(|error| bad_param(error.minor()))?
    {
        let group = Object::from_ior(core, group);
        return group.ok_or(SystemException::no(SystemExceptionKind::InvObjref, 0));
    }
    let url = ObjectUrl::parse(text).map_err(|error| bad_param(error.minor()))?;
    let ior = match url {
        ObjectUrl::Ior(ior) => ior,
        ObjectUrl::Corbaloc { addresses, key } => corbaloc(core, &addresses, &key)?,
        ObjectUrl::CorbalocRir { key } => {
            let name = String::from_utf8_lossy(&key).into_owned();
            let name = if name.is_empty() {
                "NameService".to_owned()
            } else {
                name
            };
            return resolve(core, &name, depth)?
                .ok_or_else(|| bad_param(minor::BAD_SCHEME_SPECIFIC));
        }
        ObjectUrl::File(_) if !files => return Err(bad_param(minor::BAD_SCHEME)),
        ObjectUrl::File(path) => {
            let text = chronorb_rt::read_text(Path::new(&path));
            let text = text.map_err(|_| bad_param(minor::STRING_TO_OBJECT))?;
            return read(core, text.trim(), depth + 1, files);
        }
        // A name has to be resolved by the naming service, which is not part of the ORB core.
        _ => return Err(SystemException::no(SystemExceptionKind::NoImplement, 0)),
    };
    Object::from_ior(core, ior).ok_or(SystemException::no(SystemExceptionKind::InvObjref, 0))
}

/// The reference of a `corbaloc:` URL: one profile for each address.
///
/// # Errors
/// `BAD_PARAM` (OMG minor 8) where the ORB has no such protocol, or it has other addresses.
fn corbaloc(
    core: &Core,
    addresses: &[CorbalocAddress],
    key: &[u8],
) -> Result<Ior, SystemException> {
    let bad_address = || SystemException::no(SystemExceptionKind::BadParam, minor::BAD_ADDRESS);
    let profile = |address: &CorbalocAddress| {
        let protocol = core.protocols.find(&address.protocol).ok();
        // What shares the references of IIOP calls them too.
        let is_iiop = address.protocol == "iiop";
        let beside = || core.protocols.of_tag(TAG_INTERNET_IOP);
        let protocol = protocol.or_else(|| is_iiop.then(beside).flatten());
        let protocol = protocol.ok_or_else(bad_address)?;
        let place = match &address.place {
            CorbalocPlace::Host { host, port } => Address::host(host.clone(), *port),
            CorbalocPlace::Path(path) => Address::Path(path.clone()),
        };
        protocol
            .profile(address.version, place, key)
            .map_err(|_| bad_address())
    };
    let profiles = addresses.iter().map(profile);
    Ok(Ior {
        type_id: String::new(),
        profiles: profiles.collect::<Result<Vec<_>, SystemException>>()?,
    })
}

/// How often a text may lead to another: `file://` to `corbaloc:rir:` to `-ORBInitRef` …
const MAX_DEPTH: u32 = 8;
