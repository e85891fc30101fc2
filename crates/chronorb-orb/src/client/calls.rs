//! Calls of objects: the operations of [`Object`] that send requests.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_cdr::{CdrError, Encoder};
use chronorb_giop::SystemException;

use super::collocated::{DirectCall, serve_directly};
use super::{explicit, invocation};
use crate::call::{Call, Operation, Reply};
use crate::core::{BindError, OBJECT_ID, Object};
use crate::scope::Scope;

impl Object {
    /// Asks the object whether it has this interface (`_is_a`).
    ///
    /// # Errors
    /// Those of any call.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        if repository_id == OBJECT_ID {
            return Ok(true);
        }
        #[cfg(feature = "miop")]
        if let Some(group) = self.group()
            && self.type_id() == repository_id
            && group.answering().is_err()
        {
            return Ok(true);
        }
        let operation = Operation::twoway("_is_a");
        self.ask(&operation, &|e| e.write_str(repository_id))
    }

    /// Asks whether the object no longer exists (`_non_existent`).
    ///
    /// # Errors
    /// Those of any call except `OBJECT_NOT_EXIST`, which gives the answer `true`.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        use chronorb_giop::SystemExceptionKind::ObjectNotExist;
        #[cfg(feature = "miop")]
        if self.group().is_some_and(|group| group.answering().is_err()) {
            // The members of a group are unknown, so it may always have some.
            return Ok(false);
        }
        match self.ask(&Operation::twoway("_non_existent"), &|_| Ok(())) {
            Err(exception) if exception.kind == ObjectNotExist => Ok(true),
            other => other,
        }
    }

    /// Prepares the connections for the calling thread's calls of this object, so that none of
    /// them has to connect (`Object::_validate_connection`).
    ///
    /// Uses the thread's present priority; with priority bands, prepares each band that a call may
    /// use, at each lane in it (only one band where the server declares the priority). Each
    /// connection is tried by a locate request, and forwards are followed. An object that is
    /// called within the process needs a connection only for oneway operations.
    ///
    /// # Errors
    /// [`BindError::Inconsistent`] with the conflicting policies where a call would fail with
    /// `INV_POLICY`; [`BindError::System`] with the exception of a call: `TRANSIENT` (OMG minor 2)
    /// where the server cannot be reached, `TIMEOUT` where the time limit of one call expires,
    /// `NO_RESOURCES` (OMG minor 2) where the server has no endpoint for a priority or band,
    /// `OBJECT_NOT_EXIST` where the server has no such object.
    pub fn validate_connection(&self) -> Result<(), BindError> {
        #[cfg(feature = "miop")]
        if self.group().is_some() {
            return Ok(explicit::bind_group(self)?);
        }
        explicit::bind_explicitly(self)
    }

    /// Calls an operation and waits for the reply, which borrows from `scope`.
    ///
    /// Generated stubs call this. `arguments` may run more than once, because a retry repeats
    /// the request, and large sequences are written in two passes.
    ///
    /// # Errors
    /// All system exceptions of the server, and `TRANSIENT` where it cannot be reached,
    /// `COMM_FAILURE` where the connection broke during the call, `TIMEOUT` where the call took
    /// too long, `MARSHAL` where a message is malformed, `NO_RESOURCES` (OMG minor 2) where the
    /// server has no endpoint for this thread's priority, `INV_POLICY` (OMG minor 1) where the
    /// policies contradict each other or the priority is in none of the bands, `BAD_INV_ORDER`
    /// (OMG minor 4) after shutdown; `REBIND` where its [policy][rebind] forbids
    /// a forward or a new connection, `NO_RESOURCES` where there are too many connections.
    ///
    /// [rebind]: crate::rtcorba::ClientPolicy::Rebind
    #[inline(never)]
    pub fn invoke<'s>(
        &self,
        scope: &'s mut Scope,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<Reply<'s>, SystemException> {
        let answer = invocation::invoke(self, scope, operation, arguments)?;
        scope.open(self.core(), answer)
    }

    /// Calls the servant directly, if it is in this process and calls within the process are
    /// direct; `None` otherwise, and where the servant has another type than `S`: the caller then
    /// uses [`invoke`](Self::invoke).
    ///
    /// Generated stubs call this. `S` is an `Arc<dyn …Servant>`; the last parameter of `upcall`
    /// only states that the lifetime `'x` of the arguments is longer than the call's.
    #[doc(hidden)]
    pub fn direct<'x, S: 'static, R>(
        &self,
        scope: &mut Scope,
        operation: &Operation,
        upcall: impl for<'a> FnOnce(&S, &Call<'a>, [&'a &'x (); 0]) -> R,
    ) -> Option<Result<R, SystemException>> {
        // Generated code has a copy of this function for each operation, so it has only the call.
        let key = self.key_of_direct_calls()?;
        let mut call = DirectCall::new(upcall);
        match serve_directly(self.core(), key, scope, operation, &mut call)? {
            Ok(()) => call.into_result().map(Ok),
            Err(exception) => Some(Err(exception)),
        }
    }

    /// Calls a oneway operation; returns when the request has gone as far as the policy
    /// [`ClientPolicy::SyncScope`][scope] says, by default when the transport has taken it.
    ///
    /// # Errors
    /// Those that occur before that point.
    ///
    /// [scope]: crate::rtcorba::ClientPolicy::SyncScope
    pub fn invoke_oneway(
        &self,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<(), SystemException> {
        Scope::with(|scope| {
            if !invocation::invoke_oneway(self, scope, operation, arguments)? {
                self.invoke(scope, operation, arguments)?;
            }
            Ok(())
        })
    }

    /// Sends the oneway requests that the calling thread has kept for this reference
    /// ([`ClientPolicy::OnewayBuffering`][kept]), if there are any.
    ///
    /// # Errors
    /// `COMM_FAILURE` if the connection has ended, with its requests; `TIMEOUT` if the server does
    /// not take them in the time of a call.
    ///
    /// [kept]: crate::rtcorba::ClientPolicy::OnewayBuffering
    pub fn flush_oneways(&self) -> Result<(), SystemException> {
        invocation::flush_oneways(self)
    }

    fn ask(
        &self,
        operation: &Operation,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<bool, SystemException> {
        Scope::with(|scope| match self.invoke(scope, operation, arguments)? {
            Reply::Normal(mut d) => Ok(d.read_bool()?),
            Reply::UserException(..) => Err(crate::call::unknown_user_exception()),
        })
    }
}
