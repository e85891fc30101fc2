//! Calls at a priority: `lanes-client REFERENCE PRIORITY [-ORB…]`.

use std::error::Error;
use std::time::Instant;

use chronorb::prelude::*;
use quoter_example::Quoter;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().collect();
    let orb = Orb::init(&mut args)?;
    let [_, reference, priority] = args.as_slice() else {
        return Err("usage: lanes-client REFERENCE PRIORITY".into());
    };

    // The calls of this thread have this priority from now on.
    orb.rt_current()
        .set_priority(Priority::try_from(priority.parse::<i16>()?)?)?;
    let object = orb.string_to_object(reference)?;
    let quoter = Quoter::narrow(&object)?.ok_or("the object is no Quoter")?;
    // Connects to the lane of the priority, so that no call has to.
    quoter.as_object().validate_connection()?;

    let mut times = Vec::with_capacity(1000);
    for n in 0..1000 {
        let begun = Instant::now();
        quoter.ping(n)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!(
        "priority {priority}: median {:?}, longest {:?}",
        times[500], times[999]
    );
    Ok(())
}
