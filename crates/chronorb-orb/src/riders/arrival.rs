//! A request that has arrived at a server, as riders see it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;

use chronorb_cdr::CharSet;
#[cfg(feature = "distributable-threads")]
use chronorb_giop::{SchedulingContext, SystemException};
use chronorb_giop::{ServiceContext, Version};

use crate::config::OrbConfig;
#[cfg(feature = "distributable-threads")]
use crate::failure::NO_SUCH_ADAPTER;
use crate::incident::Incidents;
use crate::rtcorba::Priority;
#[cfg(feature = "distributable-threads")]
use crate::rtscheduling::HostedThread;

/// A request that has arrived.
pub(crate) struct Arrival<'a> {
    pub(crate) config: &'a OrbConfig,
    pub(crate) incidents: &'a Incidents,
    pub(crate) version: Version,
    pub(crate) contexts: &'a [ServiceContext<'a>],
    /// The connection and the target of the request.
    pub(crate) carrier: &'a dyn Carrier,
}

/// The decisions of riders about a request.
#[derive(Default)]
pub(crate) struct Admission {
    /// The priority that it carries.
    pub(crate) priority: Option<Priority>,
}

/// The connection and the target of a request that has arrived. Displays the peer.
pub(crate) trait Carrier: fmt::Display {
    /// Sets the code set of `char` and `string` on the connection.
    fn set_narrow(&self, narrow: CharSet);

    /// Notes that the client waits for each reply.
    fn set_one_at_a_time(&self);

    /// Agrees to GIOPlite on the connection, from the reply on, if both ends can have it. Returns
    /// whether it does.
    fn agree_to_lite(&self) -> bool;

    /// Notes the addresses by which the client can be called back.
    fn learn_listen_points(&self, _context: &[u8]) {}

    /// Begins the part of the distributable thread of a context that the calling thread executes. A
    /// request that cancels the thread is not served.
    ///
    /// # Errors
    /// `THREAD_CANCELLED` for a request that cancels; `OBJECT_NOT_EXIST` if its target is not here;
    /// `IMP_LIMIT` if the calling thread has too many distributable threads within each other.
    #[cfg(feature = "distributable-threads")]
    fn host(
        &self,
        _context: &SchedulingContext,
        _priority: Option<Priority>,
    ) -> Result<HostedThread, SystemException> {
        Err(NO_SUCH_ADAPTER)
    }
}
