//! `chronorb sched`: execution times for schedules.

mod learn;

use clap::Subcommand;

use learn::{LearnArguments, LearnError};

#[derive(Debug, Subcommand)]
pub(crate) enum SchedCommand {
    /// Write the execution times that a running ORB has measured into a schedule.
    ///
    /// Takes the longest execution of each operation from the monitor of an ORB that was started
    /// with -ORBMonitor and -ORBMeasure, adds the margin, and writes it as wcet. All other text of
    /// the file stays as it is.
    #[command(after_help = learn::EXAMPLES)]
    Learn(LearnArguments),
}

impl SchedCommand {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<(), LearnError> {
        match self {
            Self::Learn(arguments) => learn::run(&arguments),
        }
    }
}
