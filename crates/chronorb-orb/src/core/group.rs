//! References to groups, as clients have them.

use chronorb_giop::{
    GroupId, Ior, SystemException, SystemExceptionKind, TAG_INTERNET_IOP, TAG_UIPMC, TaggedProfile,
    UipmcProfile, minor,
};

use super::object::Object;

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

/// An operation that has an answer was called at a group.
const GROUPS_DO_NOT_ANSWER: SystemException = SystemException::no(
    SystemExceptionKind::BadOperation,
    minor::GROUPS_DO_NOT_ANSWER,
);
