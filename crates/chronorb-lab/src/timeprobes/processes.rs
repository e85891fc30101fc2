//! Server and client, with stamps or without.

use chronorb::prelude::*;
use chronorb_orb::StageProbe;
use chronorb_probe::{keep_stamps, stamp};
use chronorb_rt::Monotonic;

use super::order::{
    CALL, ClientCalls, ClientReport, Endpoint, RESULT, SERVANT, SERVED, StampsOrder, stamps_since,
};
use super::plan::orb;
use crate::error::LabError;
use crate::idl::peers::{Power, PowerServant, PowerSkeleton};
use crate::process::{self, Begin, Parent, Ready};

/// Serves until the parent closes standard input.
pub(super) fn serve(endpoint: &Endpoint) -> Result<(), LabError> {
    let parent = Parent::listen(|| std::process::exit(0));
    let orb = endpoint.orb()?;
    let object = offer(&orb, endpoint.stamps.is_some())?;
    process::tell(&orb.object_to_string(&object))?;
    let StampsOrder {} = parent.hear()?;
    process::tell(&stamps_since(0))?;
    orb.run();
    Ok(())
}

impl Endpoint {
    /// Starts the ORB. If stamps are kept, it records one at each stage.
    pub(super) fn orb(&self) -> Result<Orb, LabError> {
        let orb = orb(&self.scheme, self.certificates.as_deref(), |config| {
            config.stage_probe = self.stamps.map(|each| {
                keep_stamps(each);
                StageProbe::stamps()
            });
        });
        orb.map_err(LabError::work("starting the ORB"))
    }
}

/// Activates an object that does as little as possible.
pub(super) fn offer(orb: &Orb, is_stamped: bool) -> Result<Object, LabError> {
    let offer = || {
        let root = orb.root_poa()?;
        let object = root.serve(PowerSkeleton::new(ProbedPower { is_stamped }))?;
        root.manager().activate()?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(object)
    };
    offer().map_err(LabError::work("offering the object"))
}

struct ProbedPower {
    /// Whether it records a stamp where it begins, and where it ends.
    is_stamped: bool,
}

impl PowerServant for ProbedPower {
    fn cube(&self, _call: &Call<'_>, value: u8) -> Result<i32, SystemException> {
        if self.is_stamped {
            stamp(SERVANT);
        }
        let cube = i32::from(value).pow(3);
        if self.is_stamped {
            stamp(SERVED);
        }
        Ok(cube)
    }
}

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
    let object = orb.string_to_object(reference);
    let power = object.and_then(|object| Power::narrow(&object));
    let power = power.map_err(LabError::work("finding the object"))?;
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
