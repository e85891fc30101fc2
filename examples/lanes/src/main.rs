//! A server with a low and a high lane that buffer and lend, and a client that connects before it
//! calls: `cargo run -p lanes-example -- [-ORB…]`. Prints the kernel's view of the ORB's threads,
//! and the counters of the lanes.

use std::error::Error;
use std::process::ExitCode;

use chronorb::prelude::*;
use quoter_example::{Book, Quoter, QuoterSkeleton};

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
    let config = OrbConfig::read(&mut std::env::args().collect())?;
    // Warnings, or what -ORBLog says, go to standard error.
    let _log = chronorb::log::install(&config)?;
    let orb = Orb::with_config(config)?;
    let low = Priority::try_from(8_000)?;
    let high = Priority::try_from(24_000)?;

    let poa = serve(&orb, low, high)?;
    let object = poa.serve(QuoterSkeleton::new(Book::acme()))?;
    for thread in chronorb_rt::list() {
        println!("{:<16} {}", thread.name, thread.scheduling);
    }

    call(&orb, &object, &[low, high])?;
    for pool in orb.snapshot().pools {
        for lane in pool.lanes {
            println!(
                "lane {}: {} connection(s), {} request(s)",
                lane.name, lane.connections, lane.served
            );
        }
    }
    orb.shutdown(true)?;
    Ok(())
}

/// Returns a POA whose requests keep their clients' priorities, on a pool with two lanes.
fn serve(orb: &Orb, low: Priority, high: Priority) -> Result<Poa, Box<dyn Error>> {
    let pool = orb.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![
            // Two threads from the start, and two more when all are busy.
            Lane {
                dynamic_threads: 2,
                ..Lane::new(low, 2)
            },
            Lane::new(high, 1),
        ],
        // When the high lane's thread is busy, an idle one of the low lane serves for it.
        allow_borrowing: true,
        // When none is idle, up to 64 requests wait in each lane. One more is told so at once.
        request_buffering: Some(RequestBuffering {
            max_requests: 64,
            max_octets: 1 << 20,
        }),
        ..Default::default()
    })?;
    let root = orb.root_poa()?;
    let poa = root.create_poa(
        "quotes",
        Some(root.manager()),
        &[
            Policy::Threadpool(pool),
            Policy::PriorityModel(PriorityModel::ClientPropagated, low),
        ],
    )?;
    root.manager().activate()?;
    Ok(poa)
}

/// Calls once at each of the priorities.
fn call(orb: &Orb, object: &Object, priorities: &[Priority]) -> Result<(), Box<dyn Error>> {
    for priority in priorities {
        // This thread's calls have this priority from now on, and go to the lane of it.
        orb.rt_current().set_priority(*priority)?;
        // Connects, so that the first call need not.
        object.validate_connection()?;
        let quoter = Quoter::narrow(object)?.ok_or("the object is no Quoter")?;
        quoter.ping(1)?;
    }
    Ok(())
}
