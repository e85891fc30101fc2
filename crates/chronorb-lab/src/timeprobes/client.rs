//! The client: calls, and stamps.

use chronorb::prelude::*;
use chronorb_orb::StageProbe;
use chronorb_rt::{keep_stamps, stamp};

use super::error::TimeProbesError;
use super::order::{Begin, CALL, ClientOrder, RESULT, Ready, told};
use super::server::transport;
use crate::idl::peers::Power;
use crate::process::{self, Parent};

/// Connects, warms up, reports, waits for the beginning, calls, and tells its stamps.
pub(super) fn call(order: &ClientOrder) -> Result<(), TimeProbesError> {
    keep_stamps(order.stamps);
    // Whoever waits for a reply waits as long as the parent lives.
    let parent = Parent::listen(|| std::process::exit(ABANDONED));
    let orb = transport(&order.scheme)?
        .orb(|config| config.stage_probe = Some(StageProbe::stamps()))
        .map_err(TimeProbesError::work("starting the ORB"))?;
    let power = find(&orb, &order.reference)?;
    calls(&power, order.warm_up)?;
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    // What came before is not told: it was made wherever the process was put first.
    let begun = chronorb_rt::Monotonic::now().as_nanos();
    calls(&power, order.warm_up)?;
    calls(&power, order.calls)?;
    let mut all = told();
    for thread in &mut all.threads {
        thread.marks.retain(|(_, at)| *at >= begun);
    }
    process::tell(&all)?;
    Ok(())
}

fn find(orb: &Orb, reference: &str) -> Result<Power, TimeProbesError> {
    let failed = TimeProbesError::work("finding the object");
    let object = orb.string_to_object(reference).map_err(&failed)?;
    let power = Power::narrow(&object).map_err(TimeProbesError::work("finding the object"))?;
    power.ok_or_else(|| TimeProbesError::work("finding the object")("it is no power"))
}

fn calls(power: &Power, calls: u32) -> Result<(), TimeProbesError> {
    for _ in 0..calls {
        stamp(CALL);
        let cube = power.cube(11);
        stamp(RESULT);
        match cube {
            Ok(1331) => {}
            Ok(_) => return Err(TimeProbesError::work("calling")("the answer is wrong")),
            Err(exception) => return Err(TimeProbesError::work("calling")(exception)),
        }
    }
    Ok(())
}

/// The exit status of a client whose parent is gone.
const ABANDONED: i32 = 3;
