//! The parent's side of a transport in one place.

use std::path::Path;
use std::time::Duration;

use chronorb_rt::Deadline;

use super::PART;
use super::order::{ClientCalls, ClientReport, Endpoint, ProbePart, Stamps, StampsOrder};
use super::path::{self, CallPath};
use super::plan::TimeProbesPlan;
use crate::bench::{Cpus, Placement};
use crate::error::LabError;
use crate::process::{Begin, Child, Ready};

/// A transport in a place.
#[derive(Clone, Copy)]
pub(super) struct ProbeTrial<'a> {
    pub(super) plan: &'a TimeProbesPlan,
    pub(super) transport: &'static str,
    pub(super) placement: Placement,
    /// The directory of the certificates, if there is one.
    pub(super) certificates: Option<&'a Path>,
}

impl ProbeTrial<'_> {
    /// Has a client call a server, and follows its calls through both processes. Returns their
    /// paths, and the average number of stamps of a call on both sides.
    pub(super) fn follow(self) -> Result<(Vec<CallPath>, u32), LabError> {
        let calls = self.plan.calls as usize;
        let stamps = self.all_calls() as usize * STAMPS_OF_A_CALL;
        let (client, server) = self.run(Some(stamps))?;
        let mut paths = path::follow(&client.stamps, &server);
        // A call is lost if a stamp is missing, or the stamps are out of order. If many are lost,
        // the figures mean nothing.
        if paths.len() < calls / 10 * 9 {
            return Err(LabError::Outcome(format!(
                "of {calls} calls by {}, {}, only {} could be followed through both processes",
                self.transport,
                self.placement.name(),
                paths.len()
            )));
        }
        let count = |threads: &[Stamps]| threads.iter().map(|of| of.len() as u32).sum::<u32>();
        // The server's stamps are also of the calls before the client was told to begin.
        let stamps = count(&client.stamps) / (self.plan.warm_up + self.plan.calls)
            + count(&server) / self.all_calls();
        paths.drain(..paths.len().saturating_sub(calls));
        Ok((paths, stamps))
    }

    /// Has a client call a server with all points off, and returns the time of each call, in
    /// nanoseconds.
    pub(super) fn time(self) -> Result<Vec<u64>, LabError> {
        Ok(self.run(None)?.0.times_ns)
    }

    /// Runs client and server in their places. Returns the client's report, and the server's
    /// stamps.
    fn run(self, stamps: Option<usize>) -> Result<(ClientReport, Vec<Stamps>), LabError> {
        let endpoint = Endpoint {
            scheme: self.transport.to_owned(),
            certificates: self.certificates.map(Path::to_owned),
            stamps,
        };
        let part = ProbePart::Server(endpoint.clone());
        let (mut server, reference) = Child::start("server", PART, &part)?;
        let calls = ClientCalls {
            reference,
            warm_up: self.plan.warm_up,
            calls: self.plan.calls,
        };
        let part = ProbePart::Client(endpoint, calls);
        let (mut client, Ready {}) = Child::start("client", PART, &part)?;
        Cpus::of_this_process()?.place(self.placement, client.id(), server.id())?;
        client.tell(&Begin {})?;
        let report = client.hear(Deadline::after(START_UP + CALL * self.all_calls()))?;
        client.finish(Deadline::after(WIND_DOWN))?;
        server.tell(&StampsOrder {})?;
        let stamps = server.hear(Deadline::after(WIND_DOWN))?;
        server.stop(Deadline::after(WIND_DOWN))?;
        Ok((report, stamps))
    }

    /// Returns the number of all calls of the client, which warms up before and after it is put in
    /// its place.
    fn all_calls(self) -> u32 {
        2 * self.plan.warm_up + self.plan.calls
    }
}

/// More stamps than a thread records for a call, by any transport.
const STAMPS_OF_A_CALL: usize = 40;
/// The longest time in which processes start, and call for the first time.
const START_UP: Duration = Duration::from_secs(20);
/// The longest time of a call on a busy machine.
const CALL: Duration = Duration::from_millis(20);
/// The longest time in which processes end.
pub(super) const WIND_DOWN: Duration = Duration::from_secs(20);
