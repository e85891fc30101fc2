//! The name server of chronorb: the naming service of the OMG (`CosNaming`), with leases.

mod change;
pub mod idl;
mod limits;
mod name;
mod omninames;
pub mod store;
mod text;
mod tree;

pub use change::{Binding, BindingKind, Change, Journal, JournalError, Lease, Target};
pub use limits::Limits;
pub use name::{AddressError, NameTextError, name_from_text, name_to_text, name_to_url};
pub use omninames::import_omninames;
pub use text::{ExportSummary, ImportCause, ImportError, export_text, import_text};
pub use tree::{ChangeError, ROOT, Tree};
