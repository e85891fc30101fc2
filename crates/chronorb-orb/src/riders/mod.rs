//! Riders: the parts of requests and replies beside their arguments, which travel as service
//! contexts.
//!
//! A rider is one module here. The list of all is [`All`], whose order is the order of the contexts
//! in a request and the order in which a server admits it.
//!
//! A client keeps the state of a rider for a logical call, over its attempts: an identity is made
//! once, an end time for each attempt. A server keeps it for a request until the reply, as a value
//! that may move to another thread with the request.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

#[macro_use]
mod list;

mod arrival;
mod code_sets;
mod departure;
mod end_times;
mod listen_points;
mod lite;
mod of_reference;
mod one_at_a_time;
mod priority;
mod scheduling;
#[cfg(test)]
#[allow(clippy::disallowed_macros, clippy::disallowed_methods)]
mod tests;

use chronorb_giop::{ServiceContext, SystemException};

use code_sets::CodeSets;
use end_times::InvocationPolicies;
use listen_points::ListenPoints;
use lite::Lite;
use of_reference::OfReference;
use one_at_a_time::OneAtATime;
use priority::PropagatedPriority;
use scheduling::Scheduling;

pub(crate) use arrival::{Admission, Arrival, Carrier};
pub(crate) use departure::{Announcements, Contexts, Departure};
pub(crate) use end_times::has_expired;
pub(crate) use list::Riders;
pub(crate) use lite::speaks_lite_on;
pub(crate) use priority::propagated_priority;
pub(crate) use scheduling::{ServiceOutcome, constraint_of};

/// All riders, in their order. TAO reads only the first context that it knows, so the listen points
/// come first. What concerns the connection precedes what concerns the request, and the priority
/// precedes the times.
pub(crate) type All = riders![
    ListenPoints,
    CodeSets,
    OneAtATime,
    Lite,
    PropagatedPriority,
    InvocationPolicies,
    Scheduling,
    OfReference,
];
/// The state of all riders for a logical call.
pub(crate) type CallState = <All as Riders>::Call;
/// The state of all riders for a request, until its reply.
pub(crate) type RequestState = <All as Riders>::Request;
/// The guards of all riders while the servant is called.
pub(crate) type ServiceGuard = <All as Riders>::Guard;

/// Lets the riders of a request admit it.
///
/// # Errors
/// The exception that refuses it.
#[inline]
pub(crate) fn admit(
    request: &mut RequestState,
    arrival: &Arrival<'_>,
) -> Result<Admission, SystemException> {
    let mut contents = Default::default();
    for context in arrival.contexts {
        All::find(&mut contents, context);
    }
    let mut admission = Admission::default();
    All::arrive(request, arrival, &contents, &mut admission)?;
    Ok(admission)
}

/// One thing that rides on requests, replies, or both.
pub(crate) trait Rider {
    /// The identifier of its service context. Of several in a message the first counts.
    const CONTEXT: u32;
    /// Whether its context differs between requests by one binding: then none of these has a
    /// prepared header.
    const VARIES: bool = false;
    /// The most octets that it [copies](Contexts::add_copy) into the contexts of one message.
    const ROOM: usize = 0;

    /// The state for one logical call of a client, over all attempts.
    type Call: Default;
    /// The state for one request of a server, from the arrival to the reply. It may move to another
    /// thread with the request.
    type Request: Default + Send + 'static;
    /// The guard on the thread that calls the servant.
    type Guard: Default;

    /// Adds its context to a request, which is one attempt of a call. Requests with a prepared
    /// header have the contexts of an earlier one, unless the rider [varies](Self::VARIES).
    fn depart<'a>(
        _call: &mut Self::Call,
        _departure: &Departure<'a>,
        _contexts: &mut Contexts<'a>,
    ) {
    }

    /// Reads its context in a request that is to be served.
    ///
    /// # Errors
    /// The exception that refuses the request. Later riders read their contexts nevertheless.
    #[inline(always)]
    fn arrive(
        _request: &mut Self::Request,
        _arrival: &Arrival<'_>,
        _context: Option<&[u8]>,
        _admission: &mut Admission,
    ) -> Result<(), SystemException> {
        Ok(())
    }

    /// Reads what its context says about the connection: in the first request, before another one
    /// is read, and in requests that are answered without being served.
    fn learn(_request: &mut Self::Request, _arrival: &Arrival<'_>) {}

    /// Whether it takes part in the service of an admitted request.
    #[inline(always)]
    fn takes_part(_request: &Self::Request) -> bool {
        false
    }

    /// Begins to serve an admitted request, on the thread that calls the servant. The guard is
    /// filled where it is, since it may be large.
    ///
    /// # Errors
    /// The exception that is the answer instead.
    #[inline(always)]
    fn serve(
        _request: &Self::Request,
        _arrival: &Arrival<'_>,
        _admission: &Admission,
        _guard: &mut Self::Guard,
    ) -> Result<(), SystemException> {
        Ok(())
    }

    /// Whether the reply may be sent only after [`conclude`](Self::conclude).
    #[inline(always)]
    fn holds_reply(_guard: &Self::Guard) -> bool {
        false
    }

    /// Ends the service of a request; the guard is dropped next.
    ///
    /// # Errors
    /// The exception that is the answer instead.
    #[inline(always)]
    fn conclude(_guard: &mut Self::Guard, _outcome: ServiceOutcome) -> Result<(), SystemException> {
        Ok(())
    }

    /// Returns the content of its context in the reply.
    #[inline(always)]
    fn answer(_request: &Self::Request) -> Option<&[u8]> {
        None
    }

    /// Reads its context in the reply to an attempt of a call.
    #[inline(always)]
    fn come_back(_call: &mut Self::Call, _contexts: &[ServiceContext<'_>]) {}
}
