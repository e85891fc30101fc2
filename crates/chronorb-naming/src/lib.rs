//! The name server of chronorb: the naming service of the OMG (`CosNaming`), with leases.

mod change;
pub mod idl;
mod limits;
mod name;
mod tree;

pub use change::{Binding, BindingKind, Change, Journal, JournalError, Lease, Target};
pub use limits::Limits;
pub use name::{AddressError, NameTextError, name_from_text, name_to_text, name_to_url};
pub use tree::{ChangeError, ROOT, Tree};
