//! The client, which calls with stamps or without.

use chronorb::prelude::*;
use chronorb_probe::stamp;
use chronorb_rt::Monotonic;

use super::order::{CALL, ClientCalls, ClientReport, Endpoint, RESULT, stamps_since};
use crate::error::LabError;
use crate::idl::peers::Power;
use crate::process::{self, Begin, Parent, Ready};

/// Connects, warms up, reports, waits for the order to begin, calls, and reports times and stamps.
pub(super) fn call(endpoint: &Endpoint, order: &ClientCalls) -> Result<(), LabError> {
    // A call waits for its reply as long as the parent lives.
    let parent = Parent::or_exit();
    let orb = endpoint.orb()?;
    let power = find(&orb, &order.reference)?;
    let is_stamped = endpoint.stamps.is_some();
    calls(&power, order.warm_up, is_stamped)?;
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    // Earlier stamps are left out: the process has been moved to its processor since.
    let begin = Monotonic::now().as_nanos();
    calls(&power, order.warm_up, is_stamped)?;
    let times_ns = calls(&power, order.calls, is_stamped)?;
    process::tell(&ClientReport {
        times_ns,
        stamps: stamps_since(begin),
    })?;
    Ok(())
}

fn find(orb: &Orb, reference: &str) -> Result<Power, LabError> {
    let failed = LabError::work("finding the object");
    let object = orb.string_to_object(reference).map_err(&failed)?;
    let power = Power::narrow(&object).map_err(LabError::work("finding the object"))?;
    power.ok_or_else(|| LabError::work("finding the object")("it is no power"))
}

/// Makes calls, and returns the time of each in nanoseconds.
fn calls(power: &Power, calls: u32, is_stamped: bool) -> Result<Vec<u64>, LabError> {
    let mut times = Vec::with_capacity(calls as usize);
    for _ in 0..calls {
        let before = Monotonic::now();
        if is_stamped {
            stamp(CALL);
        }
        let cube = power.cube(11);
        if is_stamped {
            stamp(RESULT);
        }
        times.push(Monotonic::now().as_nanos() - before.as_nanos());
        if cube.map_err(LabError::work("calling"))? != 1331 {
            return Err(LabError::work("calling")("the answer is wrong"));
        }
    }
    Ok(times)
}
