//! A name server with a client of another ORB.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb_naming::idl::chronorb_naming::LeasingContext;
use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext, NamingContextExt};
use chronorb_naming::{Change, Journal, JournalError, NameServer, NamingService};

/// A name server and a client, each with its own ORB.
pub(crate) struct Fixture {
    pub(crate) server: Orb,
    pub(crate) client: Orb,
    pub(crate) service: NamingService,
}

impl Fixture {
    pub(crate) fn new(server: NameServer) -> Self {
        let orb = orb();
        let poa = orb.root_poa().unwrap();
        let service = server.serve_in(&poa).unwrap();
        poa.manager().activate().unwrap();
        Self {
            server: orb,
            client: self::orb(),
            service,
        }
    }

    /// The root context, as the client sees it.
    pub(crate) fn root(&self) -> NamingContextExt {
        NamingContextExt::unchecked_narrow(&self.seen(self.service.root()))
    }

    pub(crate) fn leasing(&self) -> LeasingContext {
        LeasingContext::unchecked_narrow(&self.seen(self.service.root()))
    }

    /// A context of this server that is bound to no name.
    pub(crate) fn context(&self) -> NamingContext {
        self.root().new_context().unwrap().unwrap()
    }

    /// An object of another ORB, as the client sees it.
    pub(crate) fn seen(&self, object: &Object) -> Object {
        let text = self.server.object_to_string(object);
        self.client.string_to_object(&text).unwrap()
    }

    /// A reference that is different for each number, to an object that need not exist.
    pub(crate) fn object(&self, n: u16) -> Object {
        let url = format!("corbaloc::127.0.0.1:{}/object", 20_000 + n);
        self.client.string_to_object(&url).unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.client.shutdown(true).unwrap();
        self.server.shutdown(true).unwrap();
    }
}

pub(crate) fn orb() -> Orb {
    orb_with(&[])
}

pub(crate) fn orb_with(options: &[&str]) -> Orb {
    let endpoint = ["p", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
    let all = endpoint.iter().chain(options);
    let mut args = all.map(|argument| (*argument).to_owned()).collect();
    Orb::with_config(OrbConfig::read(&mut args).unwrap()).unwrap()
}

/// A name of components without a kind.
pub(crate) fn n<const N: usize>(ids: [&str; N]) -> [NameComponent<'_>; N] {
    ids.map(|id| NameComponent { id, kind: "" })
}

/// A journal that fails while it is told to.
#[derive(Default)]
pub(crate) struct FailingJournal(pub(crate) Arc<AtomicBool>);

impl Journal for FailingJournal {
    fn append(&mut self, _: &[Change]) -> Result<(), JournalError> {
        if self.0.load(Ordering::SeqCst) {
            Err(JournalError::new("no space left"))
        } else {
            Ok(())
        }
    }
}
