//! Settings of the real-time I/O subsystem.

use std::path::PathBuf;

use chronorb_rio::DriverChoice;

use super::OrbConfig;

/// The network interface and the parameters of the real-time I/O subsystem, which carries IIOP
/// (`riop`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RioSettings {
    /// `-ORBRioInterface NAME`: calls go by this interface, to servers that are reached by it; none
    /// by default, so that `riop` is for endpoints only.
    pub interface: Option<String>,
    /// `-ORBRioDriver`: the driver of the interface, also for endpoints that name none.
    pub driver: DriverChoice,
    /// `-ORBRioPlan FILE`: the reservations of the interface's classes, in TOML.
    pub plan: Option<PathBuf>,
}

/// The plan that a schedule makes for the interface of the program's node.
#[cfg(feature = "schedule")]
#[derive(Clone, Debug)]
pub(crate) struct ScheduledPlan {
    /// The lock file of the schedule.
    pub(crate) lock: PathBuf,
    /// The text of the plan.
    pub(crate) text: String,
}

pub(super) fn interface(config: &mut OrbConfig, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("there is no name".to_owned());
    }
    config.rio.interface = Some(text.to_owned());
    Ok(())
}
