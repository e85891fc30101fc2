//! A program that carries its own name server, and binds an object of its own for its life.

use std::error::Error;
use std::time::Duration;

use chronorb::prelude::*;
use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext};
use chronorb_naming::{Limits, NameServer, bind_for_life};

/// The lease of the binding: the server removes it this long after the program has crashed.
const TIME_TO_LIVE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let orb = Orb::init(&mut std::env::args().collect())?;
    let root = orb.root_poa()?;
    let service = NameServer::new()
        .limits(Limits::default())
        .serve_in(&root)?;
    root.manager().activate()?;
    let context = NamingContext::unchecked_narrow(service.root());
    let plant = NameComponent {
        id: "plant",
        kind: "",
    };
    let mixer = context.bind_new_context(&[plant])?.ok_or("no context")?;
    // A context is an object like any other.
    let mixer = mixer.as_object().clone();
    let bound = bind_for_life(service.root(), "plant/mixer.device", &mixer, TIME_TO_LIVE)?;
    println!("bound: {}", bound.is_bound());
    println!("{}", orb.object_to_string(service.root()));
    orb.run_until_signal()?;
    Ok(())
}
