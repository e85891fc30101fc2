//! A list of riders as a type: nested pairs, so that each call of a list is inlined.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::{ServiceContext, SystemException};

use super::{Admission, Arrival, Contexts, Departure, Rider, ServiceOutcome};

/// The type of a list of riders.
macro_rules! riders {
    () => { () };
    ($first:ty, $($rest:ty,)*) => { ($first, riders![$($rest,)*]) };
}

/// A list of riders, each of which does what [`Rider`] says, in the order of the list.
pub(crate) trait Riders {
    /// The number of riders.
    const NUMBER: usize;
    /// Whether any [varies](Rider::VARIES).
    const VARIES: bool;
    /// The sum of [`Rider::ROOM`].
    const ROOM: usize;

    type Call: Default;
    type Request: Default + Send + 'static;
    type Guard: Default;
    /// The content of each rider's context in one request.
    type Contents<'c>: Default;

    fn depart<'a>(call: &mut Self::Call, departure: &Departure<'a>, contexts: &mut Contexts<'a>);

    /// Keeps the content of a context for the rider whose it is.
    fn find<'c>(contents: &mut Self::Contents<'c>, context: &ServiceContext<'c>);

    /// # Errors
    /// The first that a rider reports.
    fn arrive(
        request: &mut Self::Request,
        arrival: &Arrival<'_>,
        contents: &Self::Contents<'_>,
        admission: &mut Admission,
    ) -> Result<(), SystemException>;

    fn learn(request: &mut Self::Request, arrival: &Arrival<'_>);

    fn takes_part(request: &Self::Request) -> bool;

    /// # Errors
    /// The first that a rider reports. Later riders do not serve then.
    fn serve(
        request: &Self::Request,
        arrival: &Arrival<'_>,
        admission: &Admission,
        guard: &mut Self::Guard,
    ) -> Result<(), SystemException>;

    fn holds_reply(guard: &Self::Guard) -> bool;

    /// Concludes in the reverse order.
    ///
    /// # Errors
    /// The last that a rider reports.
    fn conclude(guard: &mut Self::Guard, outcome: ServiceOutcome) -> Result<(), SystemException>;

    fn has_answer(request: &Self::Request) -> bool;

    fn answer<'a>(request: &'a Self::Request, contexts: &mut Contexts<'a>);

    fn come_back(call: &mut Self::Call, contexts: &[ServiceContext<'_>]);
}

impl Riders for () {
    const NUMBER: usize = 0;
    const VARIES: bool = false;
    const ROOM: usize = 0;
    type Call = ();
    type Request = ();
    type Guard = ();
    type Contents<'c> = ();

    fn depart<'a>((): &mut (), _: &Departure<'a>, _: &mut Contexts<'a>) {}

    #[inline(always)]
    fn find<'c>((): &mut (), _: &ServiceContext<'c>) {}

    #[inline(always)]
    fn arrive(
        (): &mut (),
        _: &Arrival<'_>,
        (): &(),
        _: &mut Admission,
    ) -> Result<(), SystemException> {
        Ok(())
    }

    fn learn((): &mut (), _: &Arrival<'_>) {}

    #[inline(always)]
    fn takes_part((): &()) -> bool {
        false
    }

    #[inline(always)]
    fn serve((): &(), _: &Arrival<'_>, _: &Admission, (): &mut ()) -> Result<(), SystemException> {
        Ok(())
    }

    #[inline(always)]
    fn holds_reply((): &()) -> bool {
        false
    }

    #[inline(always)]
    fn conclude((): &mut (), _: ServiceOutcome) -> Result<(), SystemException> {
        Ok(())
    }

    #[inline(always)]
    fn has_answer((): &()) -> bool {
        false
    }

    fn answer<'a>((): &'a (), _: &mut Contexts<'a>) {}

    #[inline(always)]
    fn come_back((): &mut (), _: &[ServiceContext<'_>]) {}
}

impl<R: Rider, L: Riders> Riders for (R, L) {
    const NUMBER: usize = 1 + L::NUMBER;
    const VARIES: bool = R::VARIES || L::VARIES;
    const ROOM: usize = R::ROOM + L::ROOM;
    type Call = (R::Call, L::Call);
    type Request = (R::Request, L::Request);
    type Guard = (R::Guard, L::Guard);
    type Contents<'c> = (Option<&'c [u8]>, L::Contents<'c>);

    fn depart<'a>(call: &mut Self::Call, departure: &Departure<'a>, contexts: &mut Contexts<'a>) {
        R::depart(&mut call.0, departure, contexts);
        L::depart(&mut call.1, departure, contexts);
    }

    #[inline(always)]
    fn find<'c>(contents: &mut Self::Contents<'c>, context: &ServiceContext<'c>) {
        if context.id == R::CONTEXT {
            contents.0.get_or_insert(context.data);
        } else {
            L::find(&mut contents.1, context);
        }
    }

    #[inline(always)]
    fn arrive(
        request: &mut Self::Request,
        arrival: &Arrival<'_>,
        contents: &Self::Contents<'_>,
        admission: &mut Admission,
    ) -> Result<(), SystemException> {
        let admitted = R::arrive(&mut request.0, arrival, contents.0, admission);
        let others = L::arrive(&mut request.1, arrival, &contents.1, admission);
        admitted.and(others)
    }

    fn learn(request: &mut Self::Request, arrival: &Arrival<'_>) {
        R::learn(&mut request.0, arrival);
        L::learn(&mut request.1, arrival);
    }

    #[inline(always)]
    fn takes_part(request: &Self::Request) -> bool {
        R::takes_part(&request.0) || L::takes_part(&request.1)
    }

    #[inline(always)]
    fn serve(
        request: &Self::Request,
        arrival: &Arrival<'_>,
        admission: &Admission,
        guard: &mut Self::Guard,
    ) -> Result<(), SystemException> {
        R::serve(&request.0, arrival, admission, &mut guard.0)?;
        L::serve(&request.1, arrival, admission, &mut guard.1)
    }

    #[inline(always)]
    fn holds_reply(guard: &Self::Guard) -> bool {
        R::holds_reply(&guard.0) || L::holds_reply(&guard.1)
    }

    #[inline(always)]
    fn conclude(guard: &mut Self::Guard, outcome: ServiceOutcome) -> Result<(), SystemException> {
        let concluded = L::conclude(&mut guard.1, outcome);
        R::conclude(&mut guard.0, outcome).and(concluded)
    }

    #[inline(always)]
    fn has_answer(request: &Self::Request) -> bool {
        R::answer(&request.0).is_some() || L::has_answer(&request.1)
    }

    fn answer<'a>(request: &'a Self::Request, contexts: &mut Contexts<'a>) {
        if let Some(data) = R::answer(&request.0) {
            contexts.add(R::CONTEXT, data);
        }
        L::answer(&request.1, contexts);
    }

    #[inline(always)]
    fn come_back(call: &mut Self::Call, contexts: &[ServiceContext<'_>]) {
        R::come_back(&mut call.0, contexts);
        L::come_back(&mut call.1, contexts);
    }
}
