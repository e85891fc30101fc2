//! `chronorb ns`: the name server, and names of objects as its clients see them.

mod arguments;
mod binding;
mod export;
mod gc;
mod import;
mod list;
mod names;
mod serve;
mod survey;

use std::io;
use std::process::ExitCode;

use chronorb_orb::OrbConfig;

pub(crate) use arguments::{NsCommand, ServerArguments};
pub(crate) use binding::{Binding, calling_config};
pub(crate) use names::{NameServer, NsError};

use crate::client::ClientError;
use crate::output;

impl NsCommand {
    /// Runs the command with the settings of the command line, and returns the exit status.
    pub(crate) fn run(self, config: OrbConfig) -> ExitCode {
        let outcome = match self {
            Self::Serve(arguments) => serve::run(arguments, config)
                .map_err(NsError::from)
                .map(|()| true),
            Self::List(arguments) => list::run(&arguments, config),
            Self::Resolve { server, name } => NameServer::connect(&server, config)
                .and_then(|names| names.resolve_waiting(&name, server.wait()))
                .and_then(|object| Ok(output::print(&format!("{}\n", object.ior()))?))
                .map(|()| true),
            Self::Bind {
                server,
                name,
                reference,
            } => NameServer::connect(&server, config)
                .and_then(|names| names.bind(&name, &reference))
                .map(|()| true),
            Self::Rebind {
                server,
                name,
                reference,
            } => NameServer::connect(&server, config)
                .and_then(|names| names.rebind(&name, &reference))
                .map(|()| true),
            Self::Unbind { server, name } => NameServer::connect(&server, config)
                .and_then(|names| names.unbind(&name))
                .map(|()| true),
            Self::Mkdir {
                server,
                parents,
                name,
            } => NameServer::connect(&server, config)
                .and_then(|names| names.make_context(&name, parents))
                .map(|()| true),
            Self::Export(arguments) => export::run(&arguments, config),
            Self::Import(arguments) => import::run(&arguments, config),
            Self::Gc(arguments) => gc::run(&arguments, config),
        };
        match outcome {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(NO),
            // The reader of the output has closed it.
            Err(NsError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(error @ NsError::NotFound { .. }) => {
                output::report_error(&error);
                ExitCode::from(NO)
            }
            Err(error) => {
                output::report_error(&error);
                ExitCode::FAILURE
            }
        }
    }
}

impl From<ClientError> for NsError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// The exit status where a name is not bound, an object is not there, or something is left out.
const NO: u8 = 3;
