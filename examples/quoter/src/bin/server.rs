//! Offers quotes: `quoter-server [-ORBListenEndpoints iiop://127.0.0.1:2809 …]`.
//!
//! Prints the object's reference and serves until Ctrl-C. Clients that know host and port can
//! also say `corbaloc::HOST:PORT/Quoter`.

use std::error::Error;

use chronorb::prelude::*;
use quoter_example::{Book, QuoterSkeleton};

fn main() -> Result<(), Box<dyn Error>> {
    let orb = Orb::init(&mut std::env::args().collect())?;
    let root = orb.root_poa()?;
    let object = root.serve(QuoterSkeleton::new(Book::acme()))?;
    orb.register_initial_reference("Quoter", &object)?;
    root.manager().activate()?;
    orb.catch_signals()?;
    println!("{}", orb.object_to_string(&object));
    orb.run_until_signal()?;
    Ok(())
}
