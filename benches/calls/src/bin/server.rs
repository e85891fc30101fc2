//! Serves one `Calls::Echo`, prints its reference, and ends with its standard input.
//!
//! Usage: `calls-server [-ORB…] [FIFO]`. Oneways are acknowledged through the FIFO. With an access
//! rule there is an authorizer too.

use std::error::Error;
use std::io;

use calls_bench::idl::calls::EchoSkeleton;
use calls_bench::{Mirror, Pace};
use chronorb::poa::AuthorizationRequest;
use chronorb::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().collect();
    let is_guarded = arguments.iter().any(|it| it == "-ORBServerTransportRule");
    let orb = Orb::init(&mut arguments)?;
    let pace = arguments.get(1).map(|path| Pace::open(path)).transpose()?;
    let root = orb.root_poa()?;
    if is_guarded {
        root.set_authorizer(|request: &AuthorizationRequest<'_>| request.operation() != b"any")?;
    }
    let object = root.serve(EchoSkeleton::new(Mirror { pace }))?;
    root.manager().activate()?;
    println!("{}", orb.object_to_string(&object));
    io::copy(&mut io::stdin(), &mut io::sink())?;
    orb.shutdown(true)?;
    Ok(())
}
