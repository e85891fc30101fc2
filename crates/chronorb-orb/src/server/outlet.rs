//! The way out for a reply that is sent from where its octets are.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;

use chronorb_rt::Key;

use super::connection::ServerConnection;
use super::end::Gone;
use super::lane::Lane;
use crate::core::Core;
use crate::gather::{Send, Unsent};
use crate::observe::Stage;

/// Where the client of a request is, who waits for one reply.
pub(crate) struct Outlet<'c> {
    pub(super) core: &'c Core,
    pub(super) lane: &'c Lane,
    pub(super) connection: &'c ServerConnection,
    pub(super) key: Key,
}

impl Outlet<'_> {
    /// Sends the pieces of a message that `message` hands over; `None` where another thread is
    /// sending, and nothing was done. What is not sent whole ends the connection.
    pub(crate) fn send(
        self,
        message: impl FnOnce(Send<'_, Gone>) -> Result<(), Unsent<Gone>>,
    ) -> Option<Result<(), Unsent<Gone>>> {
        self.core.at(Stage::Write);
        let sent = self.connection.send_pieces(message)?;
        match &sent {
            Ok(false) => {}
            Ok(true) => self.lane.rearm(self.connection, self.key),
            Err(_) => self.lane.end(self.key),
        }
        Some(sent.map(drop))
    }
}

impl fmt::Debug for Outlet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").finish_non_exhaustive()
    }
}
