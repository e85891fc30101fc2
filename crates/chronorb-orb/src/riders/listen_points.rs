//! The addresses by which a client can be called back on its own connection (CORBA 3.3 part 2,
//! 9.9).

use chronorb_giop::{SystemException, Version, contexts};

use super::{Admission, Arrival, Contexts, Departure, Rider};

pub(crate) struct ListenPoints;

impl Rider for ListenPoints {
    const CONTEXT: u32 = contexts::BI_DIR_IIOP;
    type Call = ();
    type Request = ();
    type Guard = ();

    fn depart<'a>((): &mut (), departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        let announcements = departure.announcements_of_1_2();
        if let Some(data) = announcements.and_then(|announced| announced.listen_points) {
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
        if let Some(data) = context
            && arrival.version >= Version::V1_2
        {
            arrival.carrier.learn_listen_points(data);
        }
        Ok(())
    }
}
