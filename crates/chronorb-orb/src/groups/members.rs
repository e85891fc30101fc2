//! The objects of this ORB that are members of groups.

use chronorb_giop::{GroupId, SystemException, SystemExceptionKind, TAG_UIPMC};
use chronorb_transport::{Address, Endpoint};
use thiserror::Error;

use crate::core::Object;
use crate::group_members::GroupMember;
use crate::poa::{ObjectError, ObjectId, Poa};
use crate::server;

/// A failure of joining a group, or of querying the membership.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum GroupError {
    /// The reference is not one to a group.
    #[error("the reference is not one to a group")]
    NotAGroupObject,
    /// The POA's policies do not allow it, or the object id does not belong to it.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Anything else: `NO_RESOURCES` where the group cannot be listened at.
    #[error(transparent)]
    System(#[from] SystemException),
}

impl Poa {
    /// Makes an object a member of a group (`PortableGroup::GOA::associate_reference_with_id`): it
    /// receives the requests to the group too, from now on and until it is deactivated. It need not
    /// be active yet.
    ///
    /// From the first member on, the lanes of the POA's pool listen at the group, with the options
    /// of `-ORBMulticast`.
    ///
    /// # Errors
    /// [`GroupError::NotAGroupObject`]; `BAD_PARAM` (OMG minor 14) if ids come from the POA and
    /// this one does not; `NO_RESOURCES` if listening at the group fails.
    pub fn associate_reference_with_id(
        &self,
        group: &Object,
        id: &ObjectId,
    ) -> Result<(), GroupError> {
        let (group, address) = target(group)?;
        let key = self.key_of(id)?.into();
        let pool = self.pool()?;
        let groups = &self.core().groups;
        let _changing = groups.changing.lock();
        let protocol = self.core().protocols.of_tag(TAG_UIPMC);
        let endpoint = Endpoint {
            address: address.clone(),
            ..protocol.ok_or(UNKNOWN_PROTOCOL)?.any_endpoint()
        };
        let lanes = server::lanes_of(self.core(), pool);
        let mut lanes = lanes.iter().filter(|lane| lane.reads());
        lanes.try_for_each(|lane| lane.join(self.core(), &endpoint))?;
        groups.add(GroupMember {
            group,
            address,
            pool: pool.number,
            poa: self.place(),
            id: id.clone(),
            key,
        });
        Ok(())
    }

    /// Removes an object from a group (`PortableGroup::GOA::disassociate_reference_with_id`). After
    /// the last member of the pool, its lanes stop listening at the group.
    ///
    /// # Errors
    /// [`GroupError::NotAGroupObject`]; [`ObjectError::ObjectNotActive`] where the object is no
    /// member.
    pub fn disassociate_reference_with_id(
        &self,
        group: &Object,
        id: &ObjectId,
    ) -> Result<(), GroupError> {
        let (group, _) = target(group)?;
        let removed = self.leave(|member| member.is(&group, self.place(), id));
        match removed {
            0 => Err(ObjectError::ObjectNotActive.into()),
            _ => Ok(()),
        }
    }

    /// An id of the POA's making that is a member of a group already, for an object that is still
    /// to be activated (`PortableGroup::GOA::create_id_for_reference`).
    ///
    /// # Errors
    /// As [`associate_reference_with_id`](Self::associate_reference_with_id);
    /// [`ObjectError::WrongPolicy`] if ids come from the application.
    pub fn create_id_for_reference(&self, group: &Object) -> Result<ObjectId, GroupError> {
        target(group)?;
        let reference = self.create_reference(group.type_id())?;
        let id = self.reference_to_id(&reference)?;
        self.associate_reference_with_id(group, &id)?;
        Ok(id)
    }

    /// The ids of the POA's objects in a group (`PortableGroup::GOA::reference_to_ids`).
    ///
    /// # Errors
    /// [`GroupError::NotAGroupObject`].
    pub fn reference_to_ids(&self, group: &Object) -> Result<Vec<ObjectId>, GroupError> {
        let (group, _) = target(group)?;
        let members = self.core().groups.members();
        let own = members
            .iter()
            .filter(|m| m.is(&group, self.place(), &m.id))
            .map(|m| m.id.clone());
        Ok(own.collect())
    }

    /// Removes an object that ends from its groups.
    pub(crate) fn leave_groups(&self, id: &ObjectId) {
        self.leave(|member| member.poa == self.place() && member.id == *id);
    }

    /// The POA ends.
    pub(crate) fn leave_all_groups(&self) {
        self.leave(|member| member.poa == self.place());
    }

    /// Returns how many members there were.
    fn leave(&self, is_meant: impl Fn(&GroupMember) -> bool) -> usize {
        let groups = &self.core().groups;
        let _changing = groups.changing.lock();
        let removed = groups.remove(is_meant);
        for member in &removed {
            if let Ok(pool) = self.pool()
                && !groups.listens(member.pool, &member.address)
            {
                let lanes = server::lanes_of(self.core(), pool);
                lanes.iter().for_each(|lane| lane.leave(&member.address));
            }
        }
        removed.len()
    }
}

/// The group of a reference, and where that is.
fn target(reference: &Object) -> Result<(GroupId, Address), GroupError> {
    let group = reference.group().ok_or(GroupError::NotAGroupObject)?;
    let profile = reference.profile().ok_or(GroupError::NotAGroupObject)?;
    let way = profile.ways.iter().find(|way| way.protocol == TAG_UIPMC);
    let way = way.ok_or(GroupError::NotAGroupObject)?;
    Ok((group.id().clone(), way.address.clone()))
}

const UNKNOWN_PROTOCOL: SystemException = SystemException::no(SystemExceptionKind::NoResources, 0);
