//! Calls over a serial line: `serial-line serve /dev/ttyS1 [-ORB…]` prints a reference for the
//! other end of the line, `serial-line call IOR:… [-ORB…]` calls by it. The lines of this machine
//! that are joined by a cable, or by `socat pty,raw,link=/tmp/a pty,raw,link=/tmp/b`, will do.

use std::error::Error;
use std::process::ExitCode;

use chronorb::prelude::*;
use chronorb::transport::parse_endpoints;
use quoter_example::{Book, Quoter, QuoterSkeleton};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("serial-line: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = std::env::args().collect();
    let mut config = OrbConfig::read(&mut args)?;
    config.add_protocol(serial_line_example::protocol());
    match &args[..] {
        [_, what, near, far] if what == "serve" => {
            let mut endpoints = parse_endpoints(&format!("serial://{near}|far={far}"))?;
            config.listen_endpoints.append(&mut endpoints);
            serve(config)
        }
        [_, what, reference] if what == "call" => call(config, reference),
        _ => Err("usage: serial-line serve LINE OTHER-END | serial-line call REFERENCE".into()),
    }
}

/// Serves at the near end of a line, and prints the reference for the client at its far end.
fn serve(config: OrbConfig) -> Result<(), Box<dyn Error>> {
    let orb = Orb::with_config(config)?;
    let root = orb.root_poa()?;
    let object = root.serve(QuoterSkeleton::new(Book::acme()))?;
    root.manager().activate()?;
    println!("{}", orb.object_to_string(&object));
    orb.run_until_signal()?;
    Ok(())
}

fn call(config: OrbConfig, reference: &str) -> Result<(), Box<dyn Error>> {
    let orb = Orb::with_config(config)?;
    let quoter = Quoter::narrow(&orb.string_to_object(reference)?)?.ok_or("not a Quoter")?;
    let quote = quoter.get_quote("ACME", &[0.0, 0.25])?;
    println!("{}: {:?} {:?}", quote.symbol, quote.levels, quote.curve);
    orb.shutdown(true)?;
    Ok(())
}
