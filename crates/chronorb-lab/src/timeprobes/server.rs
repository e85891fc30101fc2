//! The server: one object, with stamps or without.

use chronorb::prelude::*;
use chronorb_orb::StageProbe;
use chronorb_probe::{keep_stamps, stamp};

use super::order::{Endpoint, SERVANT, SERVED, StampsOrder, stamps_since};
use super::plan::orb;
use crate::error::LabError;
use crate::idl::peers::{PowerServant, PowerSkeleton};
use crate::process::{self, Parent};

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
