//! Makes calls, mostly after a warm-up that is not counted.
//!
//! Usage: `calls-client [-ORB…] times|count|first OPERATION CALLS [REFERENCE [FIFO]]`.
//!
//! With `times` it prints the median of the calls' durations, in nanoseconds. With `first` there is
//! no warm-up. Without a reference the object is in this process. With a FIFO each oneway waits for
//! its acknowledgement.

use std::error::Error;
use std::time::Instant;

use calls_bench::idl::calls::EchoSkeleton;
use calls_bench::{Caller, Mirror, Operation, Pace};
use chronorb::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().collect();
    let orb = Orb::init(&mut arguments)?;
    let [_, mode, operation, calls, target @ ..] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let (operation, calls): (Operation, u32) = (operation.parse()?, calls.parse()?);
    let (object, pace) = match target {
        [] => (serve(&orb)?, None),
        [reference] => (orb.string_to_object(reference)?, None),
        [reference, fifo] => (orb.string_to_object(reference)?, Some(Pace::open(fifo)?)),
        _ => return Err(USAGE.into()),
    };
    let mut caller = Caller::new(&object, pace);
    let conditions = operation.enter(&orb)?;
    if mode != "first" {
        caller.warm_up(operation)?;
    }
    match mode.as_str() {
        "count" | "first" => {
            for _ in 0..calls {
                caller.call(operation)?;
            }
        }
        "times" => println!("{}", median_ns(&mut caller, operation, calls)?),
        _ => return Err(USAGE.into()),
    }
    if operation == Operation::Oneway {
        // Its reply follows the last oneway on the same connection.
        caller.call(Operation::Octet)?;
    }
    drop(conditions);
    orb.shutdown(true)?;
    Ok(())
}

/// Serves the object in this process.
fn serve(orb: &Orb) -> Result<Object, Box<dyn Error>> {
    let root = orb.root_poa()?;
    let object = root.serve(EchoSkeleton::new(Mirror { pace: None }))?;
    root.manager().activate()?;
    Ok(object)
}

fn median_ns(
    caller: &mut Caller,
    operation: Operation,
    calls: u32,
) -> Result<u128, Box<dyn Error>> {
    let mut durations = Vec::with_capacity(calls as usize);
    for _ in 0..calls {
        let begin = Instant::now();
        caller.call(operation)?;
        durations.push(begin.elapsed().as_nanos());
    }
    durations.sort_unstable();
    let median = durations.get(durations.len() / 2).copied();
    median.ok_or_else(|| "no calls, no median".into())
}

const USAGE: &str =
    "usage: calls-client [-ORB…] times|count|first OPERATION CALLS [REFERENCE [FIFO]]";
