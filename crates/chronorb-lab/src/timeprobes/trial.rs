//! One transport in one place, from the parent's side.

use std::time::Duration;

use chronorb_rt::Deadline;

use super::PART_COMMAND;
use super::error::TimeProbesError;
use super::order::{Begin, ClientOrder, Part, Ready, ServerOrder, Serving, Tell, Told};
use super::path::{self, Way};
use super::plan::{Plan, Transport};
use crate::contest::{Cpus, Placement};
use crate::process::Child;

/// Lets a client call a server, and follows its calls.
pub(super) fn run(
    plan: &Plan,
    transport: Transport,
    placement: Placement,
) -> Result<Vec<Way>, TimeProbesError> {
    let up = Deadline::after(START_UP);
    let stamps = (2 * plan.warm_up + plan.calls) as usize * STAMPS_OF_A_CALL;
    let order = ServerOrder {
        scheme: transport.scheme.to_owned(),
        stamps,
    };
    let mut server = Child::start("server", PART_COMMAND, &Part::Server(order))?;
    let Serving { reference } = server.hear(up)?;
    let order = ClientOrder {
        scheme: transport.scheme.to_owned(),
        stamps,
        reference,
        warm_up: plan.warm_up,
        calls: plan.calls,
    };
    let mut client = Child::start("client", PART_COMMAND, &Part::Client(order))?;
    let Ready {} = client.hear(up)?;
    Cpus::of_this_process()?.place(placement, client.id(), server.id())?;
    let patience = Deadline::after(START_UP + CALL * (plan.warm_up + plan.calls));
    client.tell(&Begin {})?;
    let of_client: Told = client.hear(patience)?;
    client.finish(Deadline::after(WIND_DOWN))?;
    server.tell(&Tell {})?;
    let of_server: Told = server.hear(Deadline::after(WIND_DOWN))?;
    server.stop(Deadline::after(WIND_DOWN))?;
    let calls = plan.calls as usize;
    let followed = path::follow(&of_client, &of_server);
    // Those that a stamp is missing of, or that something came between, are few or the figures mean nothing.
    if followed.len() < calls / 10 * 9 {
        return Err(TimeProbesError::Lost {
            calls,
            followed: followed.len(),
        });
    }
    let first = followed.len().saturating_sub(calls);
    Ok(followed[first..].to_vec())
}

/// More than a thread puts down for a call, by any transport.
const STAMPS_OF_A_CALL: usize = 40;
/// How long processes may take to start, and to call for the first time.
const START_UP: Duration = Duration::from_secs(20);
/// How long a call may take, on a busy machine.
const CALL: Duration = Duration::from_millis(20);
/// How long processes may take to end.
const WIND_DOWN: Duration = Duration::from_secs(20);
