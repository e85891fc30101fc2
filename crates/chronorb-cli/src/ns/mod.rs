//! `chronorb ns`: the name server.

mod serve;

use chronorb_orb::OrbConfig;
use clap::Subcommand;

use serve::{ServeArguments, ServeFailure};

#[derive(Debug, Subcommand)]
pub(crate) enum NsCommand {
    /// Serve names: the naming service of CORBA (CosNaming).
    ///
    /// Prints the references of the root context, one in a line, when clients can use it, and
    /// serves until SIGTERM or Ctrl-C. The names are kept in memory. Only programs on this machine
    /// reach the server, unless --listen names another address. Takes -ORB options too, as
    /// -ORBServerTransportRule for the clients that may connect.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArguments),
}

impl NsCommand {
    /// Runs the command with the settings of the command line.
    pub(crate) fn run(self, config: OrbConfig) -> Result<(), ServeFailure> {
        match self {
            Self::Serve(arguments) => serve::run(arguments, config),
        }
    }
}

const SERVE_EXAMPLES: &str = "\
Examples:
  chronorb ns serve
  chronorb ns serve --listen iiop://:2809 --reap 60
  chronorb ns serve --listen iiop://10.0.0.1:2809 -ORBServerTransportRule '10.0.0.0/24 tcp'

Clients reach the root context by corbaloc::HOST:2809/NameService, as in the option
-ORBInitRef NameService=corbaloc::HOST:2809/NameService.";
