//! One transport in one place, from the parent's side.

use std::path::Path;
use std::time::Duration;

use chronorb_rt::Deadline;

use super::PART;
use super::order::{ClientOrder, Part, ServerOrder, Serving, Tell, Timed, Told};
use super::path::{self, Way};
use super::plan::{Plan, Transport};
use crate::bench::{Cpus, Placement};
use crate::error::LabError;
use crate::process::{Begin, Child, Ready};

/// A transport in a place.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) plan: &'a Plan,
    pub(super) transport: Transport,
    pub(super) placement: Placement,
    /// Where the certificates are, if there are some.
    pub(super) certificates: Option<&'a Path>,
}

/// Calls that were followed.
pub(super) struct Followed {
    pub(super) ways: Vec<Way>,
    /// How many stamps a call has on both sides, on the average.
    pub(super) stamps: u32,
}

impl Trial<'_> {
    /// Lets a client call a server, and follows its calls.
    pub(super) fn follow(self) -> Result<Followed, LabError> {
        let plan = self.plan;
        let stamps = self.all_calls() as usize * STAMPS_OF_A_CALL;
        let (mut server, mut client) = self.begin(Some(stamps))?;
        let of_client: Told = client.hear(self.patience())?;
        client.finish(Deadline::after(WIND_DOWN))?;
        server.tell(&Tell {})?;
        let of_server: Told = server.hear(Deadline::after(WIND_DOWN))?;
        server.stop(Deadline::after(WIND_DOWN))?;
        let calls = plan.calls as usize;
        let followed = path::follow(&of_client, &of_server);
        // Those that a stamp is missing of, or that something came between, are few or the figures mean nothing.
        if followed.len() < calls / 10 * 9 {
            return Err(LabError::Outcome(format!(
                "of {calls} calls by {}, {}, only {} could be followed through both processes",
                self.transport.scheme,
                self.placement.name(),
                followed.len()
            )));
        }
        // The server tells of the calls before the beginning, too.
        let stamps = of_client.stamps() / u64::from(plan.warm_up + plan.calls)
            + of_server.stamps() / u64::from(self.all_calls());
        let first = followed.len().saturating_sub(calls);
        Ok(Followed {
            ways: followed[first..].to_vec(),
            stamps: u32::try_from(stamps).unwrap_or(u32::MAX),
        })
    }

    /// Lets a client call a server where all points are off, and tells how long its calls took, in nanoseconds.
    pub(super) fn time(self) -> Result<Vec<u64>, LabError> {
        let (server, mut client) = self.begin(None)?;
        let Timed { calls } = client.hear(self.patience())?;
        client.finish(Deadline::after(WIND_DOWN))?;
        server.stop(Deadline::after(WIND_DOWN))?;
        Ok(calls)
    }

    /// Starts both, in their places; the client has begun.
    fn begin(self, stamps: Option<usize>) -> Result<(Child, Child), LabError> {
        let order = ServerOrder {
            scheme: self.transport.scheme.to_owned(),
            certificates: self.certificates.map(Path::to_owned),
            stamps,
        };
        let (server, Serving { reference }) = Child::start("server", PART, &Part::Server(order))?;
        let order = ClientOrder {
            scheme: self.transport.scheme.to_owned(),
            certificates: self.certificates.map(Path::to_owned),
            stamps,
            reference,
            warm_up: self.plan.warm_up,
            calls: self.plan.calls,
        };
        let (mut client, Ready {}) = Child::start("client", PART, &Part::Client(order))?;
        Cpus::of_this_process()?.place(self.placement, client.id(), server.id())?;
        client.tell(&Begin {})?;
        Ok((server, client))
    }

    /// How many calls the client makes, with those that warm up before it is put in its place, and after.
    fn all_calls(self) -> u32 {
        2 * self.plan.warm_up + self.plan.calls
    }

    fn patience(self) -> Deadline {
        Deadline::after(START_UP + CALL * self.all_calls())
    }
}

/// More than a thread puts down for a call, by any transport.
const STAMPS_OF_A_CALL: usize = 40;
/// How long processes may take to start, and to call for the first time.
const START_UP: Duration = Duration::from_secs(20);
/// How long a call may take, on a busy machine.
const CALL: Duration = Duration::from_millis(20);
/// How long processes may take to end.
pub(super) const WIND_DOWN: Duration = Duration::from_secs(20);
