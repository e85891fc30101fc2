//! The object that controls the adapters of a server.

use std::sync::Arc;
use std::thread;

use chronorb::prelude::*;

use super::ServerState;
use super::idl::*;
use super::managers::ItemObject;

/// Serves `Control`.
#[derive(Debug)]
pub(super) struct ControlObject {
    root: Poa,
    state: Arc<ServerState>,
}

impl ControlObject {
    pub(super) fn new(root: Poa, state: Arc<ServerState>) -> Self {
        Self { root, state }
    }

    /// Returns the adapter at a path, and creates it if it does not exist.
    fn adapter(&self, path: &str) -> Result<Poa, SystemException> {
        let mut names = path.split('/');
        names.try_fold(self.root.clone(), |poa, name| {
            poa.find_poa(name, true).or(Err(BAD_PARAM))
        })
    }
}

impl ControlServant for ControlObject {
    fn find<'a>(
        &self,
        _: &Call<'a>,
        adapter: &'a str,
        id: &'a str,
    ) -> Result<Option<Item>, SystemException> {
        let adapter = self.adapter(adapter)?;
        let object = adapter.create_reference_with_id(&id.into(), Item::REPOSITORY_ID);
        Ok(Some(Item::unchecked_narrow(&object.or(Err(BAD_PARAM))?)))
    }

    fn activate<'a>(
        &self,
        _: &Call<'a>,
        adapter: &'a str,
        id: &'a str,
    ) -> Result<(), SystemException> {
        let item = ItemSkeleton::new(ItemObject::new(self.state.clone(), adapter));
        let activated = self.adapter(adapter)?.activate_object_with_id(id, item);
        activated.or(Err(BAD_PARAM))
    }

    fn deactivate<'a>(
        &self,
        _: &Call<'a>,
        adapter: &'a str,
        id: &'a str,
    ) -> Result<(), SystemException> {
        let deactivated = self.adapter(adapter)?.deactivate_object(&id.into());
        deactivated.or(Err(BAD_PARAM))
    }

    fn forward<'a>(
        &self,
        _: &Call<'a>,
        adapter: &'a str,
        id: &'a str,
        target: Option<&Item>,
    ) -> Result<(), SystemException> {
        let key = (adapter.to_owned(), id.to_owned());
        let mut forwards = self.state.forwards.lock();
        match target {
            Some(target) => forwards.insert(key, target.clone()),
            None => forwards.remove(&key),
        };
        Ok(())
    }

    fn set_state<'a>(
        &self,
        _: &Call<'a>,
        adapter: &'a str,
        to: State,
    ) -> Result<(), SystemException> {
        let adapter = self.adapter(adapter)?;
        let manager = adapter.manager();
        match to {
            State::Active => manager.activate().or(Err(BAD_PARAM)),
            State::Holding => manager.hold_requests(false).or(Err(BAD_PARAM)),
            State::Discarding => manager.discard_requests(false).or(Err(BAD_PARAM)),
            State::Inactive => manager.deactivate(true, false).or(Err(BAD_PARAM)),
        }
    }

    fn destroy<'a>(&self, _: &Call<'a>, adapter: &'a str) -> Result<(), SystemException> {
        // A thread that serves a request must not wait. Without a wait a request whose reply has
        // been sent may still be in the adapter, which is not destroyed then.
        let adapter = self.adapter(adapter)?;
        let destroyed = thread::spawn(move || adapter.destroy(true, true)).join();
        destroyed.or(Err(BAD_PARAM))?.or(Err(BAD_PARAM))
    }

    fn take_events<'a>(
        &self,
        call: &Call<'a>,
        adapter: &'a str,
    ) -> Result<Events<'a>, SystemException> {
        let events = call.keep(self.state.take_events(adapter));
        call.fill(events.len(), |i| events[i].as_str())
    }

    fn shutdown(&self, call: &Call<'_>) -> Result<(), SystemException> {
        call.orb().shutdown(false)
    }
}

const BAD_PARAM: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);
