//! SSLIOP: IIOP within TLS, published by a component of the profile of IIOP.

use std::sync::Arc;

use chronorb_cdr::CdrError;
use chronorb_giop::{
    AssociationOptions, Component, IiopProfile, Ior, SslSecTrans, TAG_INTERNET_IOP,
    TAG_SSL_SEC_TRANS, TAG_SSLIOP_LANES, TaggedComponent,
};
use chronorb_transport::Address;
use chronorb_transport::tls::{Tls, TlsConfig, Verify};

use super::{Components, Plain, PluggableProtocol, ProtocolProblem, ProtocolRole, Registry};
use crate::config::OrbConfig;

/// Returns the protocol, if there is a certificate, an authority to trust, or the setting to verify
/// no peer.
pub(super) fn protocol(config: &OrbConfig) -> Result<Option<PluggableProtocol>, ProtocolProblem> {
    let settings = &config.ssl;
    let is_given = settings.certificate.is_some()
        || settings.private_key.is_some()
        || settings.authority.is_some()
        || settings.verify != Verify::Peer;
    if !is_given {
        return if is_named(config) {
            Err(ProtocolProblem::Setting(NOT_GIVEN.to_owned()))
        } else {
            Ok(None)
        };
    }
    let tls = TlsConfig::read(settings);
    let tls = tls.map_err(|problem| ProtocolProblem::Setting(problem.to_string()))?;
    let components = Components {
        write: match settings.verify {
            Verify::Mutual => |addresses, plain| write(addresses, plain, CLIENT),
            _ => |addresses, plain| write(addresses, plain, AssociationOptions::default()),
        },
        read,
        lanes: Some(TAG_SSLIOP_LANES),
    };
    Ok(Some(PluggableProtocol {
        transport: Arc::new(Tls::new(tls)),
        tag: TAG_SSL_SEC_TRANS,
        profiles: None,
        components: Some(components),
        place: None,
        standing: ProtocolRole::Own,
    }))
}

/// Whether these components of a profile forbid to go by its own port.
pub(crate) fn requires_protection(components: &[TaggedComponent]) -> bool {
    told(components).any(|ssl| ssl.requires_protection())
}

/// Whether a reference could be used if protection were not wanted, by it or by this ORB.
pub(crate) fn is_forbidden(ior: &Ior, registry: &Registry) -> bool {
    let wanted = registry.has(TAG_SSL_SEC_TRANS) && !registry.has(TAG_INTERNET_IOP);
    let profiles = ior.profiles.iter();
    let mut profiles = profiles.filter(|profile| profile.tag == TAG_INTERNET_IOP);
    profiles.any(|profile| {
        let profile = IiopProfile::decode(&profile.data);
        profile.is_ok_and(|profile| wanted || requires_protection(&profile.components))
    })
}

/// Whether the configuration speaks of it by name.
fn is_named(config: &OrbConfig) -> bool {
    let lanes = config.lane_listen_endpoints.iter().map(|(_, e)| e);
    let endpoints = config.listen_endpoints.iter().chain(lanes);
    let mut schemes = endpoints
        .map(|endpoint| &endpoint.scheme)
        .chain(&config.protocols);
    schemes.any(|scheme| scheme == "ssliop")
}

/// A component for each port. The host is that of the profile, so that those at other hosts are
/// left out.
fn write(
    addresses: &[Address],
    plain: Plain,
    of_client: AssociationOptions,
) -> Result<Vec<TaggedComponent>, CdrError> {
    let required = match plain {
        Plain::Open => AssociationOptions::NO_PROTECTION,
        Plain::Closed => {
            AssociationOptions::INTEGRITY | AssociationOptions::CONFIDENTIALITY | of_client
        }
    };
    let mut hosts = addresses.iter().filter_map(Address::as_host);
    let first = hosts.clone().next();
    let mut ports = Vec::new();
    for (host, port) in &mut hosts {
        if first.is_some_and(|(first, _)| first == host) && !ports.contains(&port) {
            ports.push(port);
        }
    }
    let component = |port| {
        let ssl = SslSecTrans {
            target_supports: TLS | required | of_client,
            target_requires: required,
            port,
        };
        Component::SslSecTrans(ssl).tagged()
    };
    ports.into_iter().map(component).collect()
}

fn read(components: &[TaggedComponent], host: &str) -> Vec<Address> {
    let ports = told(components)
        .map(|ssl| ssl.port)
        .filter(|port| *port != 0);
    ports.map(|port| Address::host(host, port)).collect()
}

fn told(components: &[TaggedComponent]) -> impl Iterator<Item = SslSecTrans> {
    components.iter().filter_map(|component| {
        // One that cannot be read is as good as one that is not there.
        match component.typed() {
            Ok(Component::SslSecTrans(ssl)) => Some(ssl),
            _ => None,
        }
    })
}

const CLIENT: AssociationOptions = AssociationOptions::ESTABLISH_TRUST_IN_CLIENT;
/// The options that every server of TLS supports.
const TLS: AssociationOptions = AssociationOptions(
    AssociationOptions::INTEGRITY.0
        | AssociationOptions::CONFIDENTIALITY.0
        | AssociationOptions::DETECT_REPLAY.0
        | AssociationOptions::DETECT_MISORDERING.0
        | AssociationOptions::ESTABLISH_TRUST_IN_TARGET.0,
);
const NOT_GIVEN: &str =
    "ssliop needs -ORBSSLCertificate to listen, and -ORBSSLCertificateAuthority to connect";
