//! The components of profiles, in words.

use std::fmt::Write as _;

use chronorb_cdr::{Arena, CdrError, Decoder};
use chronorb_giop::codesets::{CodeSetComponent, CodeSetComponentInfo};
use chronorb_giop::{
    Component, GroupId, IiopProfile, OmniOrbUnixAddress, Place, Policies, PolicyValue,
    ProtocolValue, TAG_GROUP, TAG_GROUP_IIOP, TAG_OMNIORB_UNIX_TRANS, TAG_PLACE, TAG_SSLIOP_LANES,
    TAG_TAO_ENDPOINTS, TaggedComponent, TaoEndpoint, TaoPathEndpoint,
};

/// Returns the name of a component; `None` for an unknown tag.
pub(super) fn name(tag: u32) -> Option<&'static str> {
    let (_, name) = NAMES.iter().find(|(known, _)| *known == tag)?;
    Some(name)
}

/// Returns the content of a component in words; `None` where only its octets are known.
///
/// `paths` is whether the profile's addresses are paths.
///
/// # Errors
/// The component is malformed.
pub(super) fn content(
    component: &TaggedComponent,
    paths: bool,
) -> Result<Option<String>, CdrError> {
    let data = &component.data;
    if component.tag == TAG_TAO_ENDPOINTS && paths {
        let endpoints = TaoPathEndpoint::decode(data)?.into_iter();
        let lane = |endpoint: TaoPathEndpoint| at_priority(&endpoint.path, endpoint.priority);
        return Ok(Some(endpoints.map(lane).collect::<Vec<_>>().join(", ")));
    }
    Ok(Some(
        match component.typed().map_err(|error| error.cause)? {
            Component::OrbType(orb) => orb_type(orb),
            Component::CodeSets(info) => code_sets(&info),
            Component::Policies(policies) => self::policies(&policies)?,
            Component::AlternateIiopAddress { host, port } => format!("{host}:{port}"),
            Component::SslSecTrans(ssl) => format!(
                "port {}, supports {}, requires {}",
                ssl.port,
                options(ssl.target_supports.0),
                options(ssl.target_requires.0)
            ),
            Component::TaoEndpoints(endpoints) => lanes(endpoints),
            _ => match component.tag {
                TAG_GROUP => group(&GroupId::decode(data)?),
                TAG_GROUP_IIOP => {
                    let profile = IiopProfile::decode(data)?;
                    format!("{}:{}", profile.host, profile.port)
                }
                TAG_PLACE => format!("the machine {}", Place::decode(data)?.0),
                TAG_OMNIORB_UNIX_TRANS => {
                    let address = OmniOrbUnixAddress::decode(data)?;
                    format!("{} on {}", address.path, address.host)
                }
                TAG_SSLIOP_LANES => lanes(TaoEndpoint::decode(data)?),
                tag => return other(tag, data),
            },
        },
    ))
}

/// Reads components that the ORB only passes on.
fn other(tag: u32, data: &[u8]) -> Result<Option<String>, CdrError> {
    match tag {
        // The data is the key itself, and no encapsulation.
        COMPLETE_OBJECT_KEY => return Ok(Some(super::decode::key_text(data))),
        // Its data is empty, whatever ORBs write there.
        NULL_TAG => return Ok(Some("no transport mechanism".to_owned())),
        _ => {}
    }
    let mut octets = data.to_vec();
    let arena = Arena::new(data.len());
    let mut d = Decoder::of_encapsulation(&mut octets, &arena)?;
    Ok(Some(match tag {
        ENDPOINT_ID_POSITION => format!("octets {} to {} of the key", d.read_u16()?, d.read_u16()?),
        LOCATION_POLICY => format!("policy {}", d.read_u8()?),
        ASSOCIATION_OPTIONS => {
            let (supports, requires) = (d.read_u16()?, d.read_u16()?);
            format!(
                "supports {}, requires {}",
                options(supports),
                options(requires)
            )
        }
        JAVA_CODEBASE => d.read_str()?.to_owned(),
        OTS_POLICY => match d.read_u16()? {
            1 => "REQUIRES: calls need a transaction".to_owned(),
            2 => "FORBIDS: calls must have no transaction".to_owned(),
            3 => "ADAPTS: calls may have a transaction".to_owned(),
            other => format!("policy {other}"),
        },
        INV_POLICY => match d.read_u16()? {
            0 => "EITHER: shared or unshared transactions".to_owned(),
            1 => "SHARED transactions".to_owned(),
            2 => "UNSHARED transactions".to_owned(),
            other => format!("policy {other}"),
        },
        FT_GROUP => {
            let (major, minor) = (d.read_u8()?, d.read_u8()?);
            let domain = d.read_str()?;
            let (number, version) = (d.read_u64()?, d.read_u32()?);
            format!(
                "object group {number} of the domain {domain:?}, version {version}, \
                 fault tolerance {major}.{minor}"
            )
        }
        FT_PRIMARY => either(d.read_bool()?, "the primary member", "a backup"),
        FT_HEARTBEAT_ENABLED => either(d.read_bool()?, "heartbeats", "no heartbeats"),
        CSI_SEC_MECH_LIST => csi(&mut d)?,
        TLS_SEC_TRANS => tls(&mut d)?,
        RMI_CUSTOM_MAX_STREAM_FORMAT => format!("stream format {}", d.read_u8()?),
        _ => return Ok(None),
    }))
}

fn either(is: bool, yes: &str, no: &str) -> String {
    if is { yes } else { no }.to_owned()
}

fn orb_type(orb: u32) -> String {
    let known = match orb {
        0x4a41_4300 => Some("JacORB"),
        0x4f42_5400 => Some("ORBit"),
        0x5355_4e00..=0x5355_4eff => Some("Sun's ORB for Java"),
        0x4942_4d00..=0x4942_4dff => Some("IBM's ORB"),
        0x4954_5f30 => Some("Orbix 3"),
        0x4954_5f41 => Some("Orbix 6"),
        _ => vendor(orb),
    };
    match known {
        Some(known) => format!("{known} ({orb:#010x})"),
        None => format!("{orb:#010x}"),
    }
}

/// Returns the ORB, or the vendor of ORBs, whose tags have the same first three octets.
pub(super) fn vendor(tag: u32) -> Option<&'static str> {
    let known = VENDORS.iter().find(|(first, _)| *first == tag >> 8);
    known.map(|(_, name)| *name)
}

fn code_sets(info: &CodeSetComponentInfo) -> String {
    let one = |sets: &CodeSetComponent| {
        let mut text = code_set(sets.native);
        for (index, other) in sets.conversion.iter().enumerate() {
            let _ = write!(
                text,
                "{}{}",
                if index == 0 { ", converts to " } else { ", " },
                code_set(*other)
            );
        }
        text
    };
    format!(
        "char {}; wchar {}",
        one(&info.for_char),
        one(&info.for_wchar)
    )
}

fn code_set(id: u32) -> String {
    match id {
        0 => "none",
        0x0001_0001 => "ISO 8859-1",
        0x0001_0020 => "ISO 646 (ASCII)",
        0x0001_0100 => "UCS-2",
        0x0001_0104 => "UCS-4",
        0x0001_0109 => "UTF-16",
        0x0501_0001 => "UTF-8",
        other => return format!("{other:#010x}"),
    }
    .to_owned()
}

fn at_priority(address: &str, priority: i16) -> String {
    if priority < 0 {
        format!("{address} for any priority")
    } else {
        format!("{address} for priority {priority}")
    }
}

fn lanes(endpoints: Vec<TaoEndpoint>) -> String {
    let lane = |endpoint: &TaoEndpoint| {
        let address = format!("{}:{}", endpoint.host, endpoint.port);
        at_priority(&address, endpoint.priority)
    };
    endpoints.iter().map(lane).collect::<Vec<_>>().join(", ")
}

pub(super) fn group(group: &GroupId) -> String {
    format!(
        "group {} of the domain {:?}, version {}",
        group.number, group.domain, group.reference_version
    )
}

fn policies(policies: &Policies) -> Result<String, CdrError> {
    let mut words = Vec::new();
    for policy in &policies.0 {
        // The readers take the first policy of their type.
        let one = Policies(vec![policy.clone()]);
        words.push(if let Some(model) = one.priority_model() {
            let name = match model.model {
                0 => "CLIENT_PROPAGATED",
                _ => "SERVER_DECLARED",
            };
            format!("priority model {name}, priority {}", model.server_priority)
        } else if let Some(bands) = one.priority_bands() {
            let bands = bands?.into_iter();
            let bands = bands.map(|band| format!("{} to {}", band.low, band.high));
            format!("priority bands {}", bands.collect::<Vec<_>>().join(", "))
        } else if let Some(protocols) = one.client_protocols() {
            let protocols = protocols?.into_iter();
            let protocols = protocols.map(|protocol| match protocol {
                ProtocolValue::Iiop(_) => super::decode::profile_name(0),
                ProtocolValue::Other(tag) => super::decode::profile_name(tag),
            });
            format!("protocols {}", protocols.collect::<Vec<_>>().join(", "))
        } else {
            unknown_policy(policy)
        });
    }
    Ok(words.join("; "))
}

fn unknown_policy(policy: &PolicyValue) -> String {
    let name = match policy.policy_type {
        23 => "rebind",
        24 => "sync scope",
        25 => "request priority",
        27 => "request start time",
        28 => "request end time",
        29 => "reply start time",
        30 => "reply end time",
        31 => "relative request timeout",
        32 => "relative roundtrip timeout",
        33 => "routing",
        34 => "maximum of hops",
        35 => "queue order",
        37 => "bidirectional",
        41 => "thread pool",
        42 => "server protocol",
        44 => "private connection",
        64 => "compression enabled",
        65 => "list of compressors",
        _ => "policy",
    };
    format!(
        "{name} ({}) {}",
        policy.policy_type,
        super::decode::hex(&policy.data)
    )
}

/// Association options of the security service, by name.
fn options(bits: u16) -> String {
    let known = OPTIONS.iter().enumerate();
    let set = known.filter(|(bit, _)| bits & (1 << bit) != 0);
    let names: Vec<_> = set.map(|(_, name)| *name).collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(" ")
    }
}

fn tls(d: &mut Decoder<'_>) -> Result<String, CdrError> {
    let (supports, requires) = (d.read_u16()?, d.read_u16()?);
    let mut addresses = Vec::new();
    for _ in 0..d.read_len(8)? {
        let host = d.read_str()?;
        addresses.push(format!("{host}:{}", d.read_u16()?));
    }
    Ok(format!(
        "TLS at {}, supports {}, requires {}",
        addresses.join(", "),
        options(supports),
        options(requires)
    ))
}

/// Returns the name in an exported name of GSS-API (RFC 2743, 3.2): the token's identifier, the
/// mechanism with its length in two octets, and the name with its length in four.
fn exported_name(octets: &[u8]) -> Option<&str> {
    let rest = octets.strip_prefix(&[4, 1])?;
    let (length, rest) = rest.split_first_chunk()?;
    let rest = rest.get(usize::from(u16::from_be_bytes(*length))..)?;
    let (length, name) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let name = str::from_utf8(name).ok()?;
    (name.len() == length && !name.is_empty()).then_some(name)
}

/// `CSIIOP::CompoundSecMechList`.
fn csi(d: &mut Decoder<'_>) -> Result<String, CdrError> {
    let mut text = either(d.read_bool()?, "stateful", "stateless");
    for _ in 0..d.read_len(8)? {
        let _ = write!(text, "; requires {}", options(d.read_u16()?));
        let transport = TaggedComponent {
            tag: d.read_u32()?,
            data: d.read_octet_seq()?.to_vec(),
        };
        let shown = match transport.tag {
            TLS_SEC_TRANS | NULL_TAG => other(transport.tag, &transport.data)?,
            _ => None,
        };
        let _ = match shown {
            Some(shown) => write!(text, "; transport: {shown}"),
            None => write!(text, "; transport: tag {}", transport.tag),
        };
        let (supports, requires) = (d.read_u16()?, d.read_u16()?);
        let mechanism = d.read_octet_seq()?;
        let target = d.read_octet_seq()?;
        if supports != 0 {
            let mechanism = if mechanism.ends_with(GSSUP) {
                "user and password (GSSUP)".to_owned()
            } else {
                super::decode::hex(mechanism)
            };
            let _ = write!(
                text,
                "; authentication of clients by {mechanism}{}, target {}",
                if requires & CLIENT_TRUST != 0 {
                    ", required"
                } else {
                    ""
                },
                exported_name(target).map_or_else(
                    || super::decode::key_text(target),
                    |name| format!("{name:?}")
                )
            );
        }
        let (supports, _requires) = (d.read_u16()?, d.read_u16()?);
        for _ in 0..d.read_len(8)? {
            d.read_u32()?;
            d.read_octet_seq()?;
        }
        for _ in 0..d.read_len(4)? {
            d.read_octet_seq()?;
        }
        let identities = d.read_u32()?;
        if supports != 0 {
            let _ = write!(
                text,
                "; attributes: {}, identity types {identities:#x}",
                options(supports)
            );
        }
    }
    Ok(text)
}

/// The first three octets of tags by ORBs and vendors.
const VENDORS: [(u32, &str); 10] = [
    (0x43_524f, "chronorb"),
    (0x54_414f, "TAO"),
    (0x41_5454, "omniORB"),
    (0x4a_4143, "JacORB"),
    (0x4f_4254, "ORBit"),
    (0x53_554e, "Sun"),
    (0x49_424d, "IBM"),
    (0x49_545f, "Orbix"),
    (0x56_4953, "VisiBroker"),
    (0x42_4541, "WebLogic"),
];

const COMPLETE_OBJECT_KEY: u32 = 5;
const ENDPOINT_ID_POSITION: u32 = 6;
const LOCATION_POLICY: u32 = 12;
const ASSOCIATION_OPTIONS: u32 = 13;
const JAVA_CODEBASE: u32 = 25;
const FT_GROUP: u32 = 27;
const FT_PRIMARY: u32 = 28;
const FT_HEARTBEAT_ENABLED: u32 = 29;
const OTS_POLICY: u32 = 31;
const INV_POLICY: u32 = 32;
const CSI_SEC_MECH_LIST: u32 = 33;
const NULL_TAG: u32 = 34;
const TLS_SEC_TRANS: u32 = 36;
const RMI_CUSTOM_MAX_STREAM_FORMAT: u32 = 38;
/// EstablishTrustInClient.
const CLIENT_TRUST: u16 = 64;
/// The object identifier 2.23.130.1.1.1 without its tag and length.
const GSSUP: &[u8] = &[0x67, 0x81, 0x02, 0x01, 0x01, 0x01];

/// The association options, from bit 0 on.
const OPTIONS: [&str; 12] = [
    "NoProtection",
    "Integrity",
    "Confidentiality",
    "DetectReplay",
    "DetectMisordering",
    "EstablishTrustInTarget",
    "EstablishTrustInClient",
    "NoDelegation",
    "SimpleDelegation",
    "CompositeDelegation",
    "IdentityAssertion",
    "DelegationByClient",
];

/// The names of components: CORBA 3.3 part 2, clause 7.6, and those of ORBs.
const NAMES: &[(u32, &str)] = &[
    (0, "ORB_TYPE"),
    (1, "CODE_SETS"),
    (2, "POLICIES"),
    (3, "ALTERNATE_IIOP_ADDRESS"),
    (COMPLETE_OBJECT_KEY, "COMPLETE_OBJECT_KEY"),
    (ENDPOINT_ID_POSITION, "ENDPOINT_ID_POSITION"),
    (LOCATION_POLICY, "LOCATION_POLICY"),
    (ASSOCIATION_OPTIONS, "ASSOCIATION_OPTIONS"),
    (14, "SEC_NAME"),
    (15, "SPKM_1_SEC_MECH"),
    (16, "SPKM_2_SEC_MECH"),
    (17, "KERBEROS_V5_SEC_MECH"),
    (18, "CSI_ECMA_SECRET_SEC_MECH"),
    (19, "CSI_ECMA_HYBRID_SEC_MECH"),
    (20, "SSL_SEC_TRANS"),
    (21, "CSI_ECMA_PUBLIC_SEC_MECH"),
    (22, "GENERIC_SEC_MECH"),
    (23, "FIREWALL_TRANS"),
    (24, "SCCP_CONTACT_INFO"),
    (JAVA_CODEBASE, "JAVA_CODEBASE"),
    (26, "TRANSACTION_POLICY"),
    (FT_GROUP, "FT_GROUP"),
    (FT_PRIMARY, "FT_PRIMARY"),
    (FT_HEARTBEAT_ENABLED, "FT_HEARTBEAT_ENABLED"),
    (30, "MESSAGE_ROUTERS"),
    (OTS_POLICY, "OTS_POLICY"),
    (INV_POLICY, "INV_POLICY"),
    (CSI_SEC_MECH_LIST, "CSI_SEC_MECH_LIST"),
    (NULL_TAG, "NULL_TAG"),
    (35, "SECIOP_SEC_TRANS"),
    (TLS_SEC_TRANS, "TLS_SEC_TRANS"),
    (37, "ACTIVITY_POLICY"),
    (RMI_CUSTOM_MAX_STREAM_FORMAT, "RMI_CUSTOM_MAX_STREAM_FORMAT"),
    (TAG_GROUP, "GROUP"),
    (TAG_GROUP_IIOP, "GROUP_IIOP"),
    (100, "DCE_STRING_BINDING"),
    (101, "DCE_BINDING_NAME"),
    (102, "DCE_NO_PIPES"),
    (103, "DCE_SEC_MECH"),
    (123, "INET_SEC_TRANS"),
    (0x4154_5403, "omniORB's PERSISTENT_ID"),
    (0x4942_4d0a, "IBM's PARTNER_VERSION"),
    (0x5441_4f01, "TAO's SSL_ENDPOINTS"),
    (TAG_TAO_ENDPOINTS, "TAO's ENDPOINTS"),
    (TAG_OMNIORB_UNIX_TRANS, "omniORB's UNIX_TRANS"),
    (TAG_PLACE, "chronorb's PLACE"),
    (TAG_SSLIOP_LANES, "chronorb's SSLIOP_LANES"),
];
