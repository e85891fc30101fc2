//! Asynchronous calls of CORBA objects from tasks of tokio.
//!
//! A [`PendingReply`] is a future of any runtime: a thread of the connection reads the reply and
//! wakes the task. Three things of an ORB block their thread, so they must not run on a thread of
//! the runtime:
//!
//! * **The first call.** `begin_…` connects to the server on the calling thread. [`begin`] has a
//!   blocking thread do that. Calls that are begun while the connection exists share it and do not
//!   connect, on any thread. By a reference that has only an address and a key, such as a
//!   `corbaloc:` URL, each thread asks once for the location of the object; [`begin`] such calls
//!   always, or call by a full reference.
//! * **Synchronous calls**, and with them `narrow` where it asks the server.
//! * **`Orb::shutdown(true)`**, which waits for the calls under way: use `spawn_blocking`.
//!
//! A call that is dropped is cancelled, by `tokio::time::timeout`, by `select!` or with its task.
//! Its place among the calls under way (`-ORBMaxPending`) is free at once.

use chronorb::PendingReply;
use chronorb::prelude::*;

chronorb::include_idl!("numbers");

/// Begins a call on a blocking thread of the runtime, since it may have to connect.
///
/// # Errors
/// Those of the method `begin_…` that `call` calls.
///
/// # Panics
/// If `call` panics, or the runtime is shutting down.
pub async fn begin<T, E>(
    call: impl FnOnce() -> Result<PendingReply<T, E>, SystemException> + Send + 'static,
) -> Result<PendingReply<T, E>, SystemException>
where
    T: 'static,
    E: 'static,
{
    tokio::task::spawn_blocking(call)
        .await
        .expect("the call is begun")
}
