//! Timed calls, the same for every system.

use std::sync::Barrier;

use chronorb_rt::Monotonic;

use super::callers::{elapsed_ns, with_callers};
use super::order::{BatchOrder, BatchTimes};
use crate::error::LabError;
use crate::process::{self, Parent, Ready};

/// A caller with a connection of its own.
pub(crate) trait Caller {
    /// Makes one call, whose argument follows from `turn`, and checks its reply.
    fn call(&mut self, turn: u32) -> Result<(), LabError>;

    /// Makes one call that is not timed.
    fn warm_up(&mut self, turn: u32) -> Result<(), LabError> {
        self.call(turn)
    }
}

/// Makes calls after others that warm up. Returns the time of each, in ns.
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

/// Runs the batches that the parent orders.
pub(super) fn batches<C: Caller>(
    parent: &Parent,
    threads: u32,
    connect: impl Fn() -> Result<C, LabError> + Sync,
) -> Result<(), LabError> {
    if threads == 1 {
        let mut caller = connect()?;
        process::tell(&Ready {})?;
        while let Some(BatchOrder { warm_up, calls }) = parent.hear()? {
            let latencies_ns = timed(&mut caller, warm_up, calls)?;
            process::tell(&BatchTimes {
                elapsed_ns: latencies_ns.iter().sum(),
                latencies_ns,
            })?;
        }
        return Ok(());
    }
    together(threads, connect, |run| {
        process::tell(&Ready {})?;
        while let Some(batch) = parent.hear()? {
            process::tell(&BatchTimes {
                elapsed_ns: run(&batch)?,
                latencies_ns: Vec::new(),
            })?;
        }
        Ok(())
    })
}

/// Makes calls with several threads, each with a caller of its own. Returns the time that they take
/// together, in ns.
pub(crate) fn elapsed<C: Caller>(
    threads: u32,
    connect: impl Fn() -> Result<C, LabError> + Sync,
    warm_up: u32,
    calls: u32,
) -> Result<u64, LabError> {
    together(threads, connect, |run| run(&BatchOrder { warm_up, calls }))
}

/// Connects a caller for each thread. `course` gets a function that runs a batch and returns its
/// time.
fn together<C: Caller, X>(
    threads: u32,
    connect: impl Fn() -> Result<C, LabError> + Sync,
    course: impl FnOnce(&dyn Fn(&BatchOrder) -> Result<u64, LabError>) -> Result<X, LabError>,
) -> Result<X, LabError> {
    let start = Barrier::new(threads as usize);
    let call = |caller: &mut C, _: usize, batch: &BatchOrder| {
        let warmed = (0..batch.warm_up).try_for_each(|turn| caller.warm_up(turn));
        start.wait();
        let first = Monotonic::now();
        warmed.and_then(|()| (0..batch.calls).try_for_each(|turn| caller.call(turn)))?;
        Ok((first, Monotonic::now()))
    };
    with_callers(
        threads as usize,
        |_| connect(),
        call,
        |callers| course(&|batch| Ok(elapsed_ns(&callers.run(batch)?))),
    )
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
    fn a_wrong_answer_ends_the_batch() {
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
    fn a_failed_connection_ends_the_batch() {
        let outcome = elapsed(
            2,
            || Err::<Wrong, _>(LabError::work("connecting")("refused")),
            0,
            1,
        );
        assert_eq!(outcome.unwrap_err().to_string(), "connecting: refused");
    }
}
