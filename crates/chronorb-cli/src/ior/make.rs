//! `chronorb ior make`: a reference from addresses and a key.

use std::fmt::Write as _;
use std::time::Duration;

use chronorb_giop::codesets::CodeSetComponentInfo;
use chronorb_giop::{
    Component, IiopProfile, Ior, Policies, PolicyValue, PriorityModelValue, TAG_INTERNET_IOP,
    Version,
};
use chronorb_orb::OrbConfig;

use super::arguments::{MakeArguments, PriorityModelName};
use super::{IorError, print};
use crate::client::Client;

/// Prints the reference.
pub(super) fn run(arguments: &MakeArguments, config: OrbConfig) -> Result<(), IorError> {
    // No connection is made.
    let client = Client::new(config, Duration::from_secs(1))?;
    let addresses = arguments.addresses.iter().map(|address| complete(address));
    let addresses = addresses.collect::<Vec<_>>().join(",");
    let key = match (&arguments.key, &arguments.key_hex) {
        (Some(text), _) => text.as_bytes(),
        (None, Some(octets)) => &octets.0,
        (None, None) => &[],
    };
    let mut url = format!("corbaloc:{addresses}/");
    for octet in key {
        let _ = write!(url, "%{octet:02x}");
    }
    let mut ior = client.object(&url)?.ior().clone();
    ior.type_id.clone_from(&arguments.type_id);
    add_components(arguments, &mut ior)?;
    Ok(print(&format!("{ior}\n"))?)
}

/// Adds what an address of `corbaloc:` leaves out: IIOP, and its greatest version.
fn complete(address: &str) -> String {
    let (protocol, rest) = match address.split_once(':') {
        Some((protocol, rest)) if protocol.is_empty() || is_protocol(protocol, rest) => {
            (protocol, rest)
        }
        _ => ("", address),
    };
    if rest.contains('@') {
        format!("{protocol}:{rest}")
    } else {
        format!("{protocol}:1.2@{rest}")
    }
}

/// Whether a word before a colon is a protocol, and not a host before its port.
fn is_protocol(word: &str, rest: &str) -> bool {
    let is_port = !rest.is_empty() && rest.bytes().all(|octet| octet.is_ascii_digit());
    !is_port && word.bytes().all(|octet| octet.is_ascii_alphanumeric())
}

/// Adds the components that the command line asks for to the profiles of IIOP.
fn add_components(arguments: &MakeArguments, ior: &mut Ior) -> Result<(), IorError> {
    let mut components = Vec::new();
    if arguments.code_sets {
        components.push(Component::CodeSets(CodeSetComponentInfo::ours()).tagged()?);
    }
    if let (Some(model), Some(priority)) = (arguments.priority_model, arguments.priority) {
        let value = PriorityModelValue {
            model: match model {
                PriorityModelName::ClientPropagated => 0,
                PriorityModelName::ServerDeclared => 1,
            },
            server_priority: priority,
        };
        let policies = Policies(vec![PolicyValue::priority_model(value)?]);
        components.push(Component::Policies(policies).tagged()?);
    }
    if components.is_empty() {
        return Ok(());
    }
    for profile in &mut ior.profiles {
        if profile.tag != TAG_INTERNET_IOP {
            continue;
        }
        let mut body = IiopProfile::decode(&profile.data)?;
        if body.version > Version::V1_0 {
            body.components.extend(components.iter().cloned());
            profile.data = body.encode()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        for (given, completed) in [
            ("host", ":1.2@host"),
            ("host:2810", ":1.2@host:2810"),
            (":host:2810", ":1.2@host:2810"),
            ("1.1@host:2810", ":1.1@host:2810"),
            ("iiop:host:2810", "iiop:1.2@host:2810"),
            ("iiop:1.1@host", "iiop:1.1@host"),
            ("[::1]:2810", ":1.2@[::1]:2810"),
            ("uiop:/run/radar|", "uiop:1.2@/run/radar|"),
        ] {
            assert_eq!(complete(given), completed, "{given}");
        }
    }
}
