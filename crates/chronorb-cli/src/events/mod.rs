//! `chronorb events`: the event channel, and its suppliers and consumers.

mod channel;
mod push;
mod serve;
mod stats;
mod tap;

use std::io;
use std::process::ExitCode;

use chronorb_orb::OrbConfig;
use clap::Subcommand;

use channel::EventsError;
use push::PushArguments;
use serve::EventServerArguments;
use stats::StatsArguments;
use tap::TapArguments;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Serve an event channel: RtecEventChannelAdmin::EventChannel of TAO.
    ///
    /// Prints the references of the channel, one in a line, when clients can use it, and serves
    /// until it is destroyed, SIGTERM or Ctrl-C. Only programs on this machine reach it, unless
    /// --listen names another address. Takes -ORB options too, as -ORBServerTransportRule for the
    /// clients that may connect.
    #[command(after_help = serve::EXAMPLES)]
    Serve(EventServerArguments),

    /// Subscribe to a channel, and print the events that it pushes.
    ///
    /// Prints a line for each set of events: source:type, and the payload. A filter of groups makes
    /// sets of several events. Ends after --count sets, when the channel is destroyed or does not
    /// answer (but see --reconnect), by SIGTERM or Ctrl-C.
    #[command(after_help = tap::EXAMPLES)]
    Tap(TapArguments),

    /// Push events to a channel.
    ///
    /// Each event is pushed when the channel has dispatched the one before.
    #[command(after_help = push::EXAMPLES)]
    Push(PushArguments),

    /// Show the consumers and suppliers of a channel of chronorb, with what they got and lost.
    #[command(after_help = stats::EXAMPLES)]
    Stats(StatsArguments),
}

impl EventsCommand {
    /// Runs the command with the settings of the command line, and returns the exit status.
    pub(crate) fn run(self, config: OrbConfig) -> ExitCode {
        let outcome = match self {
            Self::Serve(arguments) => serve::run(arguments, config),
            Self::Tap(arguments) => tap::run(arguments, config),
            Self::Push(arguments) => push::run(&arguments, config),
            Self::Stats(arguments) => stats::run(&arguments, config),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            // The reader of the output has closed it.
            Err(EventsError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(error) => {
                output::report_error(&error);
                ExitCode::FAILURE
            }
        }
    }
}
