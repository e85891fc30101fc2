//! The clients that load the server.

use std::time::Duration;

use chronorb::prelude::*;
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use serde::{Deserialize, Serialize};

use crate::bench::work::{VALUE, find};
use crate::bench::{priority, real_time_options, start_orb, with_callers};
use crate::error::LabError;
use crate::idl::lab::Work;
use crate::process::{self, Parent, Ready};

/// A client whose threads call one object without a pause while the load is on.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct LoadClient {
    pub(super) reference: String,
    /// The priority of the calls.
    pub(super) priority: i16,
    /// The number of threads that call.
    pub(super) callers: u32,
    pub(super) work: LoadWork,
}

/// The work of a call of the load.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum LoadWork {
    /// Occupies a thread of the server, but no processor.
    Occupy { us: u32 },
    /// Computes and rests in turn until the load ends.
    Endless { compute_us: u32, rest_us: u32 },
}

/// A span in which the load is on, in ns of the monotonic clock.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct LoadSpan {
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
}

/// The effect of the load in a span.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct LoadReport {
    /// The number of requests that were refused (`TRANSIENT`).
    pub(super) refused: u64,
    /// The longest time for which endless work was kept from computing.
    pub(super) longest_stop_us: u32,
}

impl LoadReport {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            refused: self.refused + other.refused,
            longest_stop_us: self.longest_stop_us.max(other.longest_stop_us),
        }
    }
}

/// Runs a client of the load.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub(crate) fn client_main(order: &str) -> Result<(), LabError> {
    let client: LoadClient = process::order(order)?;
    let parent = Parent::or_exit();
    let orb = start_orb(&real_time_options(false))?;
    let connect = |_| client.connect(&orb);
    let run = |work: &mut Work, _: usize, span: &LoadSpan| client.load(work, *span);
    with_callers(client.callers as usize, connect, run, |callers| {
        process::tell(&Ready {})?;
        while let Some(span) = parent.hear::<Option<LoadSpan>>()? {
            let loads = callers.run(&span)?.into_iter();
            process::tell(&loads.fold(LoadReport::default(), LoadReport::and))?;
        }
        Ok(())
    })
}

impl LoadClient {
    /// Connects this thread to the object.
    fn connect(&self, orb: &Orb) -> Result<Work, LabError> {
        let work = find(orb, Some(priority(self.priority)), &self.reference)?;
        let deadline = Deadline::after(PATIENCE);
        // More threads connect at a time than a buffer holds requests, so some are refused.
        while let Err(exception) = work.cube(VALUE, 1) {
            if exception.kind != SystemExceptionKind::Transient || deadline.has_passed() {
                return Err(LabError::work("calling the server")(exception));
            }
            sleep_until(Monotonic::now() + Duration::from_millis(1));
        }
        Ok(work)
    }

    /// Calls from the beginning of the load to its end.
    fn load(&self, work: &Work, span: LoadSpan) -> Result<LoadReport, LabError> {
        let mut report = LoadReport::default();
        let until = Monotonic::from_nanos(span.until_ns);
        sleep_until(Monotonic::from_nanos(span.from_ns));
        while Monotonic::now() < until {
            let stop = match self.work {
                LoadWork::Occupy { us } => work.occupy(us).map(|()| 0),
                LoadWork::Endless {
                    compute_us,
                    rest_us,
                } => work.work_until(span.until_ns, compute_us, rest_us),
            };
            match stop {
                Ok(stop_us) => report.longest_stop_us = report.longest_stop_us.max(stop_us),
                Err(exception) if exception.kind == SystemExceptionKind::Transient => {
                    report.refused += 1;
                    sleep_until(until.min(Monotonic::now() + RETRY));
                }
                Err(exception) => return Err(LabError::work("loading the server")(exception)),
            }
        }
        Ok(report)
    }
}

/// The part of a process that is a client of the load.
pub(crate) const CLIENT: &str = "overtake-client";
/// The time for which a caller tries to connect to a server whose buffers are full.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after which a caller that was refused tries again.
const RETRY: Duration = Duration::from_millis(5);
