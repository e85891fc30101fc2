//! The server: one object, and stamps.

use chronorb::Skeleton;
use chronorb::prelude::*;
use chronorb_orb::StageProbe;
use chronorb_probe::{keep_stamps, stamp};

use super::order::{SERVANT, SERVED, ServerOrder, Serving, Tell, told};
use super::plan::transport;
use crate::error::LabError;
use crate::idl::peers::{PowerServant, PowerSkeleton};
use crate::process::{self, Parent};

/// Serves until the parent closes standard input.
pub(super) fn serve(order: &ServerOrder) -> Result<(), LabError> {
    let parent = Parent::listen(|| std::process::exit(0));
    let transport = transport(&order.scheme)?;
    let orb = transport
        .orb(order.certificates.as_deref(), |config| {
            config.stage_probe = probe(order.stamps);
        })
        .map_err(LabError::work("starting the ORB"))?;
    let object = match order.stamps {
        Some(_) => offer_stamped(&orb),
        None => offer(&orb),
    };
    let object = object.map_err(LabError::work("offering the object"))?;
    process::tell(&Serving {
        reference: orb.object_to_string(&object),
    })?;
    let Tell {} = parent.hear()?;
    process::tell(&told())?;
    orb.run();
    Ok(())
}

/// Keeps so many stamps, if any, and has the ORB put them down.
pub(super) fn probe(stamps: Option<usize>) -> Option<StageProbe> {
    stamps.map(|each| {
        keep_stamps(each);
        StageProbe::stamps()
    })
}

/// An object that does as little as can be.
pub(super) fn offer(orb: &Orb) -> Offered {
    serve_by(orb, PowerSkeleton::new(Plain))
}

/// One that puts stamps down where it begins, and where it ends.
fn offer_stamped(orb: &Orb) -> Offered {
    serve_by(orb, PowerSkeleton::new(Stamped))
}

type Offered = Result<Object, Box<dyn std::error::Error + Send + Sync>>;

fn serve_by(orb: &Orb, servant: impl Skeleton + 'static) -> Offered {
    let root = orb.root_poa()?;
    let object = root.serve(servant)?;
    root.manager().activate()?;
    Ok(object)
}

struct Plain;

impl PowerServant for Plain {
    fn cube(&self, _call: &Call<'_>, value: u8) -> Result<i32, SystemException> {
        Ok(i32::from(value).pow(3))
    }
}

struct Stamped;

impl PowerServant for Stamped {
    fn cube(&self, _call: &Call<'_>, value: u8) -> Result<i32, SystemException> {
        stamp(SERVANT);
        let cube = i32::from(value).pow(3);
        stamp(SERVED);
        Ok(cube)
    }
}
