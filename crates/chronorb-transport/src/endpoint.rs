//! Endpoints as people write them: `iiop://host:port/option=value`.

use thiserror::Error;

/// Where to listen, as given to `-ORBListenEndpoints`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endpoint {
    /// The scheme, which chooses the transport.
    pub scheme: String,
    /// The greatest GIOP version to offer there, `1.2` where none is given.
    pub version: Option<(u8, u8)>,
    /// The host to bind to; empty for every interface.
    pub host: String,
    /// The port to bind to; 0 for any free one.
    pub port: u16,
    /// The host name that object references publish, instead of the bound one.
    pub hostname_in_ior: Option<String>,
    /// How many ports to try from `port` on.
    pub port_span: u16,
}

/// A text that is not a list of endpoints.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("endpoint {text:?}: {problem}; expected {EXPECTED}")]
pub struct EndpointError {
    /// The endpoint as given.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Reads endpoints `scheme://[V.v@]host[:port][,…][/option=value[&…]]`, several separated by `;`.
///
/// An address without a host stands for every interface, one without a port
/// for any free port; IPv6 addresses stand in brackets. Options are
/// `hostname_in_ior` (what object references publish) and `portspan` (how
/// many ports to try).
///
/// # Errors
/// [`EndpointError`] names the endpoint and what is wrong with it.
pub fn parse_endpoints(text: &str) -> Result<Vec<Endpoint>, EndpointError> {
    let mut endpoints = Vec::new();
    for one in text.split(';').map(str::trim).filter(|t| !t.is_empty()) {
        parse_one(one, &mut endpoints).map_err(|problem| EndpointError {
            text: one.to_owned(),
            problem,
        })?;
    }
    if endpoints.is_empty() {
        return Err(EndpointError {
            text: text.to_owned(),
            problem: "it is empty".to_owned(),
        });
    }
    Ok(endpoints)
}

fn parse_one(text: &str, endpoints: &mut Vec<Endpoint>) -> Result<(), String> {
    let (scheme, rest) = text
        .split_once("://")
        .ok_or_else(|| "there is no `://`".to_owned())?;
    let (addresses, options) = rest.split_once('/').unwrap_or((rest, ""));
    let (hostname_in_ior, port_span) = parse_options(options)?;
    for address in addresses.split(',') {
        let (version, address) = match address.split_once('@') {
            Some((version, address)) => (Some(parse_version(version)?), address),
            None => (None, address),
        };
        let (host, port) = split_address(address)?;
        endpoints.push(Endpoint {
            scheme: scheme.to_ascii_lowercase(),
            version,
            host,
            port,
            hostname_in_ior: hostname_in_ior.clone(),
            port_span,
        });
    }
    Ok(())
}

fn parse_options(text: &str) -> Result<(Option<String>, u16), String> {
    let mut hostname_in_ior = None;
    let mut port_span = 1;
    for option in text.split('&').filter(|o| !o.is_empty()) {
        match option.split_once('=') {
            Some(("hostname_in_ior", value)) if !value.is_empty() => {
                hostname_in_ior = Some(value.to_owned());
            }
            Some(("portspan", value)) => {
                port_span = value.parse().ok().filter(|span| *span > 0).ok_or_else(|| {
                    format!("the portspan {value:?} is not a number from 1 to 65535")
                })?;
            }
            _ => return Err(format!("the option {option:?} is not known")),
        }
    }
    Ok((hostname_in_ior, port_span))
}

fn parse_version(text: &str) -> Result<(u8, u8), String> {
    match text {
        "1.0" => Ok((1, 0)),
        "1.1" => Ok((1, 1)),
        "1.2" => Ok((1, 2)),
        other => Err(format!("there is no GIOP version {other:?}")),
    }
}

fn split_address(text: &str) -> Result<(String, u16), String> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or_else(|| "the bracket of the IPv6 address is not closed".to_owned())?;
        match rest.strip_prefix(':') {
            Some(port) => (host, port),
            None if rest.is_empty() => (host, ""),
            None => return Err(format!("{rest:?} follows the IPv6 address")),
        }
    } else {
        text.split_once(':').unwrap_or((text, ""))
    };
    let port = match port {
        "" => 0,
        port => port
            .parse()
            .map_err(|_| format!("the port {port:?} is not a number from 0 to 65535"))?,
    };
    Ok((host.to_owned(), port))
}

const EXPECTED: &str = "scheme://[version@]host[:port][,…][/hostname_in_ior=name&portspan=n], for example iiop://:2809";

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Endpoint {
        let mut all = parse_endpoints(text).expect("a correct endpoint");
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    #[test]
    fn everything_but_the_scheme_can_be_left_out() {
        let endpoint = one("iiop://");
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("", 0));
        assert_eq!(endpoint.port_span, 1);
    }

    #[test]
    fn everything_can_be_given() {
        let endpoint = one("iiop://1.1@[::1]:2809/hostname_in_ior=radar.example&portspan=4");
        assert_eq!(endpoint.version, Some((1, 1)));
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("::1", 2809));
        assert_eq!(endpoint.hostname_in_ior.as_deref(), Some("radar.example"));
        assert_eq!(endpoint.port_span, 4);
    }

    #[test]
    fn several_addresses_and_several_endpoints_make_one_list() {
        let all = parse_endpoints("iiop://a:1,b:2;iiop://c").expect("correct endpoints");
        let hosts: Vec<_> = all.iter().map(|e| (e.host.as_str(), e.port)).collect();
        assert_eq!(hosts, [("a", 1), ("b", 2), ("c", 0)]);
    }

    #[test]
    fn wrong_ones_are_refused_by_name() {
        for (text, problem) in [
            ("", "empty"),
            ("localhost:2809", "://"),
            ("iiop://h:99999", "port"),
            ("iiop://[::1", "bracket"),
            ("iiop://h/colour=red", "colour"),
            ("iiop://h/portspan=0", "portspan"),
            ("iiop://3.0@h", "version"),
        ] {
            let error = parse_endpoints(text).expect_err(text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
