//! References to groups of objects, as the Unreliable Multicast specification (MIOP) has them.

use chronorb_cdr::CdrError;

use crate::encapsulation::{self, Reader};
use crate::url::{CorbalocPlace, ObjectUrl, UrlError};
use crate::{IiopProfile, Ior, TaggedComponent, TaggedProfile, Target, Version};

/// The tag of profiles of MIOP, GIOP over multicast: [`UipmcProfile`].
pub const TAG_UIPMC: u32 = 3;
/// The component with the identity of the group: [`GroupId`].
pub const TAG_GROUP: u32 = 39;
/// The component with the unicast address of the group: an [`IiopProfile`].
pub const TAG_GROUP_IIOP: u32 = 40;

/// The identity of a group: `PortableGroup::TagGroupTaggedComponent`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct GroupId {
    /// The version of this component, 1.0.
    pub version: Version,
    /// The authority that assigns the numbers.
    pub domain: String,
    /// The number.
    pub number: u64,
    /// The version of the group's reference; 0 if it has none.
    pub reference_version: u32,
}

/// The multicast profile of a group: `MIOP::UIPMC_ProfileBody`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct UipmcProfile {
    /// The version of MIOP, 1.0.
    pub version: Version,
    /// The multicast address.
    pub address: String,
    /// The UDP port; the IDL calls it a `short`, but means its bits.
    pub port: u16,
    /// Tagged components, among them the group's identity.
    pub components: Vec<TaggedComponent>,
}

impl GroupId {
    /// The content of the component [`TAG_GROUP`].
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if the domain cannot be written.
    pub fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            e.write_u8(self.version.major)?;
            e.write_u8(self.version.minor)?;
            e.write_str(&self.domain)?;
            e.write_u64(self.number)?;
            e.write_u32(self.reference_version)
        })
    }

    /// Reads the content of such a component.
    ///
    /// # Errors
    /// Those of malformed content; [`CdrError::InvalidDiscriminator`] if its major version is not
    /// 1.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        Ok(Self {
            version: read_version(&mut r)?,
            domain: r.read_string()?,
            number: r.read_u64()?,
            reference_version: r.read_u32()?,
        })
    }

    /// Whether both references name the same group, perhaps in different versions of it.
    pub fn is_same_group(&self, other: &Self) -> bool {
        self.number == other.number && self.domain == other.domain
    }

    fn tagged(&self) -> Result<TaggedComponent, CdrError> {
        Ok(TaggedComponent {
            tag: TAG_GROUP,
            data: self.encode()?,
        })
    }
}

/// The group that a request is for, where it lies in its message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TargetGroup<'a> {
    domain: &'a [u8],
    number: u64,
}

impl<'a> TargetGroup<'a> {
    /// The group of a request's target; `None` where that is none. A group is named by its profile,
    /// or by the content of its component in the place of an object key.
    pub fn of(target: &Target<'a>) -> Option<Self> {
        let profile = match *target {
            Target::Key(key) => return Self::of_component(key),
            Target::Profile(profile) => profile,
            Target::Reference { index, ior } => ior.profiles.get(index as usize)?.as_view(),
        };
        if profile.tag != TAG_UIPMC {
            return None;
        }
        let mut r = Reader::new(profile.data).ok()?;
        read_version(&mut r).ok()?;
        r.read_octet_seq().ok()?;
        r.read_u16().ok()?;
        let components = r.read_u32().ok()?;
        for _ in 0..components {
            let tag = r.read_u32().ok()?;
            let data = r.read_octet_seq().ok()?;
            if tag == TAG_GROUP {
                return Self::of_component(data);
            }
        }
        None
    }

    /// Whether it is this group.
    pub fn is(&self, group: &GroupId) -> bool {
        let domain = self.domain.strip_suffix(b"\0").unwrap_or(self.domain);
        let domain = domain.iter().copied().map(char::from);
        self.number == group.number && domain.eq(group.domain.chars())
    }

    fn of_component(data: &'a [u8]) -> Option<Self> {
        let mut r = Reader::new(data).ok()?;
        read_version(&mut r).ok()?;
        let domain = r.read_octet_seq().ok()?;
        let number = r.read_u64().ok()?;
        r.read_u32().ok()?;
        Some(Self { domain, number })
    }
}

impl UipmcProfile {
    /// The content of the profile.
    ///
    /// # Errors
    /// [`CdrError::UnmappableChar`], [`CdrError::EmbeddedNul`] if the address cannot be written.
    pub fn encode(&self) -> Result<Vec<u8>, CdrError> {
        encapsulation::build(|e| {
            e.write_u8(self.version.major)?;
            e.write_u8(self.version.minor)?;
            e.write_str(&self.address)?;
            e.write_u16(self.port)?;
            e.write_len(self.components.len())?;
            self.components.iter().try_for_each(|component| {
                e.write_u32(component.tag)?;
                e.write_octet_seq(&component.data)
            })
        })
    }

    /// The content of the profile, with its tag.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn tagged(&self) -> Result<TaggedProfile, CdrError> {
        Ok(TaggedProfile {
            tag: TAG_UIPMC,
            data: self.encode()?,
        })
    }

    /// Reads the content of a profile of tag [`TAG_UIPMC`].
    ///
    /// # Errors
    /// Those of malformed content; [`CdrError::InvalidDiscriminator`] if its major version is not
    /// 1.
    pub fn decode(data: &[u8]) -> Result<Self, CdrError> {
        let mut r = Reader::new(data)?;
        Ok(Self {
            version: read_version(&mut r)?,
            address: r.read_string()?,
            port: r.read_u16()?,
            components: r.read_seq(|r| {
                Ok(TaggedComponent {
                    tag: r.read_u32()?,
                    data: r.read_octet_seq()?.to_vec(),
                })
            })?,
        })
    }

    /// Returns the identity of the group.
    ///
    /// # Errors
    /// [`CdrError::BadReference`] if no component names it, and those of decoding the component.
    pub fn group(&self) -> Result<GroupId, CdrError> {
        let component = self.components.iter().find(|c| c.tag == TAG_GROUP);
        GroupId::decode(&component.ok_or(CdrError::BadReference)?.data)
    }

    /// The profile by which the group is reached one to one, if it has one that can be read. JacORB
    /// gives it the tag that it would have as a profile.
    pub fn iiop(&self) -> Option<IiopProfile> {
        let mut components = self.components.iter();
        components.find_map(|component| match component.tag {
            TAG_GROUP_IIOP | crate::TAG_INTERNET_IOP => IiopProfile::decode(&component.data).ok(),
            _ => None,
        })
    }
}

/// Reads the URL of a group, as `corbaloc:miop:1.0@1.0-Radar-17/239.255.1.1:5000`; `None` where the
/// text is none.
///
/// ```text
/// corbaloc:miop:[M.m@]V.v-domain-number[-reference version]/address:port[;iiop:[V.v@]host:port/key]
/// ```
/// `M.m` and `V.v` are the versions of MIOP and of the component; there is no other one than 1.0. A
/// domain has no `-` or `/` in it. By IIOP is reached what answers for the group.
///
/// # Errors
/// [`UrlError`].
pub fn parse_group_url(text: &str) -> Result<Option<Ior>, UrlError> {
    let split = text.trim().split_at_checked(PREFIX.len());
    let Some((_, rest)) = split.filter(|(prefix, _)| prefix.eq_ignore_ascii_case(PREFIX)) else {
        return Ok(None);
    };
    let (group, iiop) = match rest.split_once(';') {
        Some((group, iiop)) => (group, Some(iiop)),
        None => (rest, None),
    };
    let (version, group) = match group.split_once('@') {
        Some((version, group)) => (parse_version(version), group),
        None => (Some(Version::V1_0), group),
    };
    let version = version.ok_or_else(|| UrlError::BadVersion(rest.to_owned()))?;
    let (group, place) = group.split_once('/').ok_or(UrlError::NoKey)?;
    let group = parse_group(group).ok_or_else(|| UrlError::Group(group.to_owned()))?;
    let (address, port) = place
        .rsplit_once(':')
        .ok_or_else(|| UrlError::Port(place.to_owned()))?;
    let address = match address.strip_prefix('[') {
        Some(bracketed) => bracketed.strip_suffix(']'),
        None => Some(address),
    };
    let address = address.filter(|address| !address.is_empty());
    let address = address.ok_or_else(|| UrlError::Host(place.to_owned()))?;
    let is_number = !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit());
    let port = is_number.then(|| port.parse().ok()).flatten();
    let port = port.filter(|port| *port != 0);
    let port = port.ok_or_else(|| UrlError::Port(place.to_owned()))?;
    let mut components = vec![group.tagged().map_err(malformed)?];
    if let Some(iiop) = iiop {
        components.push(parse_iiop(iiop)?);
    }
    let profile = UipmcProfile {
        version,
        address: address.to_owned(),
        port,
        components,
    };
    Ok(Some(Ior {
        type_id: String::new(),
        profiles: vec![profile.tagged().map_err(malformed)?],
    }))
}

fn parse_group(text: &str) -> Option<GroupId> {
    let mut parts = text.split('-');
    let version = parse_version(parts.next()?)?;
    let domain = parts.next().filter(|domain| !domain.is_empty())?;
    let number = parts.next()?.parse().ok()?;
    let reference_version = parts
        .next()
        .map_or(Some(0), |version| version.parse().ok())?;
    parts.next().is_none().then(|| GroupId {
        version,
        domain: domain.to_owned(),
        number,
        reference_version,
    })
}

fn parse_version(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    let version = Version::new(major.parse().ok()?, minor.parse().ok()?);
    (version.major == 1).then_some(version)
}

/// Parses the part of a URL with the IIOP address of the group, and returns its component.
fn parse_iiop(text: &str) -> Result<TaggedComponent, UrlError> {
    let not_iiop = || UrlError::Protocol(text.to_owned());
    let ObjectUrl::Corbaloc { addresses, key } = ObjectUrl::parse(&format!("corbaloc:{text}"))?
    else {
        return Err(not_iiop());
    };
    let [address] = &addresses[..] else {
        return Err(not_iiop());
    };
    let CorbalocPlace::Host { host, port } = &address.place else {
        return Err(not_iiop());
    };
    if address.protocol != "iiop" {
        return Err(not_iiop());
    }
    let profile = IiopProfile {
        version: address.version,
        host: host.clone(),
        port: *port,
        object_key: key,
        components: Vec::new(),
    };
    Ok(TaggedComponent {
        tag: TAG_GROUP_IIOP,
        data: profile.encode().map_err(malformed)?,
    })
}

fn read_version(r: &mut Reader<'_>) -> Result<Version, CdrError> {
    let version = Version::new(r.read_u8()?, r.read_u8()?);
    match version.major {
        1 => Ok(version),
        _ => Err(CdrError::InvalidDiscriminator),
    }
}

fn malformed(error: CdrError) -> UrlError {
    UrlError::Ior(error.into())
}

const PREFIX: &str = "corbaloc:miop:";
