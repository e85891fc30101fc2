//! The endpoints of commands that serve, and the references that they print.

use std::error::Error;
use std::io::{self, Write};

use chronorb_giop::{IiopProfile, Ior, TAG_INTERNET_IOP};
use chronorb_orb::{Endpoint, LastFailure, OrbConfig, SystemException, SystemExceptionKind};

/// The endpoints of one argument.
pub(crate) type Endpoints = Box<[Endpoint]>;

/// Reads the endpoints of one argument.
pub(crate) fn endpoints(text: &str) -> Result<Endpoints, String> {
    let endpoints = chronorb_orb::parse_endpoints(text);
    endpoints.map(Into::into).map_err(|error| error.to_string())
}

/// Sets the endpoints of an ORB: those of the command line, of its options, or the default.
pub(crate) fn set_endpoints(config: &mut OrbConfig, listen: Vec<Endpoints>, default: &str) {
    if !listen.is_empty() {
        config.listen_endpoints = listen.into_iter().flatten().collect();
    } else if config.listen_endpoints.is_empty() {
        config.listen_endpoints = chronorb_orb::parse_endpoints(default).unwrap_or_default();
    }
}

/// Prints the references of an initial reference, each on a line.
pub(crate) fn print_references(object: &Ior, name: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for reference in references(object, name) {
        writeln!(out, "{reference}")?;
    }
    out.flush()
}

/// Returns the references of an initial reference that people can read: one for each IIOP address.
/// An object that has none is shown as a whole, as one that is reached by TLS alone: its profiles
/// have port 0, and no URL names the port of TLS.
fn references(object: &Ior, name: &str) -> Vec<String> {
    let profiles = object.profiles.iter();
    let profiles = profiles.filter(|profile| profile.tag == TAG_INTERNET_IOP);
    let profiles = profiles.filter_map(|profile| IiopProfile::decode(&profile.data).ok());
    let profiles = profiles.filter(|profile| profile.port != 0);
    let urls: Vec<_> = profiles.map(|profile| url(&profile, name)).collect();
    if urls.is_empty() {
        vec![object.to_string()]
    } else {
        urls
    }
}

fn url(profile: &IiopProfile, name: &str) -> String {
    let IiopProfile {
        version,
        host,
        port,
        ..
    } = profile;
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.clone()
    };
    let (major, minor) = (version.major, version.minor);
    format!("corbaloc:iiop:{major}.{minor}@{host}:{port}/{name}")
}

/// Returns the cause of the last failure of the ORB if there is one, else that of the error.
pub(crate) fn cause(error: &dyn Error, failure: Option<&LastFailure>) -> String {
    match failure {
        Some(failure) => failure.to_string(),
        None => {
            let source = error.source();
            source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
        }
    }
}

/// The exception for a POA manager that was deactivated.
pub(crate) const INACTIVE: SystemException =
    SystemException::no(SystemExceptionKind::ObjAdapter, 0);
