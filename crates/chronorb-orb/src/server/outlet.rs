//! Replies that are sent from the memory that holds their octets.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;

use super::at::At;
use super::end::LostConnection;
use crate::core::Core;
use crate::gather::{GatherError, Send};
use crate::observe::Stage;

/// The destination of one reply: the client that waits for it.
pub(crate) struct Outlet<'c> {
    pub(super) core: &'c Core,
    pub(super) at: At<'c>,
}

impl Outlet<'_> {
    /// Sends the pieces of a message as `message` produces them; `None` where another thread is
    /// sending, and nothing was done. A message that is not sent whole ends the connection.
    pub(crate) fn send(
        self,
        message: impl FnOnce(Send<'_, LostConnection>) -> Result<(), GatherError<LostConnection>>,
    ) -> Option<Result<(), GatherError<LostConnection>>> {
        self.core.at(Stage::Write);
        let sent = self.at.connection.send_pieces(message)?;
        match &sent {
            Ok(false) => {}
            Ok(true) => self.at.rearm(),
            Err(_) => self.at.end(),
        }
        Some(sent.map(drop))
    }
}

impl fmt::Debug for Outlet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").finish_non_exhaustive()
    }
}
