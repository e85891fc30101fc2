//! The table of the objects of this ORB that are members of groups.

use std::sync::Arc;

use chronorb_giop::{GroupId, TargetGroup};
use chronorb_rt::{Key, PiMutex};
use chronorb_transport::Address;

use crate::object_id::ObjectId;

/// The members of all groups.
#[derive(Default)]
pub(crate) struct Groups {
    /// Replaced as a whole, so that a thread that serves a request reads it without a lock.
    pub(crate) members: PiMutex<Members>,
    /// Held while a member joins or leaves, so that lanes listen as the members require.
    pub(crate) changing: PiMutex<()>,
}

/// The members of all groups at one time.
pub(crate) type Members = Arc<[GroupMember]>;

/// An object in a group.
#[derive(Clone)]
pub(crate) struct GroupMember {
    pub(crate) group: GroupId,
    pub(crate) address: Address,
    pub(crate) pool: u32,
    /// The key of its POA in the table of POAs.
    pub(crate) poa: Key,
    pub(crate) id: ObjectId,
    /// The object key.
    pub(crate) key: Arc<[u8]>,
}

impl GroupMember {
    pub(crate) fn is_in(&self, group: &TargetGroup<'_>) -> bool {
        group.is(&self.group)
    }

    pub(crate) fn is(&self, group: &GroupId, poa: Key, id: &ObjectId) -> bool {
        self.poa == poa && self.id == *id && self.group.is_same_group(group)
    }
}

impl Groups {
    pub(crate) fn members(&self) -> Members {
        self.members.lock().clone()
    }

    /// Adds an object to a group, once.
    pub(crate) fn add(&self, member: GroupMember) {
        let mut members = self.members.lock();
        if !members
            .iter()
            .any(|m| m.is(&member.group, member.poa, &member.id))
        {
            *members = members.iter().cloned().chain([member]).collect();
        }
    }

    /// Takes out the members that are meant; returns which those are.
    pub(crate) fn remove(&self, is_meant: impl Fn(&GroupMember) -> bool) -> Vec<GroupMember> {
        let mut members = self.members.lock();
        if !members.iter().any(&is_meant) {
            return Vec::new();
        }
        let (removed, kept): (Vec<_>, Vec<_>) = members.iter().cloned().partition(is_meant);
        *members = kept.into();
        removed
    }

    /// Whether an object served by this pool is in a group at the address.
    pub(crate) fn listens(&self, pool: u32, address: &Address) -> bool {
        let members = self.members.lock();
        members
            .iter()
            .any(|m| m.pool == pool && m.address == *address)
    }
}
