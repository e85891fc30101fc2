//! The command `chronorb`: the demonstration, the doctor, the laboratory, the view of a running
//! ORB, the IDL compiler, references, names, events, real-time I/O and schedules.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod arguments;
mod client;
mod events;
mod generated;
mod idl;
mod ior;
mod lab;
mod listen;
mod ns;
mod output;
mod peer_arguments;
mod quotas;
mod rio;
mod sched;
mod top;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use chronorb_orb::{ConfigError, OrbConfig};
use chronorb_rt::CountingAllocator;
use clap::Parser;

use arguments::{Arguments, Command, DemoArguments};

/// Counts the memory that the laboratory reports.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    let (arguments, config) = match parse() {
        Ok(parsed) => parsed,
        Err(ConfigError::Help) => return ExitCode::SUCCESS,
        Err(error) => {
            output::report_error(&error);
            return ExitCode::from(WRONG_COMMAND_LINE);
        }
    };
    // The command has no other subscriber.
    let _log = chronorb_orb::log::install(&config);
    let command = arguments.command;
    match command.unwrap_or_else(|| Command::Demo(DemoArguments::default())) {
        Command::Demo(arguments) => status(chronorb_lab::demo::run(&arguments.into())),
        Command::Doctor(arguments) => status(chronorb_doctor::run(&arguments.into())),
        Command::Top(arguments) => status(top::run(&arguments.into())),
        Command::Lab(command) => command.run(config),
        Command::Idl(command) => command.run(),
        Command::Ior(command) => command.run(config),
        Command::Ns(command) => command.run(config),
        Command::Events(command) => command.run(config),
        Command::Rio(command) => command.run(),
        Command::Sched(command) => status(command.run(config)),
        Command::Completions { shell } => status(generated::completions(shell)),
        Command::ManPages { dir } => status(generated::man_pages(&dir)),
        Command::RioGuardian => status(rio::guardian_main()),
        Command::LabChild { part, order } => status(chronorb_lab::child_main(&part, &order)),
    }
}

/// Reads the command line. Commands that make an ORB take its settings too.
fn parse() -> Result<(Arguments, OrbConfig), ConfigError> {
    let words: Vec<_> = env::args_os().skip(1).take(2).collect();
    let first = words.first().and_then(|word| word.to_str());
    if words != ["lab", "peer"]
        && words != ["sched", "serve"]
        && !matches!(first, Some("ior" | "ns" | "events"))
    {
        return Ok((Arguments::parse(), OrbConfig::default()));
    }
    let mut arguments = env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let config = OrbConfig::read(&mut arguments)?;
    Ok((Arguments::parse_from(arguments), config))
}

/// Returns the exit status of a command, and reports its failure on standard error.
fn status<T>(result: Result<T, impl Into<Box<dyn Error>>>) -> ExitCode {
    match result {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            output::report_error(&*error.into());
            ExitCode::FAILURE
        }
    }
}

const WRONG_COMMAND_LINE: u8 = 2;
