//! Groups of objects, which are called together by multicast (MIOP). Calls are oneway, and the
//! number of receivers is unknown.
//!
//! Source: the Unreliable Multicast specification. The operations of its `PortableGroup::GOA` are
//! operations of [`Poa`](crate::poa::Poa).
//!
//! The members that this ORB has are in one [table](Groups). Each lane of a member's pool hears the
//! group by a socket of its own, so that the kernel hands each a copy: what one lane has to do
//! keeps no other from its members. Of what it hears a lane serves the members that requests of
//! that priority are served for by it.

mod members;
mod reference;

pub use members::GroupError;
pub(crate) use members::{Groups, Member, Members};
pub(crate) use reference::{Group, form, protocol};
