//! The smallest server: one interface, over IIOP. Prints the object's reference and serves until
//! Ctrl-C.
//!
//! `cargo build --profile min --package minimal-example` builds it as small as it gets.

use std::error::Error;

use chronorb::prelude::*;

mod idl {
    chronorb::include_idl!("powers");
}

struct Powers;

impl idl::PowersServant for Powers {
    fn cube(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        Ok(n.wrapping_mul(n).wrapping_mul(n))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let orb = Orb::init(&mut std::env::args().collect())?;
    let root = orb.root_poa()?;
    let object = root.serve(idl::PowersSkeleton::new(Powers))?;
    root.manager().activate()?;
    orb.catch_signals()?;
    println!("{}", orb.object_to_string(&object));
    orb.run_until_signal()?;
    Ok(())
}
