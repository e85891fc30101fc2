//! The mission computer, the process of the node `mission`.

use std::io::{self, Read};
use std::sync::Arc;

use avionics_example::{
    DisplaySkeleton, FlightSkeleton, MaintenanceSkeleton, MissionComputer, NavigationSkeleton,
    ProcessorChoice, pin,
};
use chronorb::Servant;
use chronorb::prelude::*;

use crate::Failure;

/// Prints a reference for each interface, serves until standard input ends, and then prints the
/// longest execution time of each operation.
pub(crate) fn serve(args: &mut Vec<String>) -> Result<(), Failure> {
    pin(ProcessorChoice::Last)?;
    // The lanes of the node are made here.
    let orb = Orb::init(args)?;
    let scheduler = orb.server_scheduler();
    let scheduler = scheduler.ok_or("start it with -ORBSchedule FILE")?;

    let root = orb.root_poa()?;
    let poa = scheduler.create_poa(&root, "mission", Some(root.manager()), &[])?;
    let objects: [(&str, Servant); 4] = [
        (
            "Avionics::Flight",
            Arc::new(FlightSkeleton::new(MissionComputer)),
        ),
        (
            "Avionics::Navigation",
            Arc::new(NavigationSkeleton::new(MissionComputer)),
        ),
        (
            "Avionics::Display",
            Arc::new(DisplaySkeleton::new(MissionComputer)),
        ),
        (
            "Avionics::Maintenance",
            Arc::new(MaintenanceSkeleton::new(MissionComputer)),
        ),
    ];
    for (name, servant) in objects {
        let object = scheduler.serve(&poa, name, servant)?;
        println!("{name} {}", orb.object_to_string(&object));
    }
    root.manager().activate()?;

    io::stdin().read_to_end(&mut Vec::new())?;
    for operation in orb.snapshot().operations {
        if let Some(name) = operation.scheduled_as {
            println!("{name} {}", operation.worst_execution.as_nanos());
        }
    }
    Ok(orb.shutdown(true)?)
}
