//! The agreement on GIOPlite: a client proposes it with the first requests of a connection, and the
//! replies agree.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::{GiopLite, SystemException, contexts};
use chronorb_transport::{Carriage, Connection};

use super::{Admission, Arrival, Contexts, Departure, Rider};
use crate::config::OrbConfig;

pub(crate) struct Lite;

/// Whether the reply agrees.
#[derive(Default)]
pub(crate) struct Agrees(bool);

impl Rider for Lite {
    const CONTEXT: u32 = contexts::GIOP_LITE;
    type Call = ();
    type Request = Agrees;
    type Guard = ();

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        let announcements = departure.announcements_of_1_2();
        if announcements.is_some_and(|announced| announced.lite) {
            contexts.add(Self::CONTEXT, &contexts::GIOP_LITE_DATA);
        }
    }

    #[inline]
    fn arrive(
        agrees: &mut Agrees,
        arrival: &Arrival<'_>,
        context: Option<&[u8]>,
        _: &mut Admission,
    ) -> Result<(), SystemException> {
        if context.is_some() {
            Self::learn(agrees, arrival);
        }
        Ok(())
    }

    #[cold]
    fn learn(agrees: &mut Agrees, arrival: &Arrival<'_>) {
        agrees.0 = GiopLite::is_proposed_by(arrival.contexts) && arrival.carrier.agree_to_lite();
    }

    #[inline]
    fn answer(agrees: &Agrees) -> Option<&[u8]> {
        agrees.0.then_some(&contexts::GIOP_LITE_DATA[..])
    }
}

/// Whether this end may use GIOPlite on a connection: its messages are short enough, and the
/// transport keeps their order.
pub(crate) fn speaks_lite_on(config: &OrbConfig, transport: &dyn Connection) -> bool {
    config.giop_lite
        && config.max_message_size <= GiopLite::MAX_MESSAGE
        && matches!(transport.carriage(), Carriage::Stream)
}
