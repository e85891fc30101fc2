//! The services that are attacked, with the default settings of the commands that serve them.

use chronorb::poa::Poa;
use chronorb::prelude::*;
use chronorb_naming::NameServer;
use chronorb_rtec::{EventServer, keep_order};
use chronorb_sched_service::SchedulingService;

use super::super::victim::{limit_memory, orb_with, target_of};
use super::attack::AttackedService;
use crate::bench;
use crate::error::LabError;

/// Serves until the parent closes standard input.
pub(in super::super) fn serve(service: AttackedService) -> Result<(), LabError> {
    limit_memory()?;
    let orb = orb_with(|config| {
        if service == AttackedService::Events {
            keep_order(config);
        }
    })?;
    let root = orb.root_poa().map_err(LabError::work(SERVING))?;
    root.manager().activate().map_err(LabError::work(SERVING))?;
    match service {
        AttackedService::Names => {
            let service = NameServer::new().serve_in(&root);
            let service = service.map_err(LabError::work(SERVING))?;
            offer(&orb, service.root())
        }
        AttackedService::Events => {
            let service = EventServer::new().serve_in(&root);
            let service = service.map_err(LabError::work(SERVING))?;
            offer(&orb, service.channel())
        }
        AttackedService::Scheduling => offer(&orb, &scheduler(&root)?),
    }
}

fn scheduler(root: &Poa) -> Result<Object, LabError> {
    let service = SchedulingService::new().serve_in(root);
    service.map_err(LabError::work(SERVING))
}

fn offer(orb: &Orb, object: &Object) -> Result<(), LabError> {
    let target = target_of(orb, object).map_err(LabError::work("offering the service"))?;
    bench::serve(orb, &target)
}

const SERVING: &str = "serving a service";
