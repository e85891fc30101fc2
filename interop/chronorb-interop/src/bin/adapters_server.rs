//! `chronorb-interop-adapters-server --name NAME --ior-file FILE [-ORB…]`
//!
//! Serves `Adapters::Control` until its operation `shutdown` is called or SIGTERM or SIGINT
//! arrives. Writes its reference to FILE. Its items return NAME as the name of their server.

use std::process::ExitCode;

use chronorb::prelude::*;
use chronorb_interop::{Failure, serve_adapters, write_file};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("chronorb-interop-adapters-server: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut args: Vec<String> = std::env::args().collect();
    let orb = Orb::init(&mut args)?;
    let [_, name_option, name, file_option, file] = &args[..] else {
        return Err(USAGE.into());
    };
    if name_option != "--name" || file_option != "--ior-file" {
        return Err(USAGE.into());
    }
    let control = serve_adapters(&orb, name)?;
    write_file(file, &orb.object_to_string(control.as_object()))?;
    Ok(orb.run_until_signal()?)
}

const USAGE: &str = "usage: chronorb-interop-adapters-server --name NAME --ior-file FILE [-ORB…]";
