//! The name server of chronorb: the naming service of the OMG (`CosNaming`), with leases.

mod change;
pub mod idl;

pub use change::{Binding, BindingKind, Change, Journal, JournalError, Lease, Target};
