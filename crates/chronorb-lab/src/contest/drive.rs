//! Making calls, and taking their times: the same for every system.

use std::sync::Barrier;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use chronorb_rt::Monotonic;

use super::order::{Batch, Ready, Took};
use crate::error::LabError;
use crate::process::{self, Parent};

/// One who calls again and again, on a connection of its own.
pub(crate) trait Caller {
    /// Makes one call and checks its answer. What is asked follows from `turn`.
    fn call(&mut self, turn: u32) -> Result<(), LabError>;

    /// The same before the time counts.
    fn warm_up(&mut self, turn: u32) -> Result<(), LabError> {
        self.call(turn)
    }
}

/// The time of each call, in ns.
pub(crate) fn timed(
    caller: &mut impl Caller,
    warm_up: u32,
    calls: u32,
) -> Result<Vec<u64>, LabError> {
    let mut latencies = Vec::with_capacity(calls as usize);
    for turn in 0..warm_up {
        caller.warm_up(turn)?;
    }
    for turn in 0..calls {
        let sent = Monotonic::now();
        caller.call(turn)?;
        let latency = Monotonic::now().since(sent);
        latencies.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(latencies)
}

/// Makes the batches that the parent asks for.
pub(super) fn batches<C: Caller>(
    parent: &Parent,
    threads: u32,
    connect: impl Fn() -> Result<C, LabError> + Sync,
) -> Result<(), LabError> {
    if threads == 1 {
        let mut caller = connect()?;
        process::tell(&Ready {})?;
        while let Some(Batch { warm_up, calls }) = parent.hear()? {
            let latencies_ns = timed(&mut caller, warm_up, calls)?;
            process::tell(&Took {
                elapsed_ns: latencies_ns.iter().sum(),
                latencies_ns,
            })?;
        }
        return Ok(());
    }
    together(threads, connect, |team| {
        process::tell(&Ready {})?;
        while let Some(batch) = parent.hear()? {
            process::tell(&Took {
                elapsed_ns: team.run(batch)?,
                latencies_ns: Vec::new(),
            })?;
        }
        Ok(())
    })
}

/// How long it takes `threads` callers at once to make `calls` calls each, in ns, after as many
/// as `warm_up`.
pub(crate) fn elapsed<C: Caller>(
    threads: u32,
    connect: impl Fn() -> Result<C, LabError> + Sync,
    warm_up: u32,
    calls: u32,
) -> Result<u64, LabError> {
    together(threads, connect, |team| team.run(Batch { warm_up, calls }))
}

/// Several threads, each with a caller.
struct Team {
    orders: Vec<Sender<Batch>>,
    spans: Receiver<Result<Span, LabError>>,
}

/// When a thread's calls began and ended.
struct Span {
    first: Monotonic,
    last: Monotonic,
}

impl Team {
    /// Has every thread make a batch.
    fn run(&self, batch: Batch) -> Result<u64, LabError> {
        for order in &self.orders {
            // A thread that is gone has left its error.
            let _ = order.send(batch);
        }
        let mut all: Option<Span> = None;
        for _ in &self.orders {
            let Span { first, last } = self.span()?;
            // Each caller takes its own times: the one that asks might get a processor late.
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

    fn span(&self) -> Result<Span, LabError> {
        let gone = |_| LabError::work("calling the server")("a calling thread is gone");
        self.spans.recv().map_err(gone)?
    }
}

/// Starts callers, each in a thread, and runs `course` when all are connected.
fn together<C: Caller, R>(
    threads: u32,
    connect: impl Fn() -> Result<C, LabError> + Sync,
    course: impl FnOnce(&Team) -> Result<R, LabError>,
) -> Result<R, LabError> {
    let start = Barrier::new(threads as usize);
    let (reporter, spans) = mpsc::channel();
    thread::scope(|scope| {
        let mut orders = Vec::new();
        for _ in 0..threads {
            let (order, batches) = mpsc::channel();
            let (connect, start, reporter) = (&connect, &start, reporter.clone());
            scope.spawn(move || call(connect, start, &batches, &reporter));
            orders.push(order);
        }
        drop(reporter);
        let team = Team { orders, spans };
        for _ in 0..threads {
            team.span()?;
        }
        course(&team)
    })
}

/// One calling thread. Reports once when it is connected, and after each batch.
fn call<C: Caller>(
    connect: &impl Fn() -> Result<C, LabError>,
    start: &Barrier,
    batches: &Receiver<Batch>,
    reporter: &Sender<Result<Span, LabError>>,
) {
    let now = Monotonic::now();
    let mut caller = match connect() {
        Ok(caller) => caller,
        Err(error) => {
            let _ = reporter.send(Err(error));
            return;
        }
    };
    let _ = reporter.send(Ok(Span {
        first: now,
        last: now,
    }));
    while let Ok(Batch { warm_up, calls }) = batches.recv() {
        let warmed = (0..warm_up).try_for_each(|turn| caller.warm_up(turn));
        start.wait();
        let first = Monotonic::now();
        let done = warmed.and_then(|()| (0..calls).try_for_each(|turn| caller.call(turn)));
        let span = done.map(|()| Span {
            first,
            last: Monotonic::now(),
        });
        let _ = reporter.send(span);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Counter<'a>(&'a AtomicU32);

    impl Caller for Counter<'_> {
        fn call(&mut self, _turn: u32) -> Result<(), LabError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    struct Wrong;

    impl Caller for Wrong {
        fn call(&mut self, turn: u32) -> Result<(), LabError> {
            Err(LabError::WrongAnswer(turn.to_string()))
        }
    }

    #[test]
    fn each_thread_makes_its_calls_and_those_to_warm_up() {
        let calls = AtomicU32::new(0);
        elapsed(4, || Ok(Counter(&calls)), 10, 100).unwrap();
        assert_eq!(calls.into_inner(), 440);
    }

    #[test]
    fn warming_up_is_not_timed() {
        let calls = AtomicU32::new(0);
        let latencies = timed(&mut Counter(&calls), 10, 100).unwrap();
        assert_eq!(latencies.len(), 100);
        assert_eq!(calls.into_inner(), 110);
    }

    #[test]
    fn a_wrong_answer_ends_it_whoever_gets_it() {
        assert!(matches!(
            elapsed(3, || Ok(Wrong), 0, 1),
            Err(LabError::WrongAnswer(_))
        ));
        assert!(matches!(
            timed(&mut Wrong, 1, 0),
            Err(LabError::WrongAnswer(_))
        ));
    }

    #[test]
    fn a_caller_that_cannot_connect_ends_it() {
        let outcome = elapsed(
            2,
            || Err::<Wrong, _>(LabError::work("connecting")("refused")),
            0,
            1,
        );
        assert_eq!(outcome.unwrap_err().to_string(), "connecting: refused");
    }
}
