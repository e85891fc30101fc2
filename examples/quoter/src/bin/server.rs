//! Offers quotes: `quoter-server [-ORBListenEndpoints iiop://127.0.0.1:2809 …]`.
//!
//! Prints the object's reference and serves until Ctrl-C.

use std::error::Error;

use chronorb::prelude::*;
use quoter_example::{Book, QuoterSkeleton};

fn main() -> Result<(), Box<dyn Error>> {
    let orb = Orb::init(&mut std::env::args().collect())?;
    let root = orb.root_poa()?;
    let object = root.serve(QuoterSkeleton::new(Book::acme()))?;
    root.manager().activate()?;
    println!("{}", orb.object_to_string(&object));
    orb.run_until_signal()?;
    Ok(())
}
