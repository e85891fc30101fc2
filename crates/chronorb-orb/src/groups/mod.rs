//! Groups of objects, which are called together by multicast (MIOP). Calls are oneway, and the
//! number of receivers is unknown.
//!
//! Source: the Unreliable Multicast specification. The operations of its `PortableGroup::GOA` are
//! operations of [`Poa`](crate::poa::Poa).
//!
//! The members of this ORB are in one [table](Groups). Each lane of a member's pool receives the
//! group's messages by a socket of its own, so that the kernel gives each a copy, and no lane
//! delays the members of another. A lane serves the members whose requests of that priority belong
//! to it.

mod members;

pub use members::GroupError;
