//! The content of a reference, in words and as JSON.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::time::Duration;

use chronorb_cdr::CdrError;
use chronorb_giop::codesets::UTF_8;
use chronorb_giop::{
    Component, GroupId, IiopProfile, Ior, PathProfile, TAG_CODE_SETS, TAG_DIOP, TAG_GROUP,
    TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TAG_SHMIOP, TAG_SSL_SEC_TRANS, TAG_UIOP, TAG_UIPMC,
    TaggedComponent, TaggedProfile, UipmcProfile, Version, decode_components,
};
use chronorb_rt::{Deadline, visible};
use chronorb_transport::host_addresses;
use serde::Serialize;

use super::components;

/// A reference in words.
#[derive(Debug, Serialize)]
pub(super) struct DecodedReference {
    /// The version of the JSON.
    version: u32,
    type_id: String,
    profiles: Vec<DecodedProfile>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct DecodedProfile {
    tag: u32,
    name: String,
    /// The version of the protocol.
    protocol_version: Option<String>,
    address: Option<String>,
    key: Option<String>,
    /// The octets of the key in hexadecimal digits.
    key_hex: Option<String>,
    components: Vec<DecodedComponent>,
    /// The error of a malformed profile.
    error: Option<String>,
    /// The content of a profile that is malformed or has an unknown tag.
    hex: Option<String>,
}

#[derive(Debug, Serialize)]
struct DecodedComponent {
    tag: u32,
    name: Option<&'static str>,
    /// The content in words.
    content: Option<String>,
    /// The error of a malformed component.
    error: Option<String>,
    /// The octets of the component.
    hex: String,
}

/// The parts of a profile, whatever its protocol.
struct ProfileBody {
    version: Version,
    /// The host or the path.
    host: String,
    port: Option<u16>,
    key: Vec<u8>,
    components: Vec<TaggedComponent>,
}

impl ProfileBody {
    /// # Errors
    /// The profile is malformed. `None` for an unknown tag.
    fn decode(profile: &TaggedProfile) -> Result<Option<Self>, CdrError> {
        let data = &profile.data;
        Ok(Some(match profile.tag {
            TAG_INTERNET_IOP | TAG_DIOP | TAO_SHMIOP => {
                let body = IiopProfile::decode(data)?;
                Self {
                    version: body.version,
                    host: body.host,
                    port: Some(body.port),
                    key: body.object_key,
                    components: body.components,
                }
            }
            TAG_UIOP | TAG_SHMIOP => {
                let body = PathProfile::decode(data)?;
                Self {
                    version: body.version,
                    host: body.path,
                    port: None,
                    key: body.object_key,
                    components: body.components,
                }
            }
            TAG_UIPMC => {
                let body = UipmcProfile::decode(data)?;
                Self {
                    version: body.version,
                    host: body.address,
                    port: Some(body.port),
                    key: Vec::new(),
                    components: body.components,
                }
            }
            TAG_MULTIPLE_COMPONENTS => Self {
                version: Version::V1_0,
                host: String::new(),
                port: None,
                key: Vec::new(),
                components: decode_components(data)?,
            },
            _ => return Ok(None),
        }))
    }

    /// The address as a URL has it; `None` where the profile has none.
    fn address(&self) -> Option<String> {
        let host = &self.host;
        match self.port {
            Some(port) if host.contains(':') => Some(format!("[{host}]:{port}")),
            Some(port) => Some(format!("{host}:{port}")),
            None => (!host.is_empty()).then(|| host.clone()),
        }
    }
}

impl DecodedReference {
    /// Decodes a reference, and looks up its host names, each within `resolve` if that is set.
    pub(super) fn new(ior: &Ior, resolve: Option<Duration>) -> Self {
        let mut this = Self {
            version: 1,
            type_id: ior.type_id.clone(),
            profiles: Vec::new(),
            warnings: Vec::new(),
        };
        if ior.is_nil() {
            this.warn("it is a nil reference: there is no object to call");
            return this;
        }
        if ior.type_id.is_empty() {
            this.warn("it names no interface, so clients have to ask the object (_is_a)");
        }
        let mut distinct = HashSet::new();
        let mut greatest = None;
        let has_common_code_sets = ior.profiles.iter().any(|profile| {
            profile.tag == TAG_MULTIPLE_COMPONENTS
                && decode_components(&profile.data)
                    .is_ok_and(|components| components.iter().any(is_code_sets))
        });
        for (number, profile) in (1..).zip(&ior.profiles) {
            if !distinct.insert(profile) {
                this.warn(format!("profile {number} is a duplicate of another"));
            }
            let body = ProfileBody::decode(profile);
            if let Ok(Some(body)) = &body {
                this.judge(number, body, resolve);
                let is_iiop = profile.tag == TAG_INTERNET_IOP && body.version > Version::V1_0;
                let has_code_sets =
                    has_common_code_sets || body.components.iter().any(is_code_sets);
                if is_iiop && !has_code_sets {
                    this.warn(format!(
                        "profile {number} names no code sets: strings are ISO 8859-1, and other \
                         ORBs than chronorb, which sends UTF-16, refuse wide characters"
                    ));
                }
                if !matches!(profile.tag, TAG_MULTIPLE_COMPONENTS | TAG_UIPMC) {
                    greatest = greatest.max(Some(body.version));
                }
            }
            let decoded = DecodedProfile::new(profile, body);
            if let Some(error) = &decoded.error {
                this.warn(format!("profile {number} is malformed: {error}"));
            }
            for component in &decoded.components {
                if let Some(error) = &component.error {
                    let name = component.name.unwrap_or("of an unknown tag");
                    this.warn(format!("profile {number}: component {name}: {error}"));
                }
            }
            this.profiles.push(decoded);
        }
        if greatest.is_none() {
            this.warn("no profile has an address that chronorb could call");
        }
        if greatest == Some(Version::V1_0) {
            this.warn(
                "only GIOP 1.0 is spoken: there are no wide characters, code sets and components",
            );
        }
        this
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Adds the warnings about a profile.
    fn judge(&mut self, number: usize, body: &ProfileBody, resolve: Option<Duration>) {
        let has = |tag| body.components.iter().any(|other| other.tag == tag);
        if let Some(port) = body.port {
            if port == 0 && !has(TAG_SSL_SEC_TRANS) {
                self.warn(format!("profile {number}: port 0 cannot be connected to"));
            }
            self.judge_host(number, &body.host, resolve);
        }
        for component in &body.components {
            match component.typed() {
                Ok(Component::AlternateIiopAddress { host, port }) => {
                    self.judge_host(number, &host, resolve);
                    if port == 0 {
                        self.warn(format!("profile {number}: {host} has port 0"));
                    }
                }
                Ok(Component::CodeSets(info)) => {
                    let sets = &info.for_char;
                    if sets.native != UTF_8 && !sets.conversion.contains(&UTF_8) {
                        self.warn(format!(
                            "profile {number}: strings are not UTF-8, so characters may be lost"
                        ));
                    }
                }
                _ => {}
            }
        }
    }

    fn judge_host(&mut self, number: usize, host: &str, resolve: Option<Duration>) {
        let problem = match host.parse::<IpAddr>() {
            Ok(address) => problem_of(address),
            Err(_) if host.eq_ignore_ascii_case("localhost") => Some(LOOPBACK),
            Err(_) => match resolve.map(|time| host_addresses(host, Deadline::after(time))) {
                None => None,
                Some(Ok(found)) => found.iter().find_map(|found| problem_of(found.ip())),
                Some(Err(error)) => {
                    self.warn(format!(
                        "profile {number}: the host name {host} does not resolve here: {error}"
                    ));
                    None
                }
            },
        };
        if let Some(problem) = problem {
            self.warn(format!("profile {number}: {host} {problem}"));
        }
    }
}

fn is_code_sets(component: &TaggedComponent) -> bool {
    component.tag == TAG_CODE_SETS
}

/// The reason why an address may not reach the server.
fn problem_of(address: IpAddr) -> Option<&'static str> {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if address.is_loopback() {
        Some(LOOPBACK)
    } else if address.is_unspecified() {
        Some("is no address: the server published the one that it listens at")
    } else if is_link_local {
        Some("is a link-local address: only hosts of the same link reach it")
    } else {
        None
    }
}

const LOOPBACK: &str = "is a loopback address: other machines cannot reach it";

impl DecodedProfile {
    fn new(profile: &TaggedProfile, body: Result<Option<ProfileBody>, CdrError>) -> Self {
        let mut this = Self {
            tag: profile.tag,
            name: profile_name(profile.tag),
            protocol_version: None,
            address: None,
            key: None,
            key_hex: None,
            components: Vec::new(),
            error: None,
            hex: None,
        };
        match body {
            Ok(Some(body)) => {
                this.address = body.address();
                if this.address.is_some() {
                    this.protocol_version = Some(body.version.to_string());
                }
                if !body.key.is_empty() {
                    this.key = Some(key_text(&body.key));
                    this.key_hex = Some(hex(&body.key));
                }
                let paths = body.port.is_none();
                let decoded = |component| DecodedComponent::new(component, paths);
                this.components = body.components.iter().map(decoded).collect();
                if profile.tag == TAG_UIPMC {
                    let group = body.components.iter().find(|other| other.tag == TAG_GROUP);
                    let group = group.and_then(|group| GroupId::decode(&group.data).ok());
                    this.key = group.as_ref().map(components::group);
                }
            }
            Ok(None) => this.hex = Some(hex(&profile.data)),
            Err(error) => {
                let mut error = error.to_string();
                if let Some(other) = with_other_byte_order(&profile.data)
                    && let Ok(Some(_)) = ProfileBody::decode(&TaggedProfile {
                        tag: profile.tag,
                        data: other,
                    })
                {
                    error.push_str("; the lengths fit the other byte order");
                }
                this.error = Some(error);
                this.hex = Some(hex(&profile.data));
            }
        }
        this
    }
}

impl DecodedComponent {
    fn new(component: &TaggedComponent, paths: bool) -> Self {
        let content = components::content(component, paths);
        Self {
            tag: component.tag,
            name: components::name(component.tag),
            error: content.as_ref().err().map(ToString::to_string),
            content: content.unwrap_or_default(),
            hex: hex(&component.data),
        }
    }
}

impl fmt::Display for DecodedReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.type_id.is_empty() {
            writeln!(f, "interface: not named")?;
        } else {
            writeln!(f, "interface: {}", visible(&self.type_id))?;
        }
        for (number, profile) in (1..).zip(&self.profiles) {
            write!(f, "profile {number}: {}", profile.name)?;
            if let Some(version) = &profile.protocol_version {
                write!(f, " {version}")?;
            }
            if let Some(address) = &profile.address {
                write!(f, " at {}", visible(address))?;
            }
            f.write_char('\n')?;
            if let Some(key) = &profile.key {
                writeln!(f, "  key: {}", visible(key))?;
            }
            for component in &profile.components {
                match (component.name, components::vendor(component.tag)) {
                    (Some(name), _) => write!(f, "  {name}: ")?,
                    (None, Some(vendor)) => {
                        write!(f, "  component {:#010x} of {vendor}: ", component.tag)?;
                    }
                    (None, None) => write!(f, "  component {:#010x}: ", component.tag)?,
                }
                match (&component.content, &component.error) {
                    (Some(content), _) => writeln!(f, "{}", visible(content))?,
                    (None, Some(error)) => writeln!(f, "malformed ({error}): {}", component.hex)?,
                    (None, None) => writeln!(f, "{}", component.hex)?,
                }
            }
            match (&profile.hex, &profile.error) {
                (Some(hex), Some(error)) => writeln!(f, "  malformed ({error}): {hex}")?,
                (Some(hex), None) => writeln!(f, "  content: {hex}")?,
                (None, _) => {}
            }
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {}", visible(warning))?;
        }
        Ok(())
    }
}

/// Returns the name of a profile's protocol.
pub(super) fn profile_name(tag: u32) -> String {
    match tag {
        TAG_INTERNET_IOP => "IIOP",
        TAG_MULTIPLE_COMPONENTS => "MULTIPLE_COMPONENTS",
        2 => "SCCP_IOP",
        TAG_UIPMC => "UIPMC (MIOP)",
        TAG_UIOP => "UIOP",
        TAO_SHMIOP => "TAO's SHMIOP",
        TAG_DIOP => "DIOP",
        0x5441_4f05 => "COIOP",
        0x5441_4f0e => "SCIOP",
        0x4f43_4902 => "HTIOP",
        TAG_SHMIOP => "SHMIOP",
        // CORBA 2.2 had no tag for it, and several products chose this one.
        0x14 => "IIOP over SSL of CORBA 2.2 products",
        0xbadf_aeca => "ORBit's local protocol",
        other => {
            return match components::vendor(other) {
                Some(vendor) => format!("unknown protocol {other:#010x} of {vendor}"),
                None => format!("unknown protocol {other:#010x}"),
            };
        }
    }
    .to_owned()
}

/// Returns an object key as text if it is one, and otherwise its octets. Beside those stands what
/// is known of the key: its content, if it is one of this ORB, else the ORB that makes such keys,
/// and the text in it.
pub(super) fn key_text(key: &[u8]) -> String {
    let is_text = |octet: &u8| octet.is_ascii_graphic() || *octet == b' ';
    if !key.is_empty() && key.iter().all(is_text) {
        return format!("{:?}", String::from_utf8_lossy(key));
    }
    let mut text = format!("{} octets {}", key.len(), hex(key));
    if let Some(content) = chronorb_orb::poa::describe_object_key(key) {
        let _ = write!(text, " (chronorb: {content})");
        return text;
    }
    let known = match key {
        [0x14, 0x01, 0x0f, ..] => " (TAO)",
        [0xfe, ..] => " (omniORB, transient)",
        [0xaf, 0xab, 0xca | 0xcb, ..] => " (Sun's ORB for Java)",
        [0xab, 0xac, 0xab, b'1', ..] => " (ORBacus)",
        [b'B', b'E', b'A', ..] | [0, b'B', b'E', b'A', ..] => " (WebLogic)",
        [b':', b'\\' | b'>', ..] => " (Orbix)",
        _ => "",
    };
    text.push_str(known);
    let runs = key.split(|octet| !is_text(octet));
    if runs.map(<[u8]>::len).max() >= Some(LEAST_TEXT) {
        let shown = key.iter().map(|octet| {
            if is_text(octet) {
                char::from(*octet)
            } else {
                '.'
            }
        });
        let _ = write!(text, " {:?}", shown.collect::<String>());
    }
    text
}

/// The least number of characters in a row that are shown as the text in a key.
const LEAST_TEXT: usize = 4;

/// Returns an encapsulation with the other byte order in its first octet.
pub(super) fn with_other_byte_order(data: &[u8]) -> Option<Vec<u8>> {
    let (first, rest) = data.split_first()?;
    Some([&[first ^ 1], rest].concat())
}

pub(super) fn hex(octets: &[u8]) -> String {
    let mut text = String::with_capacity(2 * octets.len());
    for octet in octets {
        // A string takes every text.
        let _ = write!(text, "{octet:02x}");
    }
    text
}

/// TAO's protocol for shared memory, whose profile has the form of IIOP's.
const TAO_SHMIOP: u32 = 0x5441_4f02;
