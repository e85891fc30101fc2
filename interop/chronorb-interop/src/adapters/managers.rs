//! Creation of adapters and servants on demand.

use std::fmt::Debug;
use std::sync::Arc;

use chronorb::Servant;
use chronorb::poa::{Cookie, CreatePoaError};
use chronorb::prelude::*;

use super::idl::{ItemServant, ItemSkeleton};
use super::{ServerState, text_of};
use crate::Failure;

/// Serves `Item`, for any number of objects of one adapter.
#[derive(Debug)]
pub(super) struct ItemObject {
    state: Arc<ServerState>,
    adapter: String,
}

impl ItemObject {
    pub(super) fn new(state: Arc<ServerState>, adapter: &str) -> Self {
        let adapter = adapter.to_owned();
        Self { state, adapter }
    }
}

impl ItemServant for ItemObject {
    fn name<'a>(&self, call: &Call<'a>) -> Result<&'a str, SystemException> {
        let id = text_of(call.object_id());
        call.str(&format!("{}:{}:{id}", self.state.name, self.adapter))
    }
}

/// An adapter activator for the children of one adapter.
#[derive(Debug)]
pub(super) struct Grower {
    state: Arc<ServerState>,
    /// The prefix of its children's paths.
    prefix: String,
}

impl Grower {
    pub(super) fn new(state: Arc<ServerState>, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        Self { state, prefix }
    }

    fn grow(&self, parent: &Poa, name: &str) -> Result<bool, Failure> {
        let path = format!("{}{name}", self.prefix);
        let Some(poa) = make(parent, name)? else {
            return Ok(false);
        };
        self.state.record(&path, "unknown_adapter".to_owned());
        let makes_servants = || Maker {
            state: self.state.clone(),
            adapter: path.clone(),
        };
        match kind(name) {
            "defaulted" => poa.set_servant(makes_servants().item())?,
            "located" => poa.set_servant_locator(makes_servants())?,
            "activated" | "lasting" => poa.set_servant_activator(makes_servants())?,
            _ => {}
        }
        let below = Self::new(self.state.clone(), &format!("{path}/"));
        poa.set_activator(Some(Arc::new(below)));
        poa.manager().activate()?;
        Ok(true)
    }
}

impl AdapterActivator for Grower {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        let failed = SystemException::no(SystemExceptionKind::Internal, 0);
        self.grow(parent, name).or(Err(failed))
    }
}

/// Creates an adapter of the kind in its name.
fn make(parent: &Poa, name: &str) -> Result<Option<Poa>, CreatePoaError> {
    use RequestProcessing::{ActiveObjectMapOnly, DefaultServant, ServantManager};
    use ServantRetention::{NonRetain, Retain};

    let (retention, processing) = match kind(name) {
        "mapped" => (Retain, ActiveObjectMapOnly),
        "defaulted" => (NonRetain, DefaultServant),
        "located" => (NonRetain, ServantManager),
        "activated" | "lasting" => (Retain, ServantManager),
        _ => return Ok(None),
    };
    let lifespan = match kind(name) {
        "lasting" => Lifespan::Persistent,
        _ => Lifespan::Transient,
    };
    let policies = [
        Policy::IdAssignment(IdAssignment::User),
        Policy::IdUniqueness(IdUniqueness::Multiple),
        Policy::ServantRetention(retention),
        Policy::RequestProcessing(processing),
        Policy::Lifespan(lifespan),
    ];
    parent.create_poa(name, None, &policies).map(Some)
}

/// Returns the kind in the name of an adapter.
fn kind(name: &str) -> &str {
    name.split_once('-').map_or(name, |(kind, _)| kind)
}

/// The servant manager of one adapter, of either kind.
#[derive(Debug)]
struct Maker {
    state: Arc<ServerState>,
    adapter: String,
}

impl Maker {
    fn item(&self) -> Servant {
        let item = ItemObject::new(self.state.clone(), &self.adapter);
        Arc::new(ItemSkeleton::new(item))
    }

    fn make(&self, id: &str) -> Result<Servant, Refusal> {
        let key = (self.adapter.clone(), id.to_owned());
        let forward = self.state.forwards.lock().get(&key).cloned();
        match (forward, id) {
            (Some(target), _) => Err(Refusal::Forward(target.as_object().clone())),
            (None, "absent") => Err(ABSENT.into()),
            (None, "broken") => Err(BROKEN.into()),
            (None, _) => Ok(self.item()),
        }
    }

    fn record(&self, event: String) {
        self.state.record(&self.adapter, event);
    }
}

impl ServantActivator for Maker {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        let id = text_of(id);
        self.record(format!("incarnate {id}"));
        self.make(&id)
    }

    fn etherealize(&self, id: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        self.record(format!("etherealize {}", text_of(id)));
    }
}

impl ServantLocator for Maker {
    fn preinvoke(
        &self,
        id: &ObjectId,
        _: &Poa,
        operation: &str,
    ) -> Result<(Servant, Cookie), Refusal> {
        let id = text_of(id);
        self.record(format!("preinvoke {id} {operation}"));
        Ok((self.make(&id)?, Some(Box::new(id))))
    }

    fn postinvoke(&self, _: &ObjectId, _: &Poa, operation: &str, cookie: Cookie, _: Servant) {
        // The request returns the cookie that it was given.
        let id = cookie.and_then(|cookie| cookie.downcast::<String>().ok());
        self.record(format!("postinvoke {} {operation}", id.unwrap_or_default()));
    }
}

const ABSENT: SystemException = SystemException::no(SystemExceptionKind::ObjectNotExist, 7);
const BROKEN: SystemException = SystemException::no(SystemExceptionKind::NoResources, 8);
