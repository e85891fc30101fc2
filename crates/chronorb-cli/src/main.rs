//! The command `chronorb`: the demonstration, the doctor, the laboratory, the view of a running ORB
//! and the IDL compiler.

mod arguments;
mod idl;
mod top;

use std::fmt::Display;
use std::process::ExitCode;

use chronorb_lab::{overtake, whitebox};
use chronorb_rt::CountingAllocator;
use clap::Parser;

use arguments::{Arguments, Command, DemoArguments, IdlCommand, LabCommand};

/// The laboratory tells how much memory things take.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    match command.unwrap_or_else(|| Command::Demo(DemoArguments::default())) {
        Command::Demo(arguments) => status(chronorb_lab::demo::run(&arguments.into())),
        Command::Doctor(arguments) => status(chronorb_lab::doctor::run(&arguments.into())),
        Command::Top(arguments) => status(top::run(&arguments.into())),
        Command::Lab(LabCommand::Demux(arguments)) => {
            status(chronorb_lab::demux::run(&arguments.into()))
        }
        Command::Lab(LabCommand::Overtake(arguments)) => status(overtake::run(&arguments.into())),
        Command::Lab(LabCommand::Waits(arguments)) => {
            status(chronorb_lab::waits::run(&arguments.into()))
        }
        Command::Lab(LabCommand::Whitebox(arguments)) => status(whitebox::run(&arguments.into())),
        Command::Idl(IdlCommand::Check(input)) => idl::check(&input),
        Command::Idl(IdlCommand::Rust { input, out }) => idl::rust(&input, &out),
        Command::DemoServer { order } => status(chronorb_lab::demo::server_main(&order)),
        Command::DemoClient { order } => status(chronorb_lab::demo::client_main(&order)),
        Command::OvertakeServer { order } => status(overtake::server_main(&order)),
        Command::OvertakeClient { order } => status(overtake::client_main(&order)),
        Command::WaitsServer { order } => status(chronorb_lab::waits::server_main(&order)),
        Command::WhiteboxPart { order } => status(whitebox::part_main(&order)),
    }
}

/// The exit status of what was done; a failure is told on standard error.
fn status(result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chronorb: {error}");
            ExitCode::FAILURE
        }
    }
}
