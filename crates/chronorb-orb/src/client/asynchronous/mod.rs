//! Asynchronous calls: the request is sent at once, the reply is read later, by any thread.
//!
//! A call has a slot of its ORB. It uses a connection on which several requests can be under way:
//! the connection of all calls, or one for asynchronous calls alone if those of other calls are
//! exclusive. A thread that waits for a reply reads from it as others do. For calls that no thread
//! waits for, the connection gets a completion thread.

mod completer;
mod completion;
mod pending;
mod slot;

pub(in crate::client) use completer::AsyncCall;
pub(crate) use completer::is_in_handler;
pub use pending::PendingReply;
