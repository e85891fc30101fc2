//! Object references as people write them: `IOR:`, `corbaloc:`, `corbaname:`
//! and `file:`. CORBA 3.3 part 2, clause 7.6.10.

use crate::name_text::{TextComponent, TextComponents};
use crate::{Ior, IorError, Version, minor};

/// The port of an address that does not name one.
pub const DEFAULT_PORT: u16 = 2809;

/// The object that a `corbaname:` without a key means.
pub const NAME_SERVICE: &str = "NameService";

/// An object's location, parsed from a URL.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ObjectUrl {
    /// `IOR:…`: the reference itself.
    Ior(Ior),
    /// `corbaloc::host:port/key`: where to ask, and by which key.
    Corbaloc {
        /// The addresses to try, in this order; at least one.
        addresses: Vec<CorbalocAddress>,
        /// The object key.
        key: Vec<u8>,
    },
    /// `corbaloc:rir:/key`: an initial reference of this ORB.
    CorbalocRir {
        /// The name of the reference; empty means [`NAME_SERVICE`].
        key: Vec<u8>,
    },
    /// `corbaname:…#name`: an object in a naming service.
    Corbaname {
        /// The addresses of the naming service; none if it is an initial reference of this ORB.
        addresses: Vec<CorbalocAddress>,
        /// The object key of the naming context.
        key: Vec<u8>,
        /// The name of the object there; empty means the context itself.
        name: Vec<NameComponent>,
    },
    /// `file://path`: a file that holds one of the others.
    File(String),
}

/// An address in a `corbaloc:` or `corbaname:`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CorbalocAddress {
    /// The protocol, in lower case; `iiop` by default. The ORB knows the supported ones.
    pub protocol: String,
    /// The greatest version of the protocol that may be used; 1.0 by default.
    pub version: Version,
    /// The protocol and its endpoint.
    pub place: CorbalocPlace,
}

/// The protocol and endpoint of an address in a `corbaloc:`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum CorbalocPlace {
    /// A host.
    Host {
        /// A name or an address; IPv6 addresses without their brackets.
        host: String,
        /// The port; [`DEFAULT_PORT`] by default.
        port: u16,
    },
    /// A path, as in the protocols `uiop` and `shmiop`. It ends at a `|`.
    Path(String),
}

/// A component of a name in a naming service.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct NameComponent {
    /// The name proper.
    pub id: String,
    /// The kind of the name; often empty.
    pub kind: String,
}

/// The reason why a string is not an object URL. Each is a `BAD_PARAM` with the minor code of
/// [`minor`](Self::minor).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// There is no scheme, or none that is known. Minor OMG|7.
    #[error("the scheme is none of IOR, corbaloc, corbaname and file")]
    Scheme,
    /// An address does not start with the name of a protocol and a `:`. Minor OMG|8.
    #[error("address {0:?} does not start with \":\", \"rir:\" or a protocol as \"iiop:\"")]
    Protocol(String),
    /// An address has a version that is not of the form `1.2@`. Minor OMG|8.
    #[error("the version of address {0:?} is malformed or not supported")]
    BadVersion(String),
    /// An address has no host, or a malformed one. Minor OMG|8.
    #[error("the host of address {0:?} is missing or malformed")]
    Host(String),
    /// The port of an address is not a number from 1 to 65535. Minor OMG|8.
    #[error("the port of address {0:?} is not a number from 1 to 65535")]
    Port(String),
    /// There are more addresses than a reference may have [profiles](Ior::MAX_PROFILES). Minor
    /// OMG|8.
    #[error("there are {0} addresses, and {max} may be", max = Ior::MAX_PROFILES)]
    TooManyAddresses(usize),
    /// `rir:` is combined with other addresses. Minor OMG|8.
    #[error("rir: cannot stand beside other addresses")]
    MixedRir,
    /// There is no `/` and key behind the addresses. Minor OMG|9.
    #[error("there is no \"/\" and object key behind the addresses")]
    NoKey,
    /// A group is not of the form `1.0-domain-number`. Minor OMG|9.
    #[error("group {0:?} is not of the form 1.0-domain-number or 1.0-domain-number-version")]
    Group(String),
    /// A `%` is not followed by two hexadecimal digits. Minor OMG|9.
    #[error("a \"%\" is not followed by two hexadecimal digits")]
    Escape,
    /// The name of a `corbaname:` is malformed. Minor OMG|9.
    #[error("the name behind \"#\" is malformed")]
    Name,
    /// `file:` is not followed by `//` and an absolute path. Minor OMG|9.
    #[error("a file URL is file:// and an absolute path")]
    Path,
    /// The reference is malformed. Minor OMG|10.
    #[error(transparent)]
    Ior(#[from] IorError),
}

impl UrlError {
    /// The minor code of the `BAD_PARAM` that this is.
    pub const fn minor(&self) -> u32 {
        match self {
            Self::Scheme => minor::BAD_SCHEME,
            Self::Protocol(_)
            | Self::BadVersion(_)
            | Self::Host(_)
            | Self::Port(_)
            | Self::TooManyAddresses(_)
            | Self::MixedRir => minor::BAD_ADDRESS,
            Self::NoKey | Self::Group(_) | Self::Escape | Self::Name | Self::Path => {
                minor::BAD_SCHEME_SPECIFIC
            }
            Self::Ior(_) => minor::STRING_TO_OBJECT,
        }
    }
}

impl ObjectUrl {
    /// Reads a string. White space around it is left out; the case of its
    /// scheme does not matter.
    ///
    /// # Errors
    /// See [`UrlError`].
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once(':').ok_or(UrlError::Scheme)?;
        match scheme.to_ascii_lowercase().as_str() {
            "ior" => Ok(Self::Ior(text.parse()?)),
            "corbaloc" => {
                let (addresses, key) = split_key(rest).ok_or(UrlError::NoKey)?;
                let key = unescape(key)?;
                Ok(match parse_addresses(addresses)? {
                    Some(addresses) => Self::Corbaloc { addresses, key },
                    None => Self::CorbalocRir { key },
                })
            }
            "corbaname" => parse_corbaname(rest),
            "file" => match rest.strip_prefix("//") {
                Some(path) if path.starts_with('/') => {
                    let path = String::from_utf8(unescape(path)?).map_err(|_| UrlError::Path)?;
                    Ok(Self::File(path))
                }
                _ => Err(UrlError::Path),
            },
            _ => Err(UrlError::Scheme),
        }
    }
}

fn parse_corbaname(rest: &str) -> Result<ObjectUrl, UrlError> {
    let (object, name) = rest.split_once('#').unwrap_or((rest, ""));
    let (addresses, key) = split_key(object).unwrap_or((object, ""));
    let key = match unescape(key)? {
        key if key.is_empty() => NAME_SERVICE.into(),
        key => key,
    };
    let name = String::from_utf8(unescape(name)?).map_err(|_| UrlError::Name)?;
    Ok(ObjectUrl::Corbaname {
        addresses: parse_addresses(addresses)?.unwrap_or_default(),
        key,
        name: parse_name(&name)?,
    })
}

/// Splits addresses from the key: at the first `/` that does not belong to a path, which ends at a
/// `|`.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let mut start = 0;
    loop {
        let slash = start + text[start..].find('/')?;
        let bar = text[slash..]
            .find('|')
            .filter(|_| ends_in_protocol(&text[..slash]));
        match bar {
            Some(bar) => start = slash + bar + 1,
            None => return Some((&text[..slash], &text[slash + 1..])),
        }
    }
}

/// Whether a path may follow, because the text is a protocol, perhaps with a version.
fn ends_in_protocol(text: &str) -> bool {
    let address = text.rsplit(',').next().unwrap_or_default();
    let protocol = match address.strip_suffix('@') {
        Some(versioned) => versioned.split_once(':').map(|(protocol, _)| protocol),
        None => address.strip_suffix(':'),
    };
    protocol.is_some_and(|protocol| !protocol.is_empty() && !protocol.eq_ignore_ascii_case("rir"))
}

/// Reads a list of addresses; `None` is `rir:`.
fn parse_addresses(list: &str) -> Result<Option<Vec<CorbalocAddress>>, UrlError> {
    if list.eq_ignore_ascii_case("rir:") {
        return Ok(None);
    }
    let number = list.split(',').count();
    if number > Ior::MAX_PROFILES {
        return Err(UrlError::TooManyAddresses(number));
    }
    list.split(',')
        .map(parse_address)
        .collect::<Result<_, _>>()
        .map(Some)
}

fn parse_address(text: &str) -> Result<CorbalocAddress, UrlError> {
    let fail = |error: fn(String) -> UrlError| error(text.to_owned());
    let (protocol, rest) = text
        .split_once(':')
        .ok_or_else(|| fail(UrlError::Protocol))?;
    let protocol = match protocol.to_ascii_lowercase() {
        protocol if protocol.is_empty() => "iiop".to_owned(),
        protocol if protocol == "rir" => return Err(UrlError::MixedRir),
        protocol if protocol.bytes().all(|c| c.is_ascii_alphanumeric()) => protocol,
        _ => return Err(fail(UrlError::Protocol)),
    };
    let is_path = rest.ends_with('|');
    let (version, address) = match rest.split_once('@') {
        // It belongs to the path.
        Some((before, _)) if is_path && (before.is_empty() || before.contains('/')) => {
            (Version::V1_0, rest)
        }
        Some((version, address)) => (
            parse_version(version).ok_or_else(|| fail(UrlError::BadVersion))?,
            address,
        ),
        None => (Version::V1_0, rest),
    };
    let place = match address.strip_suffix('|') {
        Some(path) => CorbalocPlace::Path(path.to_owned()),
        None => parse_host(text, address)?,
    };
    Ok(CorbalocAddress {
        protocol,
        version,
        place,
    })
}

fn parse_host(text: &str, address: &str) -> Result<CorbalocPlace, UrlError> {
    let fail = |error: fn(String) -> UrlError| error(text.to_owned());
    let (host, port) = match address.strip_prefix('[') {
        Some(bracketed) => bracketed
            .split_once(']')
            .ok_or_else(|| fail(UrlError::Host))?,
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(fail(UrlError::Host));
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => DEFAULT_PORT,
        Some(digits) if is_number(digits) => digits.parse().map_err(|_| fail(UrlError::Port))?,
        _ => return Err(fail(UrlError::Port)),
    };
    if port == 0 {
        return Err(fail(UrlError::Port));
    }
    Ok(CorbalocPlace::Host {
        host: host.to_owned(),
        port,
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

fn parse_version(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    // The parser of numbers takes a sign.
    if !is_number(major) || !is_number(minor) {
        return None;
    }
    let version = Version::new(major.parse().ok()?, minor.parse().ok()?);
    (version.major == 1).then_some(version)
}

fn unescape(text: &str) -> Result<Vec<u8>, UrlError> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(c) = rest.next() {
        octets.push(if c == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err(UrlError::Escape);
            };
            (high << 4 | low) as u8
        } else {
            c
        });
    }
    Ok(octets)
}

/// Reads a name as the naming service writes it; none is the context itself.
fn parse_name(text: &str) -> Result<Vec<NameComponent>, UrlError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let component = |component: Result<TextComponent<'_>, _>| {
        let (id, kind) = component.map_err(|_| UrlError::Name)?.to_strings();
        Ok(NameComponent { id, kind })
    };
    TextComponents::new(text).map(component).collect()
}
