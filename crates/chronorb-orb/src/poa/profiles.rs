//! The profiles of references: one for each protocol that the object is reached by.

use chronorb_giop::{
    Component, Policies, PolicyValue, SystemException, SystemExceptionKind, TAG_INTERNET_IOP,
    TaggedComponent, TaggedProfile, Version, minor,
};
use chronorb_transport::{Address, Endpoint};

use crate::core::Core;
use crate::lanes::{LaneHandle, PoolHandle, PublishedEndpoint};
use crate::protocol::{AddressForm, Plain, PluggableProtocol, ProfileParts};
use crate::rtcorba::Protocols;

/// The common content of the profiles of a reference.
pub(super) struct ProfileContents<'a> {
    pub(super) core: &'a Core,
    pub(super) pool: &'a PoolHandle,
    pub(super) key: &'a [u8],
    pub(super) policies: Vec<PolicyValue>,
    /// The endpoints that may be published; empty for all.
    pub(super) endpoints: &'a [Endpoint],
}

impl ProfileContents<'_> {
    /// The profiles of an object that is reached by this lane, in the order of the lane's
    /// endpoints, or of the protocols that are asked for, and by those only.
    pub(super) fn profiles(
        &self,
        lane: &LaneHandle,
        wanted: Option<&Protocols>,
    ) -> Result<Vec<TaggedProfile>, SystemException> {
        let wanted = wanted.or_else(|| self.core.rt.policies.server_protocols());
        let published: Vec<_> = self.published(lane).collect();
        let mut forms: Vec<(u32, AddressForm)> = Vec::new();
        for PublishedEndpoint { way, .. } in &published {
            let protocol = self.core.protocols.of_tag(way.protocol);
            let own = protocol.and_then(PluggableProtocol::profiles);
            // Protocols that are published by components have the profile of IIOP.
            let (tag, form) = match own {
                Some(form) => (way.protocol, form),
                None => (TAG_INTERNET_IOP, AddressForm::HOST_AND_PORT),
            };
            let is_wanted = wanted.is_none_or(|wanted| wanted.rank(way.protocol).is_some());
            if is_wanted && forms.iter().all(|(other, _)| *other != tag) {
                forms.push((tag, form));
            }
        }
        if let Some(wanted) = wanted {
            forms.sort_by_key(|(tag, _)| wanted.rank(*tag));
        }
        let mut profiles = Vec::new();
        for (tag, form) in forms {
            self.add_profiles(tag, form, (&published, wanted), &mut profiles)?;
        }
        if profiles.is_empty() {
            Err(NO_ENDPOINT_TO_TELL)
        } else {
            Ok(profiles)
        }
    }

    /// Returns the addresses of the lane that are published.
    fn published<'l>(&self, lane: &'l LaneHandle) -> impl Iterator<Item = &'l PublishedEndpoint> {
        let told = |asked: &Endpoint| {
            let mut endpoints = self.endpoints.iter();
            self.endpoints.is_empty() || endpoints.any(|told| told.is_same_place(asked))
        };
        lane.published.iter().filter(move |p| told(&p.endpoint))
    }

    /// Adds the profile of a protocol; one for each address if it has no alternate addresses.
    fn add_profiles(
        &self,
        tag: u32,
        form: AddressForm,
        (published, wanted): (&[&PublishedEndpoint], Option<&Protocols>),
        profiles: &mut Vec<TaggedProfile>,
    ) -> Result<(), SystemException> {
        let is_wanted = |tag| wanted.is_none_or(|wanted| wanted.rank(tag).is_some());
        let own = published
            .iter()
            .filter(|p| p.way.protocol == tag && is_wanted(tag));
        let own: Vec<_> = own.collect();
        let max_version = self.core.config.max_giop_version;
        let version = own.first().and_then(|first| first.version);
        let version = version.map_or(max_version, |v| v.min(max_version));
        let mut addresses: Vec<_> = own.iter().map(|p| p.way.address.clone()).collect();
        let mut components = Vec::new();
        if version > Version::V1_0 {
            let lanes = if is_wanted(tag) {
                self.lanes(tag)
            } else {
                Vec::new()
            };
            components = self.components(tag, form, lanes)?;
        }
        if tag == TAG_INTERNET_IOP && version > Version::V1_0 {
            self.add_others((published, &is_wanted), &mut addresses, &mut components)?;
            for address in addresses.drain(1.min(addresses.len())..) {
                if let Some((host, port)) = address.as_host() {
                    let host = host.to_owned();
                    components.push(Component::AlternateIiopAddress { host, port }.tagged()?);
                }
            }
        }
        for address in addresses {
            let parts = ProfileParts {
                version,
                address,
                object_key: self.key.to_vec(),
                components: components.clone(),
            };
            profiles.push(TaggedProfile {
                tag,
                data: form.encode(parts)?,
            });
        }
        Ok(())
    }

    /// Returns the components of all profiles of a protocol.
    fn components(
        &self,
        tag: u32,
        form: AddressForm,
        lanes: Vec<(Address, i16)>,
    ) -> Result<Vec<TaggedComponent>, SystemException> {
        let mut components = vec![
            Component::OrbType(ORB_TYPE).tagged()?,
            Component::CodeSets(self.core.config.code_sets()).tagged()?,
        ];
        let protocol = self.core.protocols.of_tag(tag);
        if let Some(place) = protocol.and_then(PluggableProtocol::place) {
            components.extend((place.component)());
        }
        if !self.policies.is_empty() {
            components.push(Component::Policies(Policies(self.policies.clone())).tagged()?);
        }
        if !lanes.is_empty() {
            // In the form that TAO reads too.
            components.push(form.encode_lanes(lanes)?);
        }
        Ok(components)
    }

    /// Every endpoint that a protocol has at any lane, with the lane's priority; none where the
    /// pool has no lanes.
    fn lanes(&self, tag: u32) -> Vec<(Address, i16)> {
        if !self.pool.has_lanes {
            return Vec::new();
        }
        let of_lane = |lane: &LaneHandle| {
            let priority = lane.priority.map_or(ANY_PRIORITY, |p| p.value());
            let ways = self.published(lane).map(|p| &p.way);
            let own = ways.filter(|way| way.protocol == tag);
            own.map(|way| (way.address.clone(), priority))
                .collect::<Vec<_>>()
        };
        let lanes = self.pool.lanes.iter();
        lanes.flat_map(|lane| of_lane(lane)).collect()
    }

    /// Adds the protocols that are published by components of the profile of IIOP. Without an
    /// endpoint of IIOP itself, the port is 0.
    fn add_others(
        &self,
        (published, is_wanted): (&[&PublishedEndpoint], &dyn Fn(u32) -> bool),
        addresses: &mut Vec<Address>,
        components: &mut Vec<TaggedComponent>,
    ) -> Result<(), SystemException> {
        let plain = if addresses.is_empty() {
            Plain::Closed
        } else {
            Plain::Open
        };
        for other in self.core.protocols.iter() {
            let Some(telling) = other.components().filter(|_| is_wanted(other.tag())) else {
                continue;
            };
            let ways = published.iter().map(|published| &published.way);
            let own = ways.filter(|way| way.protocol == other.tag());
            let own: Vec<_> = own.map(|way| way.address.clone()).collect();
            let host = own.first().and_then(|address| address.as_host());
            if let Some((host, _)) = host.filter(|_| addresses.is_empty()) {
                addresses.push(Address::host(host, 0));
            }
            if own.is_empty() {
                continue;
            }
            components.extend((telling.write)(&own, plain)?);
            if let Some(tag) = telling.lanes.filter(|_| self.pool.has_lanes) {
                let lanes = AddressForm::HOST_AND_PORT.encode_lanes(self.lanes(other.tag()))?;
                components.push(TaggedComponent { tag, ..lanes });
            }
        }
        Ok(())
    }
}

/// The server listens by none of the selected protocols, or for groups alone.
const NO_ENDPOINT_TO_TELL: SystemException =
    SystemException::no(SystemExceptionKind::InvPolicy, minor::NO_ENDPOINT_TO_TELL);
/// TAO's value for an endpoint that takes requests of any priority.
const ANY_PRIORITY: i16 = -1;
/// The value of `TAG_ORB_TYPE` for this ORB.
const ORB_TYPE: u32 = 0x4352_4f00;
