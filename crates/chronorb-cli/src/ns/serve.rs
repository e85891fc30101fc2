//! `chronorb ns serve`: a name server until a signal.

use std::io::{self, Write};
use std::time::Duration;

use chronorb_giop::{IiopProfile, Ior, TAG_INTERNET_IOP};
use chronorb_naming::{NameServer, ReapPolicy, ServeError};
use chronorb_orb::{
    Endpoint, InitError, LastFailure, Orb, OrbConfig, SystemException, SystemExceptionKind,
};
use clap::{Args, value_parser};
use thiserror::Error;

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The endpoint to listen at, as iiop://10.0.0.1:2809; iiop://:2809 is all interfaces of this
    /// machine [default: iiop://127.0.0.1:2809, if -ORBListenEndpoints names no other].
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoints)]
    listen: Vec<Endpoints>,

    /// Check all bound objects, this number of seconds after the last check, and unbind those that
    /// three checks in a row did not find, 1 to 86400. Without it no object is checked.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400))]
    reap: Option<u64>,
}

/// The endpoints of one argument.
type Endpoints = Box<[Endpoint]>;

fn endpoints(text: &str) -> Result<Endpoints, String> {
    let endpoints = chronorb_orb::parse_endpoints(text);
    endpoints.map(Into::into).map_err(|error| error.to_string())
}

/// The name server cannot serve.
#[derive(Debug, Error)]
pub(crate) enum ServeFailure {
    #[error(transparent)]
    Init(#[from] InitError),
    #[error("the name server cannot serve: {}", cause(.0, .1.as_deref()))]
    Serve(ServeError, Option<Box<LastFailure>>),
    #[error("the name server cannot serve: {0}")]
    System(#[from] SystemException),
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

/// The cause of the last failure of the ORB if there is one, else that of the error.
fn cause(error: &ServeError, failure: Option<&LastFailure>) -> String {
    match failure {
        Some(failure) => failure.to_string(),
        None => {
            let source = std::error::Error::source(error);
            source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
        }
    }
}

/// Serves until a signal.
pub(crate) fn run(arguments: ServeArguments, mut config: OrbConfig) -> Result<(), ServeFailure> {
    if !arguments.listen.is_empty() {
        config.listen_endpoints = arguments.listen.into_iter().flatten().collect();
    } else if config.listen_endpoints.is_empty() {
        config.listen_endpoints = chronorb_orb::parse_endpoints(LOOPBACK).unwrap_or_default();
    }
    let orb = Orb::with_config(config)?;
    orb.catch_signals()?;
    let poa = orb.root_poa()?;
    let mut server = NameServer::new();
    if let Some(seconds) = arguments.reap {
        server = server.reap(ReapPolicy {
            interval: Duration::from_secs(seconds),
            timeout: REAPING_TIMEOUT,
        });
    }
    let service = server.serve_in(&poa);
    let service =
        service.map_err(|error| ServeFailure::Serve(error, orb.last_failure().map(Box::new)))?;
    poa.manager().activate().map_err(|_| INACTIVE)?;
    let mut out = io::stdout().lock();
    for reference in references(service.root().ior()) {
        writeln!(out, "{reference}")?;
    }
    out.flush()?;
    drop(out);
    orb.run_until_signal()?;
    Ok(())
}

/// The references of the root context that people can read: one for each IIOP address. A root that
/// has none is shown as a whole.
fn references(root: &Ior) -> Vec<String> {
    let profiles = root.profiles.iter();
    let profiles = profiles.filter(|profile| profile.tag == TAG_INTERNET_IOP);
    let profiles = profiles.filter_map(|profile| IiopProfile::decode(&profile.data).ok());
    let urls: Vec<_> = profiles.map(|profile| url(&profile)).collect();
    if urls.is_empty() {
        vec![root.to_string()]
    } else {
        urls
    }
}

fn url(profile: &IiopProfile) -> String {
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
    format!(
        "corbaloc:iiop:{}.{}@{host}:{port}/NameService",
        version.major, version.minor
    )
}

/// The exception for a POA manager that was deactivated.
const INACTIVE: SystemException = SystemException::no(SystemExceptionKind::ObjAdapter, 0);
/// The endpoint that only programs on this machine reach.
const LOOPBACK: &str = "iiop://127.0.0.1:2809";
/// The time limit for each object that is checked.
const REAPING_TIMEOUT: Duration = Duration::from_secs(1);
