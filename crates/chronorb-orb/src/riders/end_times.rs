//! The end times of a request and of its reply (CORBA 3.3 part 1, 17.2.5). A client sets them for
//! each attempt; a server does not serve a request whose end has passed.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::time::Duration;

use chronorb_giop::{EndTimes, ServiceContext, SystemException, contexts};

use super::{Admission, Arrival, Contexts, Departure, Rider};
use crate::config::OrbConfig;
use crate::incident::{Incident, Incidents};
use crate::rtcorba::policies::{check_ends, utc_now};

pub(crate) struct InvocationPolicies;

impl Rider for InvocationPolicies {
    const CONTEXT: u32 = contexts::INVOCATION_POLICIES;
    const ROOM: usize = EndTimes::LARGEST;
    type Call = ();
    type Request = ();
    type Guard = ();

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        if !departure.ends.is_empty() {
            let mut room = [0; EndTimes::LARGEST];
            contexts.add_copy(Self::CONTEXT, departure.ends.encode(&mut room));
        }
    }

    #[inline]
    fn arrive(
        (): &mut (),
        arrival: &Arrival<'_>,
        context: Option<&[u8]>,
        _: &mut Admission,
    ) -> Result<(), SystemException> {
        match context {
            None => Ok(()),
            Some(data) => check(arrival.config, arrival.incidents, &arrival.carrier, data),
        }
    }
}

/// Checks that a request of `peer` with these policies may still be served, and notes if not.
///
/// # Errors
/// `TIMEOUT` after its end time (OMG minor 2) or that of its reply (3); `MARSHAL` if its policies
/// are malformed.
#[cold]
#[inline(never)]
fn check(
    config: &OrbConfig,
    incidents: &Incidents,
    peer: &dyn fmt::Display,
    policies: &[u8],
) -> Result<(), SystemException> {
    lateness(config, policies)?.map_err(|(exception, late)| {
        let late = i64::try_from(late.as_millis()).unwrap_or(i64::MAX);
        incidents.note(Incident::ExpiredRequest, peer, late);
        exception
    })
}

/// Whether a request with these contexts has expired, or the thread that serves it has to find out.
pub(crate) fn has_expired(config: &OrbConfig, contexts: &[ServiceContext<'_>]) -> bool {
    let data = contexts::find(contexts, contexts::INVOCATION_POLICIES);
    data.is_some_and(|data| !matches!(lateness(config, data), Ok(Ok(()))))
}

/// The exception for a request with these policies, and the time since its end.
///
/// # Errors
/// The policies are malformed.
fn lateness(
    config: &OrbConfig,
    data: &[u8],
) -> Result<Result<(), (SystemException, Duration)>, SystemException> {
    let Some(skew) = config.clock_skew else {
        return Ok(Ok(()));
    };
    let ends = EndTimes::decode(data)?;
    Ok(check_ends(ends, utc_now().before(skew)))
}
