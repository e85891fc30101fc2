//! The client: calls, and stamps.

use chronorb::prelude::*;
use chronorb_probe::stamp;
use chronorb_rt::Monotonic;

use super::order::{CALL, ClientOrder, RESULT, Timed, told};
use super::plan::transport;
use super::server::probe;
use crate::error::LabError;
use crate::idl::peers::Power;
use crate::process::{self, Begin, Parent, Ready};

/// Connects, warms up, reports, waits for the beginning, calls, and tells its stamps, or, without, how long calls took.
pub(super) fn call(order: &ClientOrder) -> Result<(), LabError> {
    // Whoever waits for a reply waits as long as the parent lives.
    let parent = Parent::or_exit();
    let orb = transport(&order.scheme)?
        .orb(order.certificates.as_deref(), |config| {
            config.stage_probe = probe(order.stamps);
        })
        .map_err(LabError::work("starting the ORB"))?;
    let power = find(&orb, &order.reference)?;
    let is_stamped = order.stamps.is_some();
    calls(&power, order.warm_up, is_stamped)?;
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    if !is_stamped {
        calls(&power, order.warm_up, false)?;
        let calls = calls(&power, order.calls, false)?;
        process::tell(&Timed { calls })?;
        return Ok(());
    }
    // What came before is not told: it was made wherever the process was put first.
    let begun = Monotonic::now().as_nanos();
    calls(&power, order.warm_up, true)?;
    calls(&power, order.calls, true)?;
    let mut all = told();
    for thread in &mut all.threads {
        thread.marks.retain(|(_, at)| *at >= begun);
    }
    process::tell(&all)?;
    Ok(())
}

fn find(orb: &Orb, reference: &str) -> Result<Power, LabError> {
    let failed = LabError::work("finding the object");
    let object = orb.string_to_object(reference).map_err(&failed)?;
    let power = Power::narrow(&object).map_err(LabError::work("finding the object"))?;
    power.ok_or_else(|| LabError::work("finding the object")("it is no power"))
}

/// Calls so often; without stamps, times the calls.
fn calls(power: &Power, calls: u32, is_stamped: bool) -> Result<Vec<u64>, LabError> {
    let mut times = Vec::with_capacity(if is_stamped { 0 } else { calls as usize });
    for _ in 0..calls {
        let cube = if is_stamped {
            stamp(CALL);
            let cube = power.cube(11);
            stamp(RESULT);
            cube
        } else {
            let before = Monotonic::now();
            let cube = power.cube(11);
            times.push(Monotonic::now().as_nanos() - before.as_nanos());
            cube
        };
        match cube {
            Ok(1331) => {}
            Ok(_) => return Err(LabError::work("calling")("the answer is wrong")),
            Err(exception) => return Err(LabError::work("calling")(exception)),
        }
    }
    Ok(times)
}
