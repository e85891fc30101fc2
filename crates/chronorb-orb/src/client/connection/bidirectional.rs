//! Shared connections that a lane reads, because the other side sends requests on them too.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chronorb_cdr::{Frame, TextForm};
use chronorb_giop::{
    CompletionStatus, MessageHeader, SystemException, SystemExceptionKind, reply_id,
};
use chronorb_transport::Connection;

use super::channel::SharedOwner;
use super::directory::NoConnection;
use super::key::ConnectionKey;
use super::link::{Failure, comm_failure};
use super::sending::SendMode;
use super::shared::SharedConnection;
use crate::bidirectional::{LaneConnection, ReplyReceiver};
use crate::client::route::Carries;
use crate::client_state::ConnectionPermit;
use crate::core::Core;
use crate::failure::because;

impl ReplyReceiver for SharedOwner {
    fn receive(&self, header: MessageHeader, frame: &mut Frame) -> bool {
        let shared = &self.shared;
        shared.link.note_arrival();
        let handed_over = reply_id(frame.as_slice())
            .is_some_and(|id| shared.hand_over(id, header, frame).is_ok());
        if !handed_over {
            self.end(false);
        }
        handed_over
    }

    fn end(&self, orderly: bool) {
        self.shared.end(if orderly {
            Failure::NotProcessed
        } else {
            comm_failure(CompletionStatus::Maybe).into()
        });
    }

    fn is_idle(&self) -> bool {
        !self.shared.has_calls()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Gives a new connection to the lane that serves callbacks, and shares it.
pub(super) fn originate(
    core: &Core,
    key: &ConnectionKey,
    text: (TextForm, Option<[u8; 12]>),
    transport: Box<dyn Connection>,
    permit: ConnectionPermit,
) -> Result<Arc<SharedOwner>, NoConnection> {
    let pool = core.bidirectional.pool();
    let pool = pool.ok_or_else(|| NoConnection::Unreachable(NO_POOL.to_owned()))?;
    let priorities = match key.carries {
        Carries::Priority(priority) => priority.map(|priority| (priority, priority)),
        Carries::Band(band) => Some((band.low, band.high)),
    };
    let adopted = pool.adopt(transport, key.way.protocol, priorities)?;
    let announcement = Some(adopted.listen_points.into_boxed_slice());
    let owner = attach(core, key, text, &*adopted.connection, permit, announcement)?;
    owner.shared.keep();
    Ok(owner)
}

/// Shares the connection of a client, to call the client back; `None` if it has just ended, or is
/// used for text of another form.
pub(super) fn call_back(
    core: &Core,
    key: &ConnectionKey,
    text: (TextForm, Option<[u8; 12]>),
    path: &dyn LaneConnection,
) -> Result<Option<Arc<SharedOwner>>, NoConnection> {
    let present = || {
        let owner = path.receiver()?.into_any().downcast::<SharedOwner>().ok()?;
        (owner.text == text && !owner.shared.is_stale()).then_some(owner)
    };
    if path.receiver().is_some() {
        return Ok(present());
    }
    let permit = core.client.permits.take().ok_or(NoConnection::TooMany)?;
    // Another thread may have been faster.
    let attached = attach(core, key, text, path, permit, None);
    Ok(attached.ok().or_else(present))
}

fn attach(
    core: &Core,
    key: &ConnectionKey,
    text: (TextForm, Option<[u8; 12]>),
    connection: &dyn LaneConnection,
    permit: ConnectionPermit,
    announcement: Option<Box<[u8]>>,
) -> Result<Arc<SharedOwner>, NoConnection> {
    let sender = connection.sender().map_err(|error| {
        let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
        because(
            exception,
            format_args!("connection to {}: {error}", key.way),
        )
    })?;
    let sending = SendMode::in_turn();
    let mut shared = SharedConnection::new(sender, permit, &core.config, sending, key.kind);
    shared.become_bidirectional(announcement.is_none());
    let owner = Arc::new(SharedOwner {
        shared: Arc::new(shared),
        thread: None,
        text,
        key: key.clone(),
        is_known: AtomicBool::new(false),
        announcement,
    });
    if connection.attach(owner.clone()) {
        Ok(owner)
    } else {
        Err(NoConnection::Unreachable(ENDED.to_owned()))
    }
}

const NO_POOL: &str = "the thread pool for callbacks was destroyed";
const ENDED: &str = "the connection has ended";
