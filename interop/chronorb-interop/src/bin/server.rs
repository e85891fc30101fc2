//! `chronorb-interop-server --ior-file FILE [--bind NAME] [-ORB…]`
//!
//! Serves `Interop::Hub` until its operation `shutdown` is called or SIGTERM or SIGINT arrives.
//! Writes its reference to FILE, and binds it to NAME in the naming service if `--bind` is given.

use std::process::ExitCode;

use chronorb::prelude::*;
use chronorb_interop::{Failure, bind, serve, write_file};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("chronorb-interop-server: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut args = std::env::args().collect();
    let orb = Orb::init(&mut args)?;
    let arguments = Arguments::read(&args[1..])?;
    let hub = serve(&orb)?;
    if let Some(name) = &arguments.bind {
        bind(&orb, name, hub.as_object())?;
    }
    if let Some(path) = &arguments.ior_file {
        write_file(path, &orb.object_to_string(hub.as_object()))?;
    }
    Ok(orb.run_until_signal()?)
}

#[derive(Default)]
struct Arguments {
    ior_file: Option<String>,
    bind: Option<String>,
}

impl Arguments {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let mut this = Self::default();
        let mut args = args.iter();
        while let Some(option) = args.next() {
            let value = match option.as_str() {
                "--ior-file" => &mut this.ior_file,
                "--bind" => &mut this.bind,
                _ => return Err(USAGE.into()),
            };
            *value = Some(args.next().ok_or(USAGE)?.clone());
        }
        Ok(this)
    }
}

const USAGE: &str = "usage: chronorb-interop-server --ior-file FILE [--bind NAME] [-ORB…]";
