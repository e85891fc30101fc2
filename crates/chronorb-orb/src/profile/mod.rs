//! The addresses and policies that a reference contains.

mod effective;

use std::cmp::Reverse;
use std::net::IpAddr;

use chronorb_cdr::{CharSet, TextForm};
use chronorb_giop::codesets::{CodeSetComponentInfo, CodeSetContext, text_form};
use chronorb_giop::{
    Component, Ior, Policies, PriorityModelValue, SystemException, TAG_CODE_SETS, TAG_INTERNET_IOP,
    TAG_MULTIPLE_COMPONENTS, TAG_POLICIES, TAG_TAO_ENDPOINTS, TaggedComponent, TaggedProfile,
    Version, decode_components,
};
use chronorb_transport::Address;

use crate::config::OrbConfig;
use crate::lanes::PriorityModel;
use crate::protocol::{AddressForm, PluggableProtocol, ProfileParts, Registry, Source, Way};
use crate::rtcorba::{Priority, PriorityBands, Protocols};

pub(crate) use effective::{Effective, POLICIES_CONFLICT, POLICY_UNREADABLE, effective_policy};

/// The parts of an ORB by which it reads profiles.
#[derive(Clone, Copy)]
pub(crate) struct ProfileReader<'o> {
    pub(crate) config: &'o OrbConfig,
    pub(crate) protocols: &'o Registry,
}

/// The usable profiles of a reference, read once.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// The greatest GIOP version that both sides support.
    pub(crate) version: Version,
    pub(crate) key: Box<[u8]>,
    /// The addresses for any request, in order of preference.
    pub(crate) ways: Vec<Way>,
    /// The addresses for requests of one priority, or of any priority where none is named.
    pub(crate) lanes: Vec<(Option<Priority>, Way)>,
    pub(crate) priority_model: Option<(PriorityModel, Priority)>,
    pub(crate) bands: Option<PriorityBands>,
    /// Protocols that the server asks its clients to use.
    pub(crate) protocols: Option<Protocols>,
    /// A policy of the kinds above is present but cannot be decoded.
    pub(crate) has_unreadable_policy: bool,
    pub(crate) code_sets: Option<CodeSetComponentInfo>,
    /// The index of the profile in the reference, for requests that name the target by it.
    pub(crate) index: usize,
}

impl Profile {
    /// Decodes all profiles of the ORB's protocols that can be decoded. The profile of the protocol
    /// that the ORB prefers is used, of several the one of the greatest version, with the addresses
    /// of others that are [alike](Self::is_like).
    pub(crate) fn from_ior(ior: &Ior, source: Source, orb: ProfileReader<'_>) -> Option<Self> {
        let profiles = ior.profiles.iter().enumerate();
        let mut all: Vec<_> = profiles
            .filter_map(|(index, profile)| Self::read(profile, (index, source), orb))
            .collect();
        add_common_code_sets(&mut all, ior);
        let rank = |profile: &Self| {
            let of_protocol = profile.ways.first().map(|way| way.rank);
            (of_protocol, Reverse(profile.version))
        };
        all.sort_by_key(rank);
        let mut all = all.into_iter();
        let mut first = all.next()?;
        for other in all {
            if first.is_like(&other) {
                first.ways.extend(other.ways);
                first.lanes.extend(other.lanes);
            }
        }
        first.ways.truncate(MAX_WAYS + 1);
        first.lanes.truncate(MAX_LANE_WAYS + 1);
        first.sort();
        Some(first)
    }

    /// Whether requests at the addresses of another profile are the same as at those of this one.
    /// Each profile stands for itself (CORBA 3.0.3, 13.6.2), so properties of two are not mixed.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.key == other.key
            && self.version == other.version
            && self.code_sets == other.code_sets
            && self.priority_model == other.priority_model
            && self.bands == other.bands
            && self.protocols == other.protocols
            && self.has_unreadable_policy == other.has_unreadable_policy
    }

    /// Whether the reference names more addresses than a call may try. One more than the limit is
    /// kept to show this.
    pub(crate) fn has_too_many_ways(&self) -> bool {
        self.ways.len() > MAX_WAYS || self.lanes.len() > MAX_LANE_WAYS
    }

    /// Whether an address contains a host name, which has to be looked up.
    pub(crate) fn has_names(&self) -> bool {
        let is_name = |way: &Way| {
            let host = way.address.as_host();
            host.is_some_and(|(host, _)| host.parse::<IpAddr>().is_err())
        };
        self.ways.iter().any(is_name) || self.lanes.iter().any(|(_, way)| is_name(way))
    }

    /// The form of the client's text, and the service context that announces it to the server.
    ///
    /// # Errors
    /// `CODESET_INCOMPATIBLE` (OMG minor 1) where there is no common code set.
    pub(crate) fn text(
        &self,
        client: &CodeSetComponentInfo,
    ) -> Result<(TextForm, Option<[u8; 12]>), SystemException> {
        let server = self
            .code_sets
            .as_ref()
            .filter(|_| self.version > Version::V1_0);
        let Some(server) = server else {
            return Ok((self.version.text(CharSet::Latin1), None));
        };
        let text = text_form(client, Some(server), self.version)?;
        Ok((text, Some(CodeSetContext::of(text).encode())))
    }

    /// Decodes one profile; `None` where the ORB does not have its protocol or it names another
    /// machine.
    fn read(
        profile: &TaggedProfile,
        (index, source): (usize, Source),
        orb: ProfileReader<'_>,
    ) -> Option<Self> {
        let registry = orb.protocols;
        let protocol = registry.of_tag(profile.tag);
        let form = registry.form_of(profile.tag)?;
        let parts = form.decode(&profile.data).ok()?;
        if parts.version.major != 1 {
            return None;
        }
        // A profile that names no machine, as TAO's, may be of another one. Access rules of the
        // client decide, if there are any.
        let trusted = if orb.config.judges_addresses() {
            Source::Application
        } else {
            source
        };
        if let Some(place) = protocol.and_then(PluggableProtocol::place)
            && !(place.is_here)(&parts.components, trusted)
        {
            return None;
        }
        let this = Self::of_parts((profile.tag, form), parts, (index, source), orb);
        (!this.ways.is_empty()).then_some(this)
    }

    fn of_parts(
        (tag, form): (u32, AddressForm),
        parts: ProfileParts,
        (index, source): (usize, Source),
        orb: ProfileReader<'_>,
    ) -> Self {
        let host = parts.address.as_host().map(|(host, _)| host.to_owned());
        let mut this = Self {
            version: parts.version.min(orb.config.max_giop_version),
            key: parts.object_key.into_boxed_slice(),
            ways: Vec::new(),
            lanes: Vec::new(),
            priority_model: None,
            bands: None,
            protocols: None,
            has_unreadable_policy: false,
            code_sets: None,
            index,
        };
        this.add(orb, tag, &parts.address, None);
        for component in &parts.components {
            if component.tag == TAG_TAO_ENDPOINTS {
                let lanes = form.decode_lanes(component).unwrap_or_default().into_iter();
                // TAO writes -1 for any priority.
                for (address, priority) in lanes {
                    this.add(orb, tag, &address, Some(Priority::new(priority)));
                }
                continue;
            }
            // A component that cannot be decoded is ignored, except for policies.
            match component.typed() {
                Ok(Component::AlternateIiopAddress { host, port }) => {
                    this.add(orb, tag, &Address::host(host, port), None);
                }
                Ok(Component::CodeSets(info)) => this.code_sets = Some(info),
                Ok(Component::Policies(policies)) => this.set_policies(&policies),
                Err(_) if component.tag == TAG_POLICIES => this.has_unreadable_policy = true,
                _ => {}
            }
        }
        #[cfg(feature = "ssliop")]
        if tag == TAG_INTERNET_IOP && crate::protocol::requires_protection(&parts.components) {
            this.ways.clear();
            this.lanes.clear();
        }
        if let Some(host) = host
            && tag == TAG_INTERNET_IOP
        {
            // A component with a file name does not prove that the file is on this machine. Access
            // rules of the client decide, if there are any.
            let files = source == Source::Application || orb.config.judges_addresses();
            this.add_components(orb.protocols, &parts.components, &host, files);
        }
        this
    }

    fn set_policies(&mut self, policies: &Policies) {
        let (model, bands) = (policies.priority_model(), policies.priority_bands());
        let protocols = policies.client_protocols();
        let said = [model.is_some(), bands.is_some(), protocols.is_some()];
        self.priority_model = model.and_then(priority_model);
        let bands = bands.and_then(Result::ok);
        self.bands = bands.and_then(|bands| PriorityBands::from_values(&bands));
        let protocols = protocols.and_then(Result::ok);
        self.protocols = protocols.and_then(|list| Protocols::from_values(&list));
        let read = [
            self.priority_model.is_some(),
            self.bands.is_some(),
            self.protocols.is_some(),
        ];
        self.has_unreadable_policy |= said != read;
    }

    /// Adds an address of a profile with this tag: for any request, or for requests of a lane.
    fn add(
        &mut self,
        orb: ProfileReader<'_>,
        tag: u32,
        address: &Address,
        lane: Option<Option<Priority>>,
    ) {
        // A server that listens only by other protocols writes port 0.
        if address.as_host().is_some_and(|(_, port)| port == 0) {
            return;
        }
        if self.has_too_many_ways() {
            return;
        }
        for caller in orb.protocols.callers(tag) {
            let way = orb.protocols.way(caller, address.clone());
            match lane {
                Some(priority) => self.lanes.push((priority, way)),
                None => self.ways.push(way),
            }
        }
    }

    /// Adds the addresses of protocols that are named in components of IIOP profiles; file names
    /// only if `files` permits them.
    fn add_components(
        &mut self,
        registry: &Registry,
        components: &[TaggedComponent],
        host: &str,
        files: bool,
    ) {
        for other in registry.iter() {
            let Some(told) = other.components() else {
                continue;
            };
            let way = |address| registry.way(other, address);
            let mut addresses = (told.read)(components, host);
            addresses.retain(|address| files || address.as_path().is_none());
            let addresses = addresses.into_iter();
            self.ways.extend(addresses.map(way).take(MAX_WAYS + 1));
            let is_told = |component: &&TaggedComponent| Some(component.tag) == told.lanes;
            for component in components.iter().filter(is_told) {
                let lanes = AddressForm::HOST_AND_PORT.decode_lanes(component);
                let lanes = lanes.unwrap_or_default().into_iter();
                self.lanes.extend(
                    lanes.map(|(address, priority)| (Priority::new(priority), way(address))),
                );
            }
        }
        self.sort();
    }

    /// Sorts the addresses by preference; those of one protocol keep their order.
    fn sort(&mut self) {
        self.ways.sort_by_key(|way| way.rank);
        self.lanes.sort_by_key(|(_, way)| way.rank);
    }
}

/// Adds the code sets in a profile of components to the profiles that have none of their own.
fn add_common_code_sets(profiles: &mut [Profile], ior: &Ior) {
    let mut lists = ior.profiles.iter();
    let Some(list) = lists.find(|profile| profile.tag == TAG_MULTIPLE_COMPONENTS) else {
        return;
    };
    let components = decode_components(&list.data).unwrap_or_default();
    let common = components
        .iter()
        .find(|component| component.tag == TAG_CODE_SETS);
    let common = common.and_then(|component| CodeSetComponentInfo::decode(&component.data).ok());
    for profile in profiles {
        if profile.code_sets.is_none() {
            profile.code_sets.clone_from(&common);
        }
    }
}

/// The greatest number of addresses that a call tries, one after the other.
pub(crate) const MAX_WAYS: usize = 64;
/// The greatest number of lane addresses in a reference, for all priorities together.
const MAX_LANE_WAYS: usize = 4096;

fn priority_model(value: PriorityModelValue) -> Option<(PriorityModel, Priority)> {
    let model = match value.model {
        0 => PriorityModel::ClientPropagated,
        1 => PriorityModel::ServerDeclared,
        _ => return None,
    };
    Some((model, Priority::new(value.server_priority)?))
}

#[cfg(all(test, feature = "uiop", feature = "shmiop"))]
mod tests {
    use chronorb_giop::{IiopProfile, TAG_SHMIOP, TAG_UIOP};

    use super::*;
    use crate::protocol::Plain;
    use crate::{Orb, OrbConfig};

    #[test]
    fn addresses_have_the_order_of_the_protocols_whichever_profile_names_them() {
        let config = OrbConfig {
            protocols: ["uiop", "shmiop", "iiop"].map(str::to_owned).to_vec(),
            ..OrbConfig::default()
        };
        let orb = Orb::with_config(config).expect("there are such protocols");
        let any = orb.string_to_object("corbaloc::127.0.0.1/any");
        let any = any.expect("it reads");
        let core = any.core();
        let file = Address::Path("/run/radar".to_owned());
        let protocol = |tag| core.protocols.of_tag(tag).expect("it was named");
        // A profile of IIOP that also names a socket file, like those of omniORB.
        let told = protocol(TAG_UIOP).components().expect("omniORB has them");
        let profile = IiopProfile {
            version: Version::V1_2,
            host: "127.0.0.1".to_owned(),
            port: 2809,
            object_key: b"key".to_vec(),
            components: (told.write)(std::slice::from_ref(&file), Plain::Open).expect("it fits"),
        };
        let of_iiop = TaggedProfile {
            tag: TAG_INTERNET_IOP,
            data: profile.encode().expect("it fits"),
        };
        let of_memory = protocol(TAG_SHMIOP).profile(Version::V1_2, file, b"key");
        let ior = Ior {
            type_id: String::new(),
            profiles: vec![of_iiop, of_memory.expect("it fits")],
        };
        let profile = Profile::from_ior(&ior, Source::Application, core.profile_reader())
            .expect("it can be reached");
        let tags: Vec<_> = profile.ways.iter().map(|way| way.protocol).collect();
        assert_eq!(tags, [TAG_UIOP, TAG_SHMIOP, TAG_INTERNET_IOP]);
        // Neither the profile nor the component proves that it names this machine.
        let profile = Profile::from_ior(&ior, Source::Message(None), core.profile_reader())
            .expect("it can be reached");
        let tags: Vec<_> = profile.ways.iter().map(|way| way.protocol).collect();
        assert_eq!(tags, [TAG_INTERNET_IOP]);
        orb.shutdown(false).expect("it serves nothing");
    }
}
