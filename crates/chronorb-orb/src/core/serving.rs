//! The server's half of an ORB, as the rest of it knows it.

use std::any::Any;
use std::sync::Arc;

use chronorb_giop::SystemException;

use super::Core;
#[cfg(feature = "bidir")]
use crate::bidirectional::CallbackPool;
use crate::lanes::{PoolHandle, PoolUse, ThreadpoolId};
use crate::protocol::Way;

/// The server's part of an ORB: thread pools and endpoints.
pub(crate) trait Serving: Any + Send + Sync {
    /// Returns the pool of POAs that name none; the first call makes it.
    fn default_pool(&self, core: &Arc<Core>) -> Result<Arc<PoolHandle>, SystemException>;

    /// Returns the pool of this number, which cannot be destroyed before the result is dropped.
    fn use_pool(&self, id: ThreadpoolId) -> Option<PoolUse>;

    /// Returns a pool as the reader of connections that this ORB opens, unless it was destroyed.
    #[cfg(feature = "bidir")]
    fn callback_pool(&self, pool: &PoolHandle) -> Option<Arc<dyn CallbackPool>>;

    /// Whether one of the addresses leads to this ORB.
    fn is_published(&self, ways: &[Way]) -> bool;

    /// Logs the endpoints at which the ORB listens, if they have changed since the last time.
    fn log_listening(&self, core: &Core);

    /// Closes a connection of a client that is idle, in order, since no descriptor is left for a
    /// connection to a server; returns whether there was one.
    fn make_room_for_file(&self) -> bool;
}
