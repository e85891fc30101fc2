//! The time constraint of a request, and the distributable thread that it belongs to.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

#[cfg_attr(
    not(feature = "distributable-threads"),
    path = "scheduling/not_hosted.rs"
)]
mod hosted;

use chronorb_giop::{
    EndTimes, SchedulingContext, ServiceContext, SystemException, UtcTime, contexts,
};
use chronorb_rt::Monotonic;

use super::{Admission, Arrival, Contexts, Departure, Rider};
use crate::config::OrbConfig;
use crate::rtcorba::ConstraintGuard;
use crate::rtcorba::policies::utc_now;
use crate::rtcorba::scheduling::{self, Constraint};

use hosted::HostGuard;

pub(crate) struct Scheduling;

/// The content of the context; `None` for one of another version, which has no effect.
#[derive(Default)]
pub(crate) struct Content(Option<SchedulingContext>);

/// The constraint of the thread that serves the request, and the distributable thread that it
/// executes.
#[derive(Default)]
pub(crate) struct InThread {
    /// Dropped first, within the constraint.
    hosted: Option<HostGuard>,
    constraint: Option<ConstraintGuard>,
}

/// The answer to a request, when its service ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServiceOutcome {
    Reply,
    Exception(
        #[cfg_attr(
            not(feature = "distributable-threads"),
            expect(dead_code, reason = "for distributable threads")
        )]
        SystemException,
    ),
    Forward,
}

impl Rider for Scheduling {
    const CONTEXT: u32 = contexts::SCHEDULING;
    const ROOM: usize = SchedulingContext::LEN;
    type Call = ();
    type Request = Content;
    type Guard = InThread;

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        if let Some(data) = scheduling::outgoing(|| departure.config.clock()) {
            contexts.add_copy(Self::CONTEXT, &data);
        }
    }

    #[inline]
    fn arrive(
        content: &mut Content,
        _: &Arrival<'_>,
        context: Option<&[u8]>,
        _: &mut Admission,
    ) -> Result<(), SystemException> {
        if let Some(data) = context {
            content.0 = SchedulingContext::decode(data)?;
        }
        Ok(())
    }

    #[inline]
    fn takes_part(content: &Content) -> bool {
        content.0.is_some()
    }

    #[inline]
    fn serve(
        content: &Content,
        arrival: &Arrival<'_>,
        admission: &Admission,
        guard: &mut InThread,
    ) -> Result<(), SystemException> {
        let Some(context) = &content.0 else {
            return Ok(());
        };
        let received = scheduling::received();
        let constraint = Constraint::of_request(*context, received, || arrival.config.clock());
        constraint.enter_at(&mut guard.constraint);
        // The thread of the context begins within the constraint.
        guard.hosted = hosted::begin(context, arrival, admission)?;
        Ok(())
    }

    #[inline]
    fn holds_reply(guard: &InThread) -> bool {
        guard.hosted.is_some()
    }

    #[inline]
    fn conclude(guard: &mut InThread, outcome: ServiceOutcome) -> Result<(), SystemException> {
        match guard.hosted.take() {
            None => Ok(()),
            Some(host) => hosted::finish(host, outcome),
        }
    }
}

/// Returns the constraint of a request with these contexts, which was received at a time.
///
/// A client that knows no time constraints may send an end time: the request then has the deadline
/// that is left of it by the clock of this machine. What is malformed is reported when the request
/// is served.
pub(crate) fn constraint_of(
    list: &[ServiceContext<'_>],
    received: Monotonic,
    config: &OrbConfig,
) -> Option<Constraint> {
    let context = match contexts::find(list, contexts::SCHEDULING) {
        Some(data) => SchedulingContext::decode(data).ok().flatten()?,
        None if config.clock_skew.is_some() => {
            let data = contexts::find(list, contexts::INVOCATION_POLICIES)?;
            let ends = EndTimes::decode(data).unwrap_or_default();
            let end = ends.request.into_iter().chain(ends.reply).min()?;
            let left = |end: UtcTime| end.since(utc_now()).as_nanos().try_into().ok();
            SchedulingContext {
                relative: left(end),
                ..SchedulingContext::default()
            }
        }
        None => return None,
    };
    Some(Constraint::of_request(context, received, || config.clock()))
}
