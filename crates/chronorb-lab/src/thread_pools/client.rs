//! The client of the experiment: threads that leave the server no rest.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use chronorb::prelude::*;
use chronorb_rt::Monotonic;

use super::order::{Batch, ClientOrder, Go, Ready, Took};
use super::server::orb;
use crate::error::LabError;
use crate::idl::demo::Work;
use crate::process::{self, Parent};

/// Calls a server as the parent says, batch by batch. The process ends at once when standard input ends before that.
///
/// `order` is the argument of [`CLIENT_COMMAND`](super::CLIENT_COMMAND), made by the experiment.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a call fails.
pub fn client_main(order: &str) -> Result<(), LabError> {
    let order: ClientOrder = process::order(order)?;
    let parent = Parent::listen(|| std::process::exit(ABANDONED));
    let orb = orb(order.terms.lock_memory, &[])?;
    let crew = Crew::new(order.callers);
    thread::scope(|scope| {
        let (reporter, spans) = mpsc::channel();
        let orders = (0..order.callers)
            .map(|_| {
                let (sender, steps) = mpsc::channel();
                let (crew, orb, reference) = (&crew, &orb, order.reference.as_str());
                let terms = order.terms;
                let reporter = reporter.clone();
                scope.spawn(move || {
                    crew.work(&steps, &reporter, || {
                        connect(orb, terms.priority(), reference)
                    })
                });
                sender
            })
            .collect();
        drop(reporter);
        let foreman = Foreman {
            crew: &crew,
            orders,
            spans,
        };
        foreman.gather()?;
        process::tell(&Ready {})?;
        while let Some(batch) = parent.hear::<Option<Batch>>()? {
            foreman.run(batch.warm_up, batch.steps)?;
            process::tell(&Ready {})?;
            let Go {} = parent.hear()?;
            let elapsed_ns = foreman.run(batch.requests, batch.steps)?;
            process::tell(&Took { elapsed_ns })?;
        }
        Ok(())
    })
}

/// What the calling threads share.
struct Crew {
    /// The requests that nobody has taken yet.
    left: AtomicU32,
    start: Barrier,
}

/// When a thread's calls began and ended.
struct Span {
    first: Monotonic,
    last: Monotonic,
}

type Report = Result<Span, LabError>;

impl Crew {
    fn new(callers: u32) -> Self {
        Self {
            left: AtomicU32::new(0),
            start: Barrier::new(callers as usize),
        }
    }

    /// One calling thread. Reports once when it is connected, and after each batch.
    fn work(
        &self,
        batches: &Receiver<u32>,
        reporter: &Sender<Report>,
        connect: impl Fn() -> Result<Work, LabError>,
    ) {
        let connected = Monotonic::now();
        let work = match connect() {
            Ok(work) => work,
            Err(error) => {
                // Where nobody listens any more another thread has failed.
                let _ = reporter.send(Err(error));
                return;
            }
        };
        let _ = reporter.send(Ok(Span {
            first: connected,
            last: connected,
        }));
        while let Ok(steps) = batches.recv() {
            self.start.wait();
            let _ = reporter.send(self.calls(&work, steps));
        }
    }

    /// Calls as long as there is a request left.
    fn calls(&self, work: &Work, steps: u32) -> Report {
        let first = Monotonic::now();
        let take = |left: u32| left.checked_sub(1);
        // All threads end together: whoever is quicker takes more of the requests.
        while let Ok(turn) = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        {
            call(work, turn as u8, steps)?;
        }
        let last = Monotonic::now();
        Ok(Span { first, last })
    }
}

/// Who has the threads call, and waits for them.
struct Foreman<'c> {
    crew: &'c Crew,
    orders: Vec<Sender<u32>>,
    spans: Receiver<Report>,
}

impl Foreman<'_> {
    /// Has all threads together make so many requests. Returns what that took, in ns.
    fn run(&self, requests: u32, steps: u32) -> Result<u64, LabError> {
        self.crew.left.store(requests, Ordering::Relaxed);
        for order in &self.orders {
            // A thread that is gone has left its error.
            let _ = order.send(steps);
        }
        self.gather()
    }

    /// From the beginning of the first to the end of the last, in ns.
    fn gather(&self) -> Result<u64, LabError> {
        let mut all: Option<Span> = None;
        for _ in &self.orders {
            let Span { first, last } = self
                .spans
                .recv()
                .map_err(|_| LabError::work("calling the server")("a calling thread is gone"))??;
            // Each takes its own times: who asks might get a processor late.
            all = Some(match all {
                Some(all) => Span {
                    first: all.first.min(first),
                    last: all.last.max(last),
                },
                None => Span { first, last },
            });
        }
        let elapsed = all.map_or(0, |span| span.last.since(span.first).as_nanos());
        Ok(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

/// Gives the thread its priority and finds the object, with everything on the way there.
fn connect(orb: &Orb, priority: Priority, reference: &str) -> Result<Work, LabError> {
    orb.rt_current()
        .set_priority(priority)
        .map_err(LabError::work("setting the priority"))?;
    let work = orb
        .string_to_object(reference)
        .and_then(|object| Work::narrow(&object))
        .map_err(LabError::work("finding the object"))?
        .ok_or_else(|| LabError::work("finding the object")("it does no such work"))?;
    call(&work, 3, 0)?;
    Ok(work)
}

/// Makes one call and checks its answer.
fn call(work: &Work, value: u8, steps: u32) -> Result<(), LabError> {
    let cube = work
        .cube(value, steps)
        .map_err(LabError::work("calling the server"))?;
    match cube == i32::from(value).pow(3) {
        true => Ok(()),
        false => Err(LabError::work("calling the server")(format!(
            "{value}³ is not {cube}"
        ))),
    }
}

/// The exit status of a client whose parent is gone.
const ABANDONED: i32 = 3;
