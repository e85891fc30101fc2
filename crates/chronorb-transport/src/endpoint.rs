//! Endpoints as people write them: `iiop://host:port/option=value`.

use std::fmt;

use thiserror::Error;

use crate::Address;

/// An address to listen at, as given to `-ORBListenEndpoints`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endpoint {
    /// The scheme, which chooses the transport.
    pub scheme: String,
    /// The greatest GIOP version that references offer for the endpoint; `None` for 1.2.
    pub version: Option<(u8, u8)>,
    /// The address to bind to. An empty host is every interface, port 0 any free one, and an empty
    /// path one that the transport chooses.
    pub address: Address,
    /// The options in their order, each once.
    pub options: Vec<(String, String)>,
}

impl Endpoint {
    /// The value of an option, if it is given.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter();
        let (_, value) = options.find(|(given, _)| given == name)?;
        Some(value)
    }

    /// Whether it is at the same address of the same transport, whatever its options.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.address == other.address
    }

    /// The most urgent priority that clients may propagate by the endpoint, if there is a bound.
    pub fn priority_ceiling(&self) -> Option<i16> {
        let ceiling = self.option(CEILING)?.parse().ok();
        ceiling.filter(|ceiling| *ceiling >= 0)
    }

    /// Checks that only the given options are used, besides those of every endpoint (`ceiling`).
    ///
    /// # Errors
    /// [`EndpointError`] names the first other one, or a value that cannot be used.
    pub fn check_options(&self, known: &[&str]) -> Result<(), EndpointError> {
        if let Some(text) = self.option(CEILING)
            && self.priority_ceiling().is_none()
        {
            let problem = format!("the ceiling {text:?} is not a number from 0 to 32767");
            return Err(self.error(problem));
        }
        let mut names = self.options.iter().map(|(name, _)| name);
        match names.find(|name| *name != CEILING && !known.contains(&name.as_str())) {
            Some(name) => Err(self.error(format!("the option {name:?} is not known"))),
            None => Ok(()),
        }
    }

    /// The error of this endpoint that has this problem.
    pub fn error(&self, problem: impl Into<String>) -> EndpointError {
        EndpointError {
            text: self.to_string(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some((major, minor)) = self.version {
            write!(f, "{major}.{minor}@")?;
        }
        write!(f, "{}", self.address)?;
        let separator = match self.address {
            Address::Host { .. } => '/',
            Address::Path(_) => '|',
        };
        for (index, (name, value)) in self.options.iter().enumerate() {
            let before = if index == 0 { separator } else { '&' };
            write!(f, "{before}{name}={value}")?;
        }
        Ok(())
    }
}

/// A text that is not a list of endpoints.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("endpoint {text:?}: {problem}; expected {EXPECTED}")]
pub struct EndpointError {
    /// The endpoint as given.
    pub text: String,
    /// The reason why it is refused.
    pub problem: String,
}

/// Reads endpoints, several separated by `;`:
/// `scheme://[V.v@]host[:port][,…][/option=value[&…]]`, or
/// `scheme://[V.v@]path[,…][|option=value[&…]]` of transports that listen at paths, which are
/// those whose schemes are `uiop` and `shmiop`, and those where there is a `|`.
///
/// An address without a host means every interface, one without a port any free port; IPv6
/// addresses are in brackets. The options depend on the transport, which
/// [checks](crate::Transport::check) them later.
///
/// # Errors
/// [`EndpointError`] names the endpoint and the reason.
pub fn parse_endpoints(text: &str) -> Result<Vec<Endpoint>, EndpointError> {
    let mut endpoints = Vec::new();
    for one in text
        .split(';')
        .map(str::trim_ascii)
        .filter(|t| !t.is_empty())
    {
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
    let scheme = scheme.to_ascii_lowercase();
    let has_paths = SCHEMES_OF_PATHS.contains(&scheme.as_str()) || rest.contains('|');
    let separator = if has_paths { '|' } else { '/' };
    let (addresses, options) = rest.split_once(separator).unwrap_or((rest, ""));
    let options = parse_options(options)?;
    for address in addresses.split(',') {
        let (version, address) = match address.split_once('@') {
            // It belongs to the path.
            Some((before, _)) if has_paths && (before.is_empty() || before.contains('/')) => {
                (None, address)
            }
            Some((version, address)) => (Some(parse_version(version)?), address),
            None => (None, address),
        };
        endpoints.push(Endpoint {
            scheme: scheme.clone(),
            version,
            address: if has_paths {
                Address::Path(address.to_owned())
            } else {
                split_address(address)?
            },
            options: options.clone(),
        });
    }
    Ok(())
}

fn parse_options(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut options: Vec<(String, String)> = Vec::new();
    for option in text.split('&').filter(|o| !o.is_empty()) {
        let (name, value) = option
            .split_once('=')
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| format!("the option {option:?} is not of the form name=value"))?;
        if options.iter().any(|(given, _)| given == name) {
            return Err(format!("the option {name:?} is given twice"));
        }
        options.push((name.to_owned(), value.to_owned()));
    }
    Ok(options)
}

fn parse_version(text: &str) -> Result<(u8, u8), String> {
    match text {
        "1.0" => Ok((1, 0)),
        "1.1" => Ok((1, 1)),
        "1.2" => Ok((1, 2)),
        other => Err(format!("there is no GIOP version {other:?}")),
    }
}

pub(crate) fn split_address(text: &str) -> Result<Address, String> {
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
            .ok()
            // The parser of numbers takes a sign.
            .filter(|_| !port.starts_with('+'))
            .ok_or_else(|| format!("the port {port:?} is not a number from 0 to 65535"))?,
    };
    Ok(Address::host(host, port))
}

/// The option for the most urgent priority that clients may propagate by an endpoint.
const CEILING: &str = "ceiling";
const SCHEMES_OF_PATHS: [&str; 2] = ["uiop", "shmiop"];

const EXPECTED: &str = "scheme://[version@]host[:port][,…][/option=value&…] or scheme://[version@]path[|option=value&…], for example iiop://:2809 or uiop:///run/radar";

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
        assert_eq!(endpoint.address, Address::host("", 0));
        assert_eq!(endpoint.options, []);
        assert_eq!(one("uiop://").address, Address::Path(String::new()));
    }

    #[test]
    fn everything_can_be_given() {
        let text = "iiop://1.1@[::1]:2809/hostname_in_ior=radar.example&portspan=4";
        let endpoint = one(text);
        assert_eq!(endpoint.version, Some((1, 1)));
        assert_eq!(endpoint.address, Address::host("::1", 2809));
        assert_eq!(endpoint.option("hostname_in_ior"), Some("radar.example"));
        assert_eq!(endpoint.option("portspan"), Some("4"));
        assert_eq!(endpoint.to_string(), text);
    }

    #[test]
    fn paths_end_at_a_bar() {
        let endpoint = one("UIOP:///run/a/radar|mode=0660");
        assert_eq!(endpoint.scheme, "uiop");
        assert_eq!(endpoint.address, Address::Path("/run/a/radar".to_owned()));
        assert_eq!(endpoint.option("mode"), Some("0660"));
        assert_eq!(endpoint.to_string(), "uiop:///run/a/radar|mode=0660");
        assert_eq!(one("own://a place|").address.as_path(), Some("a place"));
    }

    #[test]
    fn a_path_may_have_what_looks_like_a_version() {
        for path in ["@radar", "/run/a@b", "@radar@2", ""] {
            let endpoint = one(&format!("uiop://{path}"));
            assert_eq!(endpoint.address.as_path(), Some(path));
            assert_eq!(endpoint.version, None);
            let endpoint = one(&format!("uiop://1.1@{path}"));
            assert_eq!(endpoint.address.as_path(), Some(path));
            assert_eq!(endpoint.version, Some((1, 1)));
        }
    }

    #[test]
    fn several_addresses_and_several_endpoints_make_one_list() {
        let all = parse_endpoints("iiop://a:1,b:2;iiop://c").expect("correct endpoints");
        let addresses: Vec<_> = all.iter().map(|e| e.address.to_string()).collect();
        assert_eq!(addresses, ["a:1", "b:2", "c:0"]);
    }

    #[test]
    fn wrong_ones_are_refused_by_name() {
        for (text, problem) in [
            ("", "empty"),
            ("localhost:2809", "://"),
            ("iiop://h:99999", "port"),
            ("iiop://h:+80", "port"),
            ("iiop://[::1", "bracket"),
            ("iiop://h/colour", "colour"),
            ("iiop://h/portspan=", "portspan"),
            ("iiop://h/portspan=1&portspan=2", "twice"),
            ("iiop://3.0@h", "version"),
        ] {
            let error = parse_endpoints(text).expect_err(text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn options_that_a_transport_does_not_know_are_named() {
        let endpoint = one("iiop://h/portspan=2&colour=red");
        assert_eq!(endpoint.check_options(&["portspan", "colour"]), Ok(()));
        let error = endpoint.check_options(&["portspan"]);
        let error = error.expect_err("it is not known").to_string();
        assert!(error.contains("colour"), "{error}");
    }
}
