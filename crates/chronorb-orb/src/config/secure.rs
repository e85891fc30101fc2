//! The secure profile: the settings with which only proved peers reach an ORB.

use chronorb_transport::Endpoint;

use super::{ConfigError, OrbConfig, SecurityProfile};
use crate::access::{TransportRule, TransportRules};
use crate::protocol::Registry;
use crate::rtcorba::Priority;

/// Checks a configuration according to its profile, and returns it with what it leaves open.
///
/// # Errors
/// The first setting that contradicts the profile.
pub(super) fn completed(mut config: OrbConfig) -> Result<OrbConfig, ConfigError> {
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
    let has_ssliop = config.protocols.iter().any(|scheme| scheme == "ssliop");
    let is_mutual = built!(
        ("ssliop"),
        config.ssl.verify == chronorb_transport::tls::Verify::Mutual,
        true
    );
    if has_ssliop && !is_mutual {
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
pub(super) fn check(config: &OrbConfig, registry: &Registry) -> Result<(), ConfigError> {
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
    let has_tls = built!(
        ("ssliop"),
        config.ssl != chronorb_transport::tls::TlsSettings::default(),
        {
            let _ = config;
            false
        }
    );
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
