//! Serves one `Calls::Echo`, prints its reference, and ends with its standard input.
//!
//! Usage: `calls-server [-ORB…] [FIFO]`. Oneways are acknowledged through the FIFO.

use std::error::Error;
use std::io;

use calls_bench::idl::calls::EchoSkeleton;
use calls_bench::{Mirror, Pace};
use chronorb::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().collect();
    let orb = Orb::init(&mut arguments)?;
    let pace = arguments.get(1).map(|path| Pace::open(path)).transpose()?;
    let root = orb.root_poa()?;
    let object = root.serve(EchoSkeleton::new(Mirror { pace }))?;
    root.manager().activate()?;
    println!("{}", orb.object_to_string(&object));
    io::copy(&mut io::stdin(), &mut io::sink())?;
    orb.shutdown(true)?;
    Ok(())
}
