//! Calls of distributable threads: the same attempts, between scheduling points, with a wait that a
//! cancellation interrupts.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::rc::Rc;
use std::time::Duration;

use chronorb_giop::SystemException;
use chronorb_rt::Deadline;

use super::binding::{self, Binding};
use super::invocation::{Invocation, NextAttempt, exchange, send_oneway, send_request};
use super::request::Arguments;
use crate::call::Operation;
use crate::core::Object;
use crate::riders;
use crate::rtscheduling::{self, CallInSegment, Guid};
use crate::scope::{ReplyBody, Scope};

/// Calls an operation as [`invoke`](super::invocation::invoke) does.
#[inline(never)]
pub(super) fn invoke(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<ReplyBody, SystemException> {
    if operation.oneway {
        return invoke_detached(object, scope, operation, arguments);
    }
    let call = rtscheduling::begin_call()?;
    let result = attempt(&call, object, scope, operation, arguments);
    call.end(result.as_ref().map(|body| body.exception).map_err(|it| *it))?;
    result
}

/// Calls a oneway operation as [`invoke`] does.
#[cold]
#[inline(never)]
fn invoke_detached(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<ReplyBody, SystemException> {
    let call = rtscheduling::begin_detached()?;
    let result = attempt(call.call(), object, scope, operation, arguments);
    let outcome = result.as_ref().map(|body| body.exception).map_err(|it| *it);
    call.prepared().end(outcome)?;
    result
}

/// Sends the request of a oneway operation as
/// [`invoke_oneway`](super::invocation::invoke_oneway) does.
#[inline(never)]
pub(super) fn invoke_oneway(
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<bool, SystemException> {
    let call = rtscheduling::begin_detached()?;
    let sent = send_oneway(object, scope, operation, arguments);
    call.prepared().end(sent.map(|_| false))?;
    sent
}

#[inline(always)]
fn attempt(
    call: &CallInSegment,
    object: &Object,
    scope: &mut Scope,
    operation: &Operation,
    arguments: Arguments<'_>,
) -> Result<ReplyBody, SystemException> {
    let mut object = object;
    let mut invocation = None;
    let mut usual = None;
    let mut riders = riders::CallState::default();
    if object.is_outside() {
        usual = binding::usual(object);
    }
    loop {
        let (binding, limits) = match usual.take() {
            Some(usual) => usual,
            None => {
                object = object.answering()?;
                match Invocation::go_on(&mut invocation, object, scope, operation, arguments)? {
                    NextAttempt::At(binding, limits) => (binding, limits),
                    NextAttempt::Done(answer) => return Ok(answer),
                }
            }
        };
        let interruption = binding.connection.interruption();
        let waiting = interruption.map(|(address, weak)| call.wait(address, weak));
        let waiting = waiting.transpose()?;
        let answer = exchange(&binding, &mut riders, scope, operation, arguments, limits);
        drop(waiting);
        match answer {
            Ok(answer) => {
                let connection = &binding.connection;
                // Other calls may be under way on a shared one.
                if connection.is_closed() && connection.has_one_call_at_a_time() {
                    binding.connection.close();
                }
                return Ok(answer);
            }
            Err(Err(_)) if call.is_cancelled() => {
                cancel_onward(object, binding, call.guid());
                return Err(call.interrupted());
            }
            Err(outcome) => Invocation::fail(&mut invocation, object, &binding, limits, outcome)?,
        }
    }
}

/// Tells the server that the calling thread has waited for that its distributable thread is
/// cancelled. Any ORB understands the request; what it carries is the cancellation.
#[cold]
#[inline(never)]
fn cancel_onward(object: &Object, binding: Rc<Binding>, guid: Guid) {
    let _cancelling = rtscheduling::cancelling(guid);
    let operation = Operation::oneway("_non_existent");
    let connection = &binding.connection;
    // A server that cannot be reached any more has lost the thread too.
    if connection.shared().is_none() && connection.link().is_origin() {
        let deadline = Deadline::after(LAST_SEND);
        let send = |scope: &mut _| {
            let riders = &mut riders::CallState::default();
            send_request(&binding, riders, scope, &operation, &|_| Ok(()), deadline)
        };
        let _ = Scope::with(send);
        connection.close();
        return;
    }
    drop(binding);
    let _ = Scope::with(|scope| send_oneway(object, scope, &operation, &|_| Ok(())));
}

/// The longest time that a cancellation takes to be sent on a connection that ends.
const LAST_SEND: Duration = Duration::from_secs(1);
