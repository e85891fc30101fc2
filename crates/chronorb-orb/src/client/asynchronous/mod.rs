//! Asynchronous calls: their requests are sent now, their replies are looked for later, by whoever wants to.
//!
//! A call has a [`Slot`] of its ORB's [`Slots`]. It goes by a connection on which several requests can be under way:
//! that of all calls, or one for asynchronous calls alone where each thread has connections of its own. Who waits
//! for a reply reads from it as others do; for calls that nobody waits for the connection gets an
//! [`attendant`](attendance), a thread that completes them.

mod attendance;
mod meeting;
mod pending;
mod slot;
mod table;

pub(crate) use attendance::is_in_handler;
pub use pending::PendingReply;

pub(in crate::client) use attendance::Attended;
