//! `chronorb rio`: real-time I/O, set up and examined.

mod guardian;
mod setup;

use std::process::ExitCode;

use clap::Subcommand;

pub(crate) use guardian::{COMMAND as GUARDIAN_COMMAND, main as guardian_main};

use crate::status;
use setup::SetupArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum RioCommand {
    /// Build a test network, or prepare an interface, until Ctrl-C.
    ///
    /// With --netns: two hosts with a switch between them, on this machine. Each is a network
    /// namespace, in which programs are started by `ip netns exec`. The switch holds a rate.
    ///
    /// It stays in the foreground, and undoes all when it is ended by Ctrl-C or SIGTERM. If it is
    /// killed, a guardian process does so.
    #[command(after_help = setup::EXAMPLES)]
    Setup(SetupArguments),
}

impl RioCommand {
    /// Does what the command says; the result is the exit status.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            Self::Setup(arguments) => status(setup::run(&arguments)),
        }
    }
}
