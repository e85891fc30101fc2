//! The code sets of a connection, which its client announces with the first requests.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::codesets::CodeSetContext;
use chronorb_giop::{SystemException, contexts};

use super::{Admission, Arrival, Contexts, Departure, Rider};

pub(crate) struct CodeSets;

impl Rider for CodeSets {
    const CONTEXT: u32 = contexts::CODE_SETS;
    type Call = ();
    type Request = ();
    type Guard = ();

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        let announcements = departure.announcements.as_ref();
        if let Some(data) = announcements.and_then(|announced| announced.code_sets) {
            contexts.add(Self::CONTEXT, data);
        }
    }

    #[inline]
    fn arrive(
        (): &mut (),
        arrival: &Arrival<'_>,
        context: Option<&[u8]>,
        _: &mut Admission,
    ) -> Result<(), SystemException> {
        context.map_or(Ok(()), |data| set_text(arrival, data))
    }

    #[cold]
    fn learn((): &mut (), arrival: &Arrival<'_>) {
        if let Some(data) = contexts::find(arrival.contexts, Self::CONTEXT) {
            // What is malformed is reported when the request is served.
            let _ = set_text(arrival, data);
        }
    }
}

#[inline]
fn set_text(arrival: &Arrival<'_>, data: &[u8]) -> Result<(), SystemException> {
    let text = CodeSetContext::decode(data)?.text(arrival.version)?;
    arrival.carrier.set_narrow(text.narrow);
    Ok(())
}
