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
    /// With --kernel: an interface whose kernel keeps a plan. Each class has its share of what is
    /// sent, by its ports or its DSCP, and threads with a priority take in what comes.
    ///
    /// It stays in the foreground, and undoes all when it is ended by Ctrl-C or SIGTERM. If it is
    /// killed, a guardian process does so.
    #[command(after_help = setup::EXAMPLES)]
    Setup(SetupArguments),

    /// Find out whether what a plan promises can be kept.
    ///
    /// Looks at processors, by the longest response times of all classes; at the network, by its
    /// rate; and at queues, by the windows of connections. Says what each class takes and gets,
    /// and of each promise that cannot be kept by how much, and what would fit. Asks nothing of
    /// this machine: the plan can be for another one.
    #[command(after_help = plan::EXAMPLES)]
    Plan(PlanArguments),

    /// Show what the classes of running processes are doing.
    ///
    /// A live view of all processes that run RIO: for each class its packets, queue, drops,
    /// connections and latencies. It is read from their memory, and costs them nothing. Where the
    /// output is no terminal, one table follows the other.
    #[command(after_help = status::EXAMPLES)]
    Status(StatusArguments),
}

impl RioCommand {
    /// Does what the command says; the result is the exit status.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            Self::Setup(arguments) => status(setup::run(&arguments)),
            Self::Plan(arguments) => status(plan::run(&arguments)),
            Self::Status(arguments) => status(status::run(&arguments)),
        }
    }
}
