//! The name server of chronorb: the naming service of the OMG (`CosNaming`), with leases.
//!
//! ```no_run
//! use chronorb::prelude::*;
//! use chronorb_naming::NameServer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = Orb::init(&mut std::env::args().collect())?;
//! let root = orb.root_poa()?;
//! // Clients reach it by `corbaloc:iiop:HOST:PORT/NameService`.
//! let service = NameServer::new().serve_in(&root)?;
//! println!("{}", orb.object_to_string(service.root()));
//! root.manager().activate()?;
//! orb.run_until_signal()?;
//! # Ok(())
//! # }
//! ```
//!
//! A server of names answers look-ups from memory, and one change at a time is made. A change is
//! kept by a [`Journal`] before it takes effect; look-ups do not wait for that.

mod change;
mod context;
mod failure;
mod federation;
mod housekeeping;
pub mod idl;
mod iterator;
mod life;
mod limits;
mod name;
mod omninames;
mod owners;
mod server;
mod state;
pub mod store;
mod text;
mod tree;

pub use change::{Binding, BindingKind, Change, Journal, JournalError, Lease, Target};
pub use life::{LifeError, LifeGuard, bind_for_life};
pub use limits::Limits;
pub use name::{AddressError, NameTextError, name_from_text, name_to_text, name_to_url};
pub use omninames::import_omninames;
pub use server::{NameServer, NamingService, ReapPolicy, ServeError};
pub use text::{ExportSummary, ImportCause, ImportError, export_text, import_text};
pub use tree::{ChangeError, ROOT, Tree, unused_number};
