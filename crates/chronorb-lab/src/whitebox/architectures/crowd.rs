//! The threads that call: one of high priority and nine of low.
//!
//! They are told to begin, and say that they are done, by octets in pipes: that costs each of them one `read` and one
//! `write` a run, and no futex call, of which the ORB's are to be counted.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;

use chronorb::prelude::*;
use chronorb_probe::{Activity, counts_of_this_thread, doing};
use chronorb_rt::ThreadCounts;

use super::CLIENTS;
use super::order::Objects;
use super::server::{HIGH, LOW};
use crate::error::LabError;
use crate::idl::whitebox::Bench;

/// Has all threads connect and call for a while, then does `around` with what lets them make their calls. Returns
/// what they did in these calls, all together, and what `around` returns.
pub(super) fn with_all_connected<R>(
    orb: &Orb,
    objects: &Objects,
    calls: u32,
    around: impl FnOnce(&mut Signals) -> Result<R, LabError>,
) -> Result<(ThreadCounts, R), LabError> {
    let (mut signals, places) = signals().map_err(LabError::work("making pipes"))?;
    thread::scope(|scope| {
        let threads = places.into_iter().enumerate().map(|(number, place)| {
            let (priority, object) = match number {
                0 => (HIGH, &objects.high),
                _ => (LOW, &objects.low),
            };
            scope.spawn(move || run(orb, priority, object, calls, place))
        });
        let threads: Vec<_> = threads.collect();
        let around = signals.await_all().and_then(|()| around(&mut signals));
        // Whoever waits for a beginning, or for an end, finds that there will be none.
        drop(signals);
        let mut done = ThreadCounts::default();
        for thread in threads {
            let counts = thread.join().map_err(|_| {
                LabError::work("calling the server")("a thread of the client has panicked")
            })?;
            done = done + counts?;
        }
        Ok((done, around?))
    })
}

/// What the threads are told, and say.
#[derive(Debug)]
pub(super) struct Signals {
    begin: Vec<PipeWriter>,
    done: PipeReader,
}

impl Signals {
    /// Lets all threads make their calls, and waits until they have.
    pub(super) fn run(&mut self) -> Result<(), LabError> {
        for thread in &mut self.begin {
            let told = thread.write_all(&[1]);
            told.map_err(LabError::work("letting the clients begin"))?;
        }
        self.await_all()
    }

    fn await_all(&mut self) -> Result<(), LabError> {
        let mut all = [0; CLIENTS as usize];
        let heard = self.done.read_exact(&mut all);
        heard.map_err(LabError::work("waiting for the clients"))
    }
}

/// The pipes of a thread.
struct Place {
    begin: PipeReader,
    done: PipeWriter,
}

impl Place {
    /// Says that the thread has done, whether or not it could do it all: somebody waits for all of them.
    fn say_done(&mut self) -> Result<(), LabError> {
        let said = self.done.write_all(&[1]);
        said.map_err(LabError::work("telling that a client has done"))
    }

    /// Waits for the next thing to do, and returns whether there is any.
    fn goes_on(&mut self) -> bool {
        self.begin.read_exact(&mut [0]).is_ok()
    }
}

fn signals() -> io::Result<(Signals, Vec<Place>)> {
    let (hear, say) = pipe()?;
    let mut begin = Vec::new();
    let mut places = Vec::new();
    for _ in 0..CLIENTS {
        let (reader, writer) = pipe()?;
        begin.push(writer);
        places.push(Place {
            begin: reader,
            done: say.try_clone()?,
        });
    }
    Ok((Signals { begin, done: hear }, places))
}

/// Calls for a while, then again when told to, and returns what was done in these calls.
fn run(
    orb: &Orb,
    priority: Priority,
    object: &str,
    calls: u32,
    mut place: Place,
) -> Result<ThreadCounts, LabError> {
    let connected = connect(orb, priority, object)
        .and_then(|bench| call(&bench, WARM_UP_CALLS).map(|()| bench));
    place.say_done()?;
    let bench = connected?;
    // Where another thread has failed, that is what counts.
    if !place.goes_on() {
        return Ok(ThreadCounts::default());
    }
    let before = counts_of_this_thread();
    let called = call(&bench, calls);
    let after = counts_of_this_thread();
    place.say_done()?;
    called?;
    // Everybody stays until all is counted.
    place.goes_on();
    Ok(after - before)
}

/// Calls back to back.
fn call(bench: &Bench, calls: u32) -> Result<(), LabError> {
    let _counting = doing(Activity::Application);
    for _ in 0..calls {
        drop(doing(Activity::Nothing));
        let calling = doing(Activity::Other);
        let cube = bench.cube(11);
        drop(calling);
        match cube {
            Ok(1331) => {}
            Ok(_) => {
                return Err(LabError::work("calling the server")("the answer is wrong"));
            }
            Err(exception) => return Err(LabError::work("calling the server")(exception)),
        }
    }
    Ok(())
}

/// Gives the thread its priority and finds the object.
pub(super) fn connect(orb: &Orb, priority: Priority, object: &str) -> Result<Bench, LabError> {
    let set = orb.rt_current().set_priority(priority);
    set.map_err(LabError::work("setting the priority"))?;
    orb.string_to_object(object)
        .and_then(|object| Bench::narrow(&object))
        .map_err(LabError::work("finding the object"))?
        .ok_or_else(|| LabError::work("finding the object")("it is no bench"))
}

/// Enough to have everything in memory on both sides.
const WARM_UP_CALLS: u32 = 200;
