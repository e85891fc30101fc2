//! The interfaces by which an application makes adapters and servants on demand.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use chronorb_giop::SystemException;

use super::{ObjectId, Poa, Refusal};
use crate::call::Servant;

/// Makes POAs when they are asked for (`PortableServer::AdapterActivator`; CORBA 3.3, 15.3.5).
pub trait AdapterActivator: Send + Sync + 'static {
    /// Makes the child of `parent` that has this name, by [`Poa::create_poa`], and returns whether
    /// it did. Requests for objects of the child wait until this returns.
    ///
    /// # Errors
    /// The client gets `OBJ_ADAPTER` (OMG minor 1).
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException>;
}

/// Makes servants for objects that are not active, which stay active from then on
/// (`PortableServer::ServantActivator`; CORBA 3.3, 15.3.6.2): for POAs that
/// [retain](super::ServantRetention::Retain) servants.
///
/// Calls for the same object are serialized.
pub trait ServantActivator: Send + Sync + 'static {
    /// Makes the servant of an object.
    ///
    /// # Errors
    /// [`Refusal`] with a forward, or an exception for the client.
    fn incarnate(&self, id: &ObjectId, adapter: &Poa) -> Result<Servant, Refusal>;

    /// Takes back the servant of a deactivated object, whether `incarnate` made it or not. No
    /// request uses the object any more. `cleanup_in_progress` is set if the POA or its manager
    /// ends, `remaining_activations` if the servant incarnates other objects of this POA too.
    fn etherealize(
        &self,
        id: &ObjectId,
        adapter: &Poa,
        servant: Servant,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) {
        let _ = (id, adapter, cleanup_in_progress, remaining_activations);
        drop(servant);
    }
}

/// Gives each request its servant (`PortableServer::ServantLocator`; CORBA 3.3, 15.3.6.3): for
/// POAs that do [not retain](super::ServantRetention::NonRetain) servants.
pub trait ServantLocator: Send + Sync + 'static {
    /// Returns the servant of one request, and a value for [`postinvoke`](Self::postinvoke).
    ///
    /// # Errors
    /// [`Refusal`] with a forward, or an exception for the client.
    fn preinvoke(
        &self,
        id: &ObjectId,
        adapter: &Poa,
        operation: &str,
    ) -> Result<(Servant, Cookie), Refusal>;

    /// Ends a request, on the same thread.
    fn postinvoke(
        &self,
        id: &ObjectId,
        adapter: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Servant,
    ) {
        let _ = (id, adapter, operation, cookie);
        drop(servant);
    }
}

/// A value that a [`ServantLocator`] passes from `preinvoke` to `postinvoke`.
pub type Cookie = Option<Box<dyn Any + Send>>;

/// The servant manager of a POA.
#[derive(Clone)]
pub enum ServantManager {
    /// The manager of a POA that retains servants.
    Activator(Arc<dyn ServantActivator>),
    /// The manager of a POA that does not.
    Locator(Arc<dyn ServantLocator>),
}

impl fmt::Debug for ServantManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Activator(_) => "Activator",
            Self::Locator(_) => "Locator",
        })
    }
}
