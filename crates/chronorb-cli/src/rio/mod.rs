//! `chronorb rio`: real-time I/O, set up and examined.

mod guardian;
mod plan;
mod setup;
mod status;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use guardian::{COMMAND as GUARDIAN_COMMAND, main as guardian_main};

use crate::status;
use plan::PlanArguments;
use setup::SetupArguments;
use status::StatusArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum RioCommand {
    /// Build a test network, or prepare an interface, until Ctrl-C.
    ///
    /// With --netns: two hosts with a switch between them, on this machine. Each is a network
    /// namespace, in which programs are started by `ip netns exec`. The switch holds a
    /// rate and a delay.
    ///
    /// With --kernel: an interface whose kernel keeps a plan. Each class has its share of the sent
    /// traffic, by its ports or its DSCP, and threads with a priority receive packets.
    ///
    /// Stays in the foreground, and undoes all changes when Ctrl-C or SIGTERM ends it. If it is
    /// killed, a guardian process undoes them.
    #[command(after_help = setup::EXAMPLES)]
    Setup(SetupArguments),

    /// Find out whether the promises of a plan can be kept.
    ///
    /// Checks processors by the longest response times of all classes, the network by its rate, and
    /// queues by the windows of connections. Shows what each class takes and gets, and for each
    /// promise that cannot be kept the excess and the values that would fit. Does not depend on
    /// this machine: the plan can be for another one.
    #[command(after_help = plan::EXAMPLES)]
    Plan(PlanArguments),

    /// Show the activity of the classes of running processes.
    ///
    /// A live view of all processes that run RIO: for each class its packets, queue, drops,
    /// connections and latencies. It is read from their memory, and costs them nothing. If the
    /// output is not a terminal, one table follows the other.
    #[command(after_help = status::EXAMPLES)]
    Status(StatusArguments),
}

impl RioCommand {
    /// Runs the command, and returns the exit status.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            Self::Setup(arguments) => status(setup::run(&arguments)),
            Self::Plan(arguments) => status(plan::run(&arguments)),
            Self::Status(arguments) => status(status::run(&arguments)),
        }
    }
}
