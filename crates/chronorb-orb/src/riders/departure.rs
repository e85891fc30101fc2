//! A request that leaves a client, as riders see it, and the contexts of a message.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::{EndTimes, ServiceContext, Version};

use super::{All, Riders};
use crate::config::OrbConfig;
use crate::rtcorba::Priority;

/// A request that is about to be sent: one attempt of a call.
pub(crate) struct Departure<'a> {
    pub(crate) config: &'a OrbConfig,
    /// The GIOP version of the connection's messages.
    pub(crate) version: Version,
    /// The announcements of the connection; `None` once the server has read them.
    pub(crate) announcements: Option<Announcements<'a>>,
    /// The priority that the request propagates.
    pub(crate) priority: Option<Priority>,
    /// The end times of this attempt.
    pub(crate) ends: EndTimes,
    /// The context that the application has given the reference.
    pub(crate) of_reference: Option<ServiceContext<'a>>,
}

/// The announcements of the first requests of a connection.
pub(crate) struct Announcements<'a> {
    /// The content of the context of code sets.
    pub(crate) code_sets: Option<&'a [u8]>,
    /// The addresses of the callbacks, as the content of their context.
    pub(crate) listen_points: Option<&'a [u8]>,
    /// Whether each request waits for the reply to the one before.
    pub(crate) one_at_a_time: bool,
    /// Whether the client asks for GIOPlite.
    pub(crate) lite: bool,
}

impl<'a> Departure<'a> {
    /// The announcements to a server of GIOP 1.2. Those of older versions are other ORBs, which do
    /// not know them.
    pub(super) fn announcements_of_1_2(&self) -> Option<&Announcements<'a>> {
        let announcements = self.announcements.as_ref();
        announcements.filter(|_| self.version >= Version::V1_2)
    }
}

/// The service contexts that riders add to a message.
pub(crate) struct Contexts<'a> {
    list: [ServiceContext<'a>; All::NUMBER],
    number: usize,
    room: &'a mut [u8],
}

/// The octets for the copies of a message's riders.
type Room = [u8; All::ROOM];

impl<'a> Contexts<'a> {
    /// Room for the copies of each rider.
    pub(crate) const ROOM: Room = [0; All::ROOM];

    /// Returns an empty list with that room.
    pub(crate) fn new(room: &'a mut Room) -> Self {
        Self {
            list: [ServiceContext { id: 0, data: &[] }; All::NUMBER],
            number: 0,
            room,
        }
    }

    /// Returns an empty list for a message in which no rider copies anything.
    #[inline]
    pub(crate) fn without_copies() -> Self {
        Self {
            list: [ServiceContext { id: 0, data: &[] }; All::NUMBER],
            number: 0,
            room: &mut [],
        }
    }

    /// Adds the context of a rider, once.
    #[inline]
    pub(super) fn add(&mut self, id: u32, data: &'a [u8]) {
        self.list[self.number] = ServiceContext { id, data };
        self.number += 1;
    }

    /// Adds the context of a rider as [`add`](Self::add) does, and copies its content: at most
    /// [`ROOM`](super::Rider::ROOM) octets.
    pub(super) fn add_copy(&mut self, id: u32, data: &[u8]) {
        let (copy, rest) = std::mem::take(&mut self.room).split_at_mut(data.len());
        copy.copy_from_slice(data);
        self.room = rest;
        self.add(id, copy);
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[ServiceContext<'a>] {
        &self.list[..self.number]
    }
}
