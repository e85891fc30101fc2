//! Where an ORB listens, and what its peers have to prove there.

use std::fmt;
use std::net::IpAddr;

use super::Published;
use crate::core::Core;
#[cfg(feature = "tracing")]
use crate::incident::Incident;

/// Where an ORB listens, and what peers have to prove there. Displayed it is the line by which a
/// server tells this at its start.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Listening {
    /// The endpoints of all lanes that are open, in order, each once.
    pub endpoints: Vec<ListeningEndpoint>,
    /// What an operator should look at: open endpoints, POAs at which anybody on a network chooses any
    /// priority, and a limit of open files that the ORB could not raise enough.
    pub warnings: Vec<String>,
}

/// An endpoint, and what its peers have to prove.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListeningEndpoint {
    /// The endpoint as references tell it, `iiop://10.0.0.1:2809`.
    pub endpoint: String,
    /// Whether it is at all interfaces of the machine, and not only at the one that it names.
    pub on_all_interfaces: bool,
    /// What a peer has to prove.
    pub proof: PeerProof,
}

/// What the peers of an endpoint have to prove.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerProof {
    /// Nothing.
    Nothing,
    /// Nothing, but what they say is encrypted (TLS without `-ORBSSLVerify mutual`).
    NothingEncrypted,
    /// The kernel tells their process and user (UIOP, SHMIOP).
    User,
    /// Their identity, by a certificate (TLS with `-ORBSSLVerify mutual`).
    Certificate,
}

impl PeerProof {
    /// As the start line says it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "not authenticated",
            Self::NothingEncrypted => "encrypted, clients not authenticated",
            Self::User => "user known",
            Self::Certificate => "clients authenticated by certificate",
        }
    }
}

impl fmt::Display for ListeningEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self.on_all_interfaces {
            true => "all interfaces, ",
            false => "",
        };
        write!(f, "{} ({all}{})", self.endpoint, self.proof.name())
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.endpoints.is_empty() {
            f.write_str("listens nowhere")?;
        }
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let before = if index == 0 { "listens at " } else { ", " };
            write!(f, "{before}{endpoint}")?;
        }
        for warning in &self.warnings {
            write!(f, "; WARNING: {warning}")?;
        }
        Ok(())
    }
}

/// Where the lanes of an ORB listen now.
pub(crate) fn listening(core: &Core) -> Listening {
    let mut endpoints: Vec<ListeningEndpoint> = Vec::new();
    let mut open = None;
    for lane in core.server.pools.lock().all().flat_map(|pool| pool.lanes()) {
        for published in lane.published() {
            let endpoint = of_published(core, published);
            if endpoints.contains(&endpoint) {
                continue;
            }
            if open.is_none() && is_open_to_network(published, endpoint.proof) {
                open = Some(endpoint.endpoint.clone());
            }
            endpoints.push(endpoint);
        }
    }
    let mut warnings = Vec::new();
    if let Some(endpoint) = open.filter(|_| !has_rules(core)) {
        warnings.push(format!(
            "everybody who reaches {endpoint} may call (-ORBServerTransportRule, -ORBListenEndpoints)"
        ));
    }
    // A POA whose pool has not opened its endpoints yet is not among them.
    for poa in core.poas.with_unbounded_priorities() {
        warnings.push(format!(
            "anybody on the network chooses the priorities of the POA {poa:?} (-ORBPriorityCeiling)"
        ));
    }
    if let Some((descriptors, wanted)) = core.server.lack_of_files() {
        warnings.push(format!(
            "{descriptors} descriptors (ulimit -n) are fewer than {wanted} connections \
             (-ORBMaxConnections)"
        ));
    }
    Listening {
        endpoints,
        warnings,
    }
}

/// Tells the log where an ORB listens, if that is not what was told last: as a warning where an
/// operator should look at something.
pub(crate) fn tell_listening(core: &Core) {
    #[cfg(feature = "tracing")]
    {
        let listening = listening(core);
        let mut told = core.server.told_listening.lock();
        if listening.endpoints.is_empty() || *told == listening {
            return;
        }
        let incident = match listening.warnings.is_empty() {
            true => Incident::Listening,
            false => Incident::UnsafeSetting,
        };
        let orb = format_args!("ORB {}", core.config.orb_id);
        core.incidents.tell(incident, &orb, 0, &listening);
        *told = listening;
    }
    #[cfg(not(feature = "tracing"))]
    let _ = core;
}

fn of_published(core: &Core, published: &Published) -> ListeningEndpoint {
    let scheme = &published.endpoint.scheme;
    let host = published.endpoint.address.as_host().map(|(host, _)| host);
    let unspecified = |host: &str| {
        let address = host.parse::<IpAddr>();
        host.is_empty() || address.is_ok_and(|address| address.is_unspecified())
    };
    ListeningEndpoint {
        endpoint: format!("{scheme}://{}", published.way),
        on_all_interfaces: host.is_some_and(unspecified),
        proof: match scheme.as_str() {
            "uiop" | "shmiop" => PeerProof::User,
            "ssliop" => proof_by_tls(core),
            _ => PeerProof::Nothing,
        },
    }
}

fn proof_by_tls(core: &Core) -> PeerProof {
    #[cfg(feature = "ssliop")]
    if core.config.ssl.verify == chronorb_transport::tls::Verify::Mutual {
        return PeerProof::Certificate;
    }
    let _ = core;
    PeerProof::NothingEncrypted
}

/// Whether somebody on another machine may reach an endpoint without any proof.
fn is_open_to_network(published: &Published, proof: PeerProof) -> bool {
    let host = published.way.address.as_host().map(|(host, _)| host);
    let is_loopback = |host: &str| {
        let address = host.parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    };
    let is_local = host.is_none_or(is_loopback);
    !is_local && matches!(proof, PeerProof::Nothing | PeerProof::NothingEncrypted)
}

fn has_rules(core: &Core) -> bool {
    #[cfg(feature = "access")]
    return !core.config.server_transport_rules.is_empty();
    #[cfg(not(feature = "access"))]
    {
        let _ = core;
        false
    }
}
