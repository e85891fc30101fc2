//! The protocol of groups: MIOP, and the profiles of references to groups.

use std::sync::Arc;

use chronorb_cdr::CdrError;
use chronorb_giop::{UipmcProfile, Version};
use chronorb_transport::Address;
use chronorb_transport::multicast::Multicast;

use super::{PluggableProtocol, ProfileParts};
use crate::config::OrbConfig;

/// Returns the protocol.
pub(super) fn protocol(config: &OrbConfig) -> PluggableProtocol {
    let transport = Multicast::new(config.multicast.clone());
    PluggableProtocol::of_groups(Arc::new(transport))
}

// The form of addresses in the profile of a group: instead of an object key there is the component
// that names the group.

/// A group has no profile without its component.
pub(super) fn encode(_: ProfileParts) -> Result<Vec<u8>, CdrError> {
    Err(CdrError::BadReference)
}

pub(super) fn decode(data: &[u8]) -> Result<ProfileParts, CdrError> {
    let profile = UipmcProfile::decode(data)?;
    Ok(ProfileParts {
        // MIOP has versions of its own, and carries no GIOP before 1.2: only that names a
        // target by its profile.
        version: Version::V1_2,
        object_key: profile.group()?.encode()?,
        address: Address::host(profile.address, profile.port),
        components: profile.components,
    })
}
