//! The priority that a client propagates, and the server with its reply (RT-CORBA 1.2,
//! “Real-Time CORBA Priority Models”).

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::{ServiceContext, SystemException, SystemExceptionKind, contexts, minor};

use super::{Admission, Arrival, Contexts, Departure, Rider};
use crate::rtcorba::Priority;

pub(crate) struct PropagatedPriority;

/// The content of the context of the reply.
#[derive(Default)]
pub(crate) struct Echo(Option<[u8; 4]>);

impl Rider for PropagatedPriority {
    const CONTEXT: u32 = contexts::RT_CORBA_PRIORITY;
    const ROOM: usize = 4;
    type Call = ();
    type Request = Echo;
    type Guard = ();

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        if let Some(priority) = departure.priority {
            let data = contexts::encode_priority(priority.value());
            contexts.add_copy(Self::CONTEXT, &data);
        }
    }

    #[inline]
    fn arrive(
        echo: &mut Echo,
        _: &Arrival<'_>,
        context: Option<&[u8]>,
        admission: &mut Admission,
    ) -> Result<(), SystemException> {
        if context.is_some() {
            admission.priority = priority_in(context)?;
            let priority = admission.priority;
            echo.0 = priority.map(|priority| contexts::encode_priority(priority.value()));
        }
        Ok(())
    }

    #[inline]
    fn answer(echo: &Echo) -> Option<&[u8]> {
        echo.0.as_ref().map(|data| &data[..])
    }
}

/// Returns the priority that a request with these contexts carries.
///
/// # Errors
/// `DATA_CONVERSION` (OMG minor 2) if it is malformed, or no priority.
pub(crate) fn propagated_priority(
    contexts: &[ServiceContext<'_>],
) -> Result<Option<Priority>, SystemException> {
    priority_in(contexts::find(contexts, contexts::RT_CORBA_PRIORITY))
}

#[inline]
fn priority_in(context: Option<&[u8]>) -> Result<Option<Priority>, SystemException> {
    let Some(context) = context else {
        return Ok(None);
    };
    contexts::decode_priority(context)
        .ok()
        .and_then(Priority::new)
        .map(Some)
        .ok_or(SystemException::no(
            SystemExceptionKind::DataConversion,
            minor::PRIORITY_MAPPING_FAILED,
        ))
}
