//! Makes a thread pool with a low and a high lane, and lists the ORB's threads with what the
//! kernel says of their scheduling: `cargo run -p lanes-example -- [-ORB…]`.

use std::error::Error;
use std::process::ExitCode;

use chronorb::prelude::*;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lanes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let orb = Orb::init(&mut std::env::args().collect())?;
    let lane = |value, threads| Some(Lane::new(Priority::new(value)?, threads));
    let lanes = [lane(8_000, 2), lane(24_000, 1)];
    orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: lanes.into_iter().flatten().collect(),
        ..Default::default()
    })?;
    for thread in chronorb_rt::list() {
        println!("{:<16} {}", thread.name, thread.scheduling);
    }
    orb.shutdown(true)?;
    Ok(())
}
