//! Making references.

use chronorb_giop::codesets::CodeSetComponentInfo;
use chronorb_giop::{
    Component, IiopProfile, Ior, Policies, PriorityModelValue, SystemException, TAG_INTERNET_IOP,
    TaggedProfile, TaoEndpoint, Version,
};

use super::key::{ObjectKey, PoaKey};
use super::{Key, Lifespan, Object, Poa, PriorityModel};
use crate::server::{Lane, Published, Threadpool};

impl Poa {
    /// The reference of the object with this id.
    pub(super) fn reference(
        &self,
        id: &[u8],
        repository_id: &str,
    ) -> Result<Object, SystemException> {
        let key = ObjectKey {
            poa: self.poa_key(),
            id,
        };
        let core = &self.inner.core;
        self.check_alive()?;
        let pool = self.pool()?;
        let lane = self.published_lane(pool);
        let mut addresses = lane.published();
        let Some(first) = addresses.next() else {
            let kind = chronorb_giop::SystemExceptionKind::Internal;
            return Err(SystemException::no(kind, 0));
        };
        let max_version = core.config.max_giop_version;
        let version = first.version.map_or(max_version, |v| v.min(max_version));
        let first = &first.address;
        let mut components = Vec::new();
        if version > Version::V1_0 {
            components.push(Component::OrbType(ORB_TYPE).tagged()?);
            components.push(Component::CodeSets(CodeSetComponentInfo::ours()).tagged()?);
            for Published { address, .. } in addresses {
                let (host, port) = (address.host.clone(), address.port);
                components.push(Component::AlternateIiopAddress { host, port }.tagged()?);
            }
            if let Some((model, priority)) = self.priority_model() {
                let value = PriorityModelValue {
                    model: match model {
                        PriorityModel::ClientPropagated => 0,
                        PriorityModel::ServerDeclared => 1,
                    },
                    server_priority: priority.value(),
                };
                let policies = Policies::with_priority_model(value)?;
                components.push(Component::Policies(policies).tagged()?);
            }
            if pool.has_lanes() {
                components.push(Component::TaoEndpoints(lane_endpoints(pool)).tagged()?);
            }
        }
        let profile = IiopProfile {
            version,
            host: first.host.clone(),
            port: first.port,
            object_key: key.to_vec(),
            components,
        };
        let ior = Ior {
            type_id: repository_id.to_owned(),
            profiles: vec![TaggedProfile {
                tag: TAG_INTERNET_IOP,
                data: profile.encode()?,
            }],
        };
        Object::from_ior(core, ior).ok_or(SystemException::no(
            chronorb_giop::SystemExceptionKind::Internal,
            0,
        ))
    }

    pub(super) fn poa_key(&self) -> PoaKey<'_> {
        match self.inner.policies.lifespan {
            Lifespan::Persistent => PoaKey::Persistent {
                path: &self.inner.path,
            },
            Lifespan::Transient => PoaKey::Transient {
                incarnation: self.inner.core.incarnation,
                // A POA without a place has not been given out yet.
                key: self.inner.place.get().copied().unwrap_or(Key {
                    index: 0,
                    generation: 0,
                }),
            },
        }
    }

    /// The lane whose endpoint clients use that know nothing of lanes: that of the server's
    /// priority, else the least urgent.
    fn published_lane<'p>(&self, pool: &'p Threadpool) -> &'p Lane {
        self.priority_model()
            .and_then(|(_, priority)| pool.lane_of(priority))
            .unwrap_or_else(|| pool.least_urgent_lane())
    }
}

/// Every endpoint of every lane, in the form that TAO reads too.
fn lane_endpoints(pool: &Threadpool) -> Vec<TaoEndpoint> {
    pool.lanes()
        .iter()
        .flat_map(|lane| {
            lane.published()
                .map(|Published { address, .. }| TaoEndpoint {
                    host: address.host.clone(),
                    port: address.port,
                    priority: lane.priority().map_or(0, |p| p.value()),
                })
        })
        .collect()
}

/// The value of `TAG_ORB_TYPE` that tells this ORB.
const ORB_TYPE: u32 = 0x4352_4f00;
