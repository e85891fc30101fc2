//! The secure profile: the settings with which only proved peers reach an ORB.

use std::str::FromStr;

use chronorb_transport::Endpoint;

use super::{ConfigError, OrbConfig};
use crate::access::{TransportRule, TransportRules};
use crate::protocol::Registry;
use crate::rtcorba::Priority;

/// A set of requirements on the settings of an ORB (`-ORBProfile`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SecurityProfile {
    /// No requirements: the settings are independent.
    #[default]
    Open,
    /// Only peers that have proved their identity connect, and only to proved servers.
    ///
    /// * Protocols are SSLIOP with mutual verification, UIOP and SHMIOP, for servers and clients.
    /// * A server permits only peers that a rule names (`-ORBServerTransportRule`), and rules that
    ///   permit Unix-domain peers name their user.
    /// * A client without rules (`-ORBClientTransportRule`) calls servers by TLS, and those of the
    ///   same user by Unix-domain sockets and shared memory.
    ///
    /// * Priorities that clients propagate have a ceiling; 0, unless `-ORBPriorityCeiling` names
    ///   one.
    /// * Object keys are authenticated, unless a policy of the POA decides otherwise; those of
    ///   persistent POAs if there is a secret (`-ORBObjectKeySecret`).
    ///
    /// An ORB whose other settings contradict this cannot be made.
    Secure,
}

/// Reads `open` or `secure`.
impl FromStr for SecurityProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "open" => Ok(Self::Open),
            "secure" => Ok(Self::Secure),
            other => Err(format!("{other:?} is not open or secure")),
        }
    }
}

/// Checks a configuration according to its profile, and returns it with what it leaves open.
///
/// # Errors
/// The first setting that contradicts the profile.
pub(crate) fn completed(mut config: OrbConfig) -> Result<OrbConfig, ConfigError> {
    if config.profile == SecurityProfile::Open {
        return Ok(config);
    }
    let lanes = config.lane_listen_endpoints.iter().map(|(_, e)| e);
    let endpoints: Vec<&Endpoint> = config.listen_endpoints.iter().chain(lanes).collect();
    for endpoint in &endpoints {
        if !PROVED.contains(&&*endpoint.scheme) {
            let problem = format!("peers prove nothing at \"{endpoint}\"; {EXPECTED}");
            return Err(refused("-ORBListenEndpoints", problem));
        }
    }
    let has_endpoints = !endpoints.is_empty();
    if let Some(named) = config.protocols.iter().find(|p| !PROVED.contains(&&***p)) {
        let problem = format!("peers prove nothing by {named}; {EXPECTED}");
        return Err(refused("-ORBProtocols", problem));
    }
    if config.protocols.is_empty() {
        config.protocols = available(&config);
    }
    #[cfg(feature = "ssliop")]
    if config.protocols.iter().any(|scheme| scheme == "ssliop")
        && config.ssl.verify != chronorb_transport::tls::Verify::Mutual
    {
        return Err(refused("-ORBSSLVerify", "it has to be mutual".to_owned()));
    }
    for (setting, rules) in [
        (SERVER_RULES, &config.server_transport_rules),
        (CLIENT_RULES, &config.client_transport_rules),
    ] {
        if let Some(rule) = rules.iter().find(|rule| permits_any_user(rule)) {
            let problem = format!(
                "the rule \"{rule}\" permits Unix-domain peers of any user; add uid=self or \
                 uid=NUMBER"
            );
            return Err(refused(setting, problem));
        }
    }
    let permits = |rule: &TransportRule| PROVED.iter().any(|scheme| rule.action.permits(scheme));
    if has_endpoints && !config.server_transport_rules.iter().any(permits) {
        let problem = "it permits no peer, so that the endpoints are of no use; add for example \
                       \"san=dns:client.example ssl\" or \"uid=self unix\"";
        return Err(refused(SERVER_RULES, problem.to_owned()));
    }
    config.priority_ceiling.get_or_insert(Priority::MIN);
    if config.server_transport_rules.is_empty() {
        config.server_transport_rules = rules(&["* none"]);
    }
    if config.client_transport_rules.is_empty() {
        config.client_transport_rules = rules(&["uid=self unix", "* ssl"]);
    }
    Ok(config)
}

/// Whether the protocols that rules name exist.
///
/// # Errors
/// The first rule that names one that does not.
pub(crate) fn check(config: &OrbConfig, registry: &Registry) -> Result<(), ConfigError> {
    for (setting, rules) in [
        (SERVER_RULES, &config.server_transport_rules),
        (CLIENT_RULES, &config.client_transport_rules),
    ] {
        for rule in rules.iter() {
            let is_known = |scheme: &str| OWN.contains(&scheme) || registry.find(scheme).is_ok();
            if let Some(unknown) = rule.schemes().iter().find(|scheme| !is_known(scheme)) {
                let problem = format!(
                    "rule \"{rule}\": there is no protocol {unknown:?}; there are tcp, unix, ssl, \
                     {}",
                    OWN.join(", ")
                );
                return Err(ConfigError::BadValue {
                    origin: "configuration".to_owned(),
                    name: setting.to_owned(),
                    problem,
                });
            }
        }
    }
    Ok(())
}

/// Whether a rule permits Unix-domain peers without naming their user.
fn permits_any_user(rule: &TransportRule) -> bool {
    let unix = ["uiop", "shmiop"];
    !rule.names_user() && unix.iter().any(|scheme| rule.action.permits(scheme))
}

/// The protocols that prove peers and that this program has.
fn available(config: &OrbConfig) -> Vec<String> {
    #[cfg(feature = "ssliop")]
    let has_tls = config.ssl != chronorb_transport::tls::TlsSettings::default();
    #[cfg(not(feature = "ssliop"))]
    let has_tls = {
        let _ = config;
        false
    };
    let has = [cfg!(feature = "uiop"), cfg!(feature = "shmiop"), has_tls];
    let proved = PROVED.into_iter().zip(has).filter(|(_, has)| *has);
    proved.map(|(scheme, _)| scheme.to_owned()).collect()
}

/// Rules of this ORB's own.
fn rules(texts: &[&str]) -> TransportRules {
    let parsed = texts.iter().filter_map(|text| text.parse().ok());
    parsed.collect()
}

fn refused(setting: &str, problem: String) -> ConfigError {
    ConfigError::BadValue {
        origin: "-ORBProfile secure".to_owned(),
        name: setting.to_owned(),
        problem,
    }
}

const SERVER_RULES: &str = "-ORBServerTransportRule";
const CLIENT_RULES: &str = "-ORBClientTransportRule";
const EXPECTED: &str = "use ssliop, uiop or shmiop";
/// Protocols whose peers prove their identity, in the order of [`available`].
const PROVED: [&str; 3] = ["uiop", "shmiop", "ssliop"];
/// The protocols that are part of chronorb, including those whose feature is off.
const OWN: [&str; 7] = ["iiop", "uiop", "shmiop", "ssliop", "diop", "miop", "riop"];
