//! References to groups, as clients have them.

use std::sync::Arc;

use chronorb_cdr::CdrError;
use chronorb_giop::{
    GroupId, Ior, SystemException, SystemExceptionKind, TAG_INTERNET_IOP, TAG_UIPMC, TaggedProfile,
    UipmcProfile, Version, minor,
};
use chronorb_transport::Address;
use chronorb_transport::multicast::Multicast;

use crate::config::OrbConfig;
use crate::object::Object;
use crate::protocol::{PluggableProtocol, ProfileParts};

/// A group, as a reference names it.
pub(crate) struct Group {
    id: GroupId,
    /// The object that answers for the group, if the reference has its address.
    answering: Option<Object>,
}

impl Group {
    /// Returns the group of a reference, if it is one; `object` makes the reference to the object
    /// that answers for it.
    pub(crate) fn of(ior: &Ior, object: impl FnOnce(Ior) -> Object) -> Option<Self> {
        let profile = ior.profiles.iter().find(|p| p.tag == TAG_UIPMC)?;
        let profile = UipmcProfile::decode(&profile.data).ok()?;
        let id = profile.group().ok()?;
        let component = profile.iiop().and_then(|iiop| iiop.tagged().ok());
        let mut profiles: Vec<TaggedProfile> = component.into_iter().collect();
        let others = ior.profiles.iter().filter(|p| p.tag == TAG_INTERNET_IOP);
        profiles.extend(others.cloned());
        let answering = (!profiles.is_empty()).then(|| {
            object(Ior {
                type_id: ior.type_id.clone(),
                profiles,
            })
        });
        Some(Self { id, answering })
    }

    pub(crate) fn id(&self) -> &GroupId {
        &self.id
    }

    /// Returns the object that answers for the group.
    ///
    /// # Errors
    /// `BAD_OPERATION` (chronorb minor 1) if there is none.
    pub(crate) fn answering(&self) -> Result<&Object, SystemException> {
        self.answering.as_ref().ok_or(GROUPS_DO_NOT_ANSWER)
    }
}

/// The protocol.
pub(crate) fn protocol(config: &OrbConfig) -> PluggableProtocol {
    let transport = Multicast::new(config.multicast.clone());
    PluggableProtocol::of_groups(Arc::new(transport))
}

/// The form of addresses in the profile of a group: instead of an object key there is the component
/// that names the group.
pub(crate) mod form {
    use super::*;

    /// A group has no profile without its component.
    pub(crate) fn encode(_: ProfileParts) -> Result<Vec<u8>, CdrError> {
        Err(CdrError::BadReference)
    }

    pub(crate) fn decode(data: &[u8]) -> Result<ProfileParts, CdrError> {
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
}

/// An operation that has an answer was called at a group.
const GROUPS_DO_NOT_ANSWER: SystemException = SystemException::no(
    SystemExceptionKind::BadOperation,
    minor::GROUPS_DO_NOT_ANSWER,
);
