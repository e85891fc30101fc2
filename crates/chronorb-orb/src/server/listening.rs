//! The endpoints at which an ORB listens, and what proof it asks of peers there.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::host_addresses;

use crate::core::Core;
#[cfg(feature = "tracing")]
use crate::incident::Incident;
use crate::lanes::PublishedEndpoint;

/// The endpoints at which an ORB listens, and the proof that each asks of peers. Its `Display` is
/// the line that a server logs at its start.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListeningEndpoints {
    /// The open endpoints of all lanes, in order, each once.
    pub endpoints: Vec<ListeningEndpoint>,
    /// Notes for the operator: hosts in references that other machines do not reach, open
    /// endpoints, POAs at which any client on a network or any user of
    /// this machine chooses any priority, and a limit of open files that the ORB could not raise
    /// enough.
    pub warnings: Vec<String>,
}

/// An endpoint, and the proof that it asks of its peers.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListeningEndpoint {
    /// The endpoint as references name it, such as `iiop://10.0.0.1:2809`.
    pub endpoint: String,
    /// Whether it is bound to all interfaces of the machine, and not only to one of them.
    pub on_all_interfaces: bool,
    /// The proof that it asks of a peer.
    pub proof: PeerProof,
}

/// The proof that an endpoint asks of its peers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerProof {
    /// No proof.
    Nothing,
    /// No proof, but messages are encrypted (TLS without `-ORBSSLVerify mutual`).
    NothingEncrypted,
    /// The kernel reports the process and user of the peer (UIOP, SHMIOP).
    User,
    /// An identity by certificate (TLS with `-ORBSSLVerify mutual`).
    Certificate,
}

impl PeerProof {
    /// The text for the start line.
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
        let all = if self.on_all_interfaces {
            "all interfaces, "
        } else {
            ""
        };
        write!(f, "{} ({all}{})", self.endpoint, self.proof.name())
    }
}

impl fmt::Display for ListeningEndpoints {
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

/// The reason why clients on other machines do not reach the host of a published address, unless
/// the endpoint is at the loopback by its own words.
fn unreachable_host(published: &PublishedEndpoint) -> Option<String> {
    let (host, _) = published.way.address.as_host()?;
    let (bound, _) = published.endpoint.address.as_host()?;
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    if bound == "localhost" || bound.parse().is_ok_and(is_loopback) {
        return None;
    }
    match host_addresses(host, Deadline::after(LOOK_UP)) {
        Err(error) => Some(format!(
            "references name the host {host}, which does not resolve here: {error} \
             (hostname_in_ior)"
        )),
        Ok(found) if found.iter().all(|found| is_loopback(found.ip())) => Some(format!(
            "references name the host {host}, which is the loopback: no other machine reaches it \
             (hostname_in_ior)"
        )),
        Ok(_) => None,
    }
}

/// The longest look-up of a published host.
const LOOK_UP: Duration = Duration::from_secs(1);

/// Returns the endpoints at which the lanes of an ORB listen now.
pub(crate) fn listening(core: &Core) -> ListeningEndpoints {
    let mut endpoints: Vec<ListeningEndpoint> = Vec::new();
    let (mut open, mut unreachable) = (None, Vec::new());
    for lane in core
        .server()
        .pools
        .lock()
        .all()
        .flat_map(|pool| pool.lanes())
    {
        for published in lane.published() {
            let endpoint = of_published(core, published);
            if endpoints.contains(&endpoint) {
                continue;
            }
            if open.is_none() && is_open_to_network(published, endpoint.proof) {
                open = Some(endpoint.endpoint.clone());
            }
            unreachable.extend(unreachable_host(published));
            endpoints.push(endpoint);
        }
    }
    let mut warnings = unreachable;
    if let Some(endpoint) = open.filter(|_| !has_rules(core)) {
        warnings.push(format!(
            "every client that reaches {endpoint} may call it \
             (-ORBServerTransportRule, -ORBListenEndpoints)"
        ));
    }
    // A POA whose pool has not opened its endpoints yet is not reported.
    for (poa, reach) in core.poas.with_unbounded_priorities() {
        warnings.push(format!(
            "{reach} chooses the priorities of the POA {poa:?} (-ORBPriorityCeiling)"
        ));
    }
    if let Some((descriptors, wanted)) = core.server().lack_of_files() {
        warnings.push(format!(
            "{descriptors} descriptors (ulimit -n) are fewer than {wanted} connections \
             (-ORBMaxConnections)"
        ));
    }
    ListeningEndpoints {
        endpoints,
        warnings,
    }
}

/// Logs the endpoints at which an ORB listens, if they have changed since the last time: as a
/// warning where the operator should look at something.
pub(crate) fn log_listening(core: &Core) {
    #[cfg(feature = "tracing")]
    {
        let listening = listening(core);
        let mut told = core.server().logged_listening.lock();
        if listening.endpoints.is_empty() || *told == listening {
            return;
        }
        let incident = if listening.warnings.is_empty() {
            Incident::Listening
        } else {
            Incident::UnsafeSetting
        };
        let orb = format_args!("ORB {}", core.config.orb_id);
        core.incidents.tell(incident, &orb, 0, &listening);
        *told = listening;
    }
    #[cfg(not(feature = "tracing"))]
    let _ = core;
}

fn of_published(core: &Core, published: &PublishedEndpoint) -> ListeningEndpoint {
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

/// Whether a client on another machine may reach an endpoint without any proof.
fn is_open_to_network(published: &PublishedEndpoint, proof: PeerProof) -> bool {
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
