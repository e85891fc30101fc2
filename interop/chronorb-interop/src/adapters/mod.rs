//! The server of `idl/adapters.idl`: POAs of every kind, created on demand.

mod control;
mod managers;

/// The definitions of `idl/adapters.idl`.
pub mod idl {
    chronorb::include_idl!("adapters");

    pub use self::adapters::*;
}

use std::collections::HashMap;
use std::sync::Arc;

use chronorb::prelude::*;
use chronorb_rt::PiMutex;

use self::control::ControlObject;
use self::idl::{Control, ControlSkeleton, Item};
use self::managers::Grower;
use crate::Failure;

/// Serves a control object for a server of this name, which its items return.
///
/// # Errors
/// Any error of the ORB.
pub fn serve_adapters(orb: &Orb, name: &str) -> Result<Control, Failure> {
    let root = orb.root_poa()?;
    let state = Arc::new(ServerState {
        name: name.to_owned(),
        forwards: PiMutex::new(HashMap::new()),
        events: PiMutex::new(Vec::new()),
    });
    root.set_activator(Some(Arc::new(Grower::new(state.clone(), ""))));
    let poa = root.create_poa(
        "control",
        Some(root.manager()),
        &[
            Policy::Lifespan(Lifespan::Persistent),
            Policy::IdAssignment(IdAssignment::User),
        ],
    )?;
    let control = ControlSkeleton::new(ControlObject::new(root.clone(), state));
    poa.activate_object_with_id("control", control)?;
    let control = poa.id_to_reference(&"control".into())?;
    root.manager().activate()?;
    Ok(Control::unchecked_narrow(&control))
}

/// The state that the objects of a server share.
#[derive(Debug)]
struct ServerState {
    name: String,
    /// The targets of forwarded requests, by adapter and id.
    forwards: PiMutex<HashMap<(String, String), Item>>,
    /// Events, each with its adapter.
    events: PiMutex<Vec<(String, String)>>,
}

impl ServerState {
    fn record(&self, adapter: &str, event: String) {
        self.events.lock().push((adapter.to_owned(), event));
    }

    fn take_events(&self, adapter: &str) -> Vec<String> {
        let mut events = self.events.lock();
        let taken = events.extract_if(.., |(of, _)| of == adapter);
        taken.map(|(_, event)| event).collect()
    }
}

/// Returns the text of an id that the application has assigned.
fn text_of(id: &ObjectId) -> String {
    String::from_utf8_lossy(id.as_bytes()).into_owned()
}
