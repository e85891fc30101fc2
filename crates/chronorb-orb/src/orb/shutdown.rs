//! The shutdown of an ORB.

use std::sync::Arc;
use std::time::Duration;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};
use chronorb_rt::{Deadline, log};

use crate::core::{Core, STOPPED, STOPPING};
use crate::poa::is_in_upcall;
use crate::{client, server};

/// Ends the ORB; see [`Orb::shutdown`](crate::Orb::shutdown).
pub(super) fn shutdown(core: &Arc<Core>, wait: bool) -> Result<(), SystemException> {
    let serves = || server::is_pool_thread(core) || is_in_upcall(core);
    if wait && (serves() || client::is_in_handler(core)) {
        return Err(SystemException::no(
            SystemExceptionKind::BadInvOrder,
            minor::WOULD_DEADLOCK,
        ));
    }
    let root = core.poas.present_root();
    if let Some(left) = server::stop(core) {
        // Requests that waited for a thread end with their connections.
        drop(left);
        // Both may run application code, which may use pools, so no lock is held.
        core.poas.deactivate();
        core.main.close();
        server::lane_ended(core);
    }
    core.client.leave(core.number);
    if !wait {
        return Ok(());
    }
    let deadline = || Deadline::after(core.config.request_timeout);
    while core.state.get() != STOPPED {
        core.state.wait_while(STOPPING, deadline());
    }
    core.client.wait_until_ended(deadline());
    #[cfg(feature = "monitor")]
    if let Some(monitor) = core.monitor.get() {
        monitor.wait_until_ended(deadline());
    }
    if let Some(root) = root {
        // Threads of the application may still call its objects.
        let _ = root.destroy(true, true);
    }
    log::flush(LOG_PATIENCE);
    Ok(())
}

/// The longest wait for the log's subscriber.
const LOG_PATIENCE: Duration = Duration::from_secs(1);
