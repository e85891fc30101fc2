//! Offers quotes at two priorities: `lanes-server [-ORB…]`.

use std::error::Error;

use chronorb::prelude::*;
use quoter_example::{Book, QuoterSkeleton};

fn main() -> Result<(), Box<dyn Error>> {
    let orb = Orb::init(&mut std::env::args().collect())?;
    let root = orb.root_poa()?;
    let low = Priority::try_from(8_000)?;
    let high = Priority::try_from(24_000)?;

    // A lane for each priority: two threads for the low one, one for the high one.
    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(low, 2), Lane::new(high, 1)],
        ..Default::default()
    })?;
    // Requests have the priority of the client's thread, and `low` if it has none.
    let poa = root.create_poa(
        "quotes",
        Some(root.manager()),
        &[
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ClientPropagated, low),
        ],
    )?;
    let object = poa.serve(QuoterSkeleton::new(Book::acme()))?;

    orb.register_initial_reference("Quoter", &object)?;
    root.manager().activate()?;
    orb.catch_signals()?;
    println!("{}", orb.object_to_string(&object));
    orb.run_until_signal()?;
    Ok(())
}
