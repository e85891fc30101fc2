//! The announcement of a client that each request waits for the reply to the one before. A thread
//! of the server may stay on such a connection.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::{SystemException, contexts};

use super::{Admission, Arrival, Contexts, Departure, Rider};

pub(crate) struct OneAtATime;

impl Rider for OneAtATime {
    const CONTEXT: u32 = contexts::ONE_AT_A_TIME;
    type Call = ();
    type Request = ();
    type Guard = ();

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        let announcements = departure.announcements_of_1_2();
        if announcements.is_some_and(|announced| announced.one_at_a_time) {
            contexts.add(Self::CONTEXT, &contexts::ONE_AT_A_TIME_DATA);
        }
    }

    #[inline]
    fn arrive(
        (): &mut (),
        arrival: &Arrival<'_>,
        context: Option<&[u8]>,
        _: &mut Admission,
    ) -> Result<(), SystemException> {
        if context.is_some() {
            arrival.carrier.set_one_at_a_time();
        }
        Ok(())
    }

    #[cold]
    fn learn((): &mut (), arrival: &Arrival<'_>) {
        if contexts::find(arrival.contexts, Self::CONTEXT).is_some() {
            arrival.carrier.set_one_at_a_time();
        }
    }
}
