//! The server: one object, and stamps.

use chronorb::prelude::*;
use chronorb_orb::StageProbe;
use chronorb_rt::{keep_stamps, stamp};

use super::error::TimeProbesError;
use super::order::{SERVANT, SERVED, ServerOrder, Serving, Tell, told};
use super::plan::{TRANSPORTS, Transport};
use crate::idl::peers::{PowerServant, PowerSkeleton};
use crate::process::{self, Parent};

/// Serves until the parent closes standard input.
pub(super) fn serve(order: &ServerOrder) -> Result<(), TimeProbesError> {
    keep_stamps(order.stamps);
    let parent = Parent::listen(|| std::process::exit(0));
    let transport = transport(&order.scheme)?;
    let orb = transport
        .orb(|config| config.stage_probe = Some(StageProbe::stamps()))
        .map_err(TimeProbesError::work("starting the ORB"))?;
    let object = offer(&orb).map_err(TimeProbesError::work("offering the object"))?;
    process::tell(&Serving {
        reference: orb.object_to_string(&object),
    })?;
    let Tell {} = parent.hear()?;
    process::tell(&told())?;
    orb.run();
    Ok(())
}

/// The transport of an order.
pub(super) fn transport(scheme: &str) -> Result<Transport, TimeProbesError> {
    let mut all = TRANSPORTS.into_iter();
    all.find(|transport| transport.scheme == scheme)
        .ok_or_else(|| TimeProbesError::work("finding the transport")(scheme.to_owned()))
}

fn offer(orb: &Orb) -> Result<Object, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let object = root.serve(PowerSkeleton::new(Bench))?;
    root.manager().activate()?;
    Ok(object)
}

/// Does as little as can be.
struct Bench;

impl PowerServant for Bench {
    fn cube(&self, _call: &Call<'_>, value: u8) -> Result<i32, SystemException> {
        stamp(SERVANT);
        let cube = i32::from(value).pow(3);
        stamp(SERVED);
        Ok(cube)
    }
}
