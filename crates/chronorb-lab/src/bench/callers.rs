//! The calling threads of a client.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use chronorb_rt::Monotonic;

use crate::error::LabError;

/// Connected threads that run an order at the same time.
pub(crate) struct Callers<R, T> {
    orders: Vec<Sender<R>>,
    results: Receiver<(usize, Result<T, LabError>)>,
}

impl<R: Clone, T> Callers<R, T> {
    /// Has all threads run once. Returns their results in the order of the threads.
    pub(crate) fn run(&self, order: &R) -> Result<Vec<T>, LabError> {
        for thread in &self.orders {
            // A thread that has ended has left its error.
            let _ = thread.send(order.clone());
        }
        let mut results: Vec<Option<T>> = self.orders.iter().map(|_| None).collect();
        for _ in &self.orders {
            let (index, result) = self.results.recv().map_err(|_| gone())?;
            results[index] = Some(result?);
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// Starts threads, and calls `course` when all of them are connected. They end with it.
///
/// # Errors
/// The first error of a thread that cannot connect, or that of `course`.
pub(crate) fn with_callers<C, R, T, X>(
    count: usize,
    connect: impl Fn(usize) -> Result<C, LabError> + Sync,
    run: impl Fn(&mut C, usize, &R) -> Result<T, LabError> + Sync,
    course: impl FnOnce(&Callers<R, T>) -> Result<X, LabError>,
) -> Result<X, LabError>
where
    R: Send,
    T: Send,
{
    thread::scope(|scope| {
        let (connected, connections) = mpsc::channel();
        let (reporter, results) = mpsc::channel();
        let (connect, run) = (&connect, &run);
        let threads = (0..count).map(|index| {
            let (order, orders) = mpsc::channel::<R>();
            let (connected, reporter) = (connected.clone(), reporter.clone());
            scope.spawn(move || {
                let mut caller = match connect(index) {
                    Ok(caller) => caller,
                    Err(error) => {
                        // Without a receiver, another thread has failed already.
                        let _ = connected.send(Err(error));
                        return;
                    }
                };
                let _ = connected.send(Ok(()));
                drop(connected);
                for order in orders {
                    if reporter
                        .send((index, run(&mut caller, index, &order)))
                        .is_err()
                    {
                        break;
                    }
                }
            });
            order
        });
        let orders = threads.collect();
        drop((connected, reporter));
        for _ in 0..count {
            connections.recv().map_err(|_| gone())??;
        }
        course(&Callers { orders, results })
    })
}

/// Returns the time from the first beginning to the last end of the spans of threads.
///
/// Each thread takes its own times: the thread that waits for them may get a processor late.
pub(crate) fn elapsed_ns(spans: &[(Monotonic, Monotonic)]) -> u64 {
    let first = spans.iter().map(|(first, _)| *first).min();
    let last = spans.iter().map(|(_, last)| *last).max();
    let elapsed = first
        .zip(last)
        .map_or(0, |(first, last)| last.since(first).as_nanos());
    u64::try_from(elapsed).unwrap_or(u64::MAX)
}

fn gone() -> LabError {
    LabError::work("calling the server")("a calling thread is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_threads() {
        let run = |base: &mut usize, index, order: &usize| Ok(*base + index * order);
        let sums = with_callers(
            4,
            |_| Ok(100),
            run,
            |callers| Ok([callers.run(&1)?, callers.run(&2)?]),
        );
        assert_eq!(
            sums.unwrap(),
            [[100, 101, 102, 103], [100, 102, 104, 106]].map(Vec::from)
        );
    }

    #[test]
    fn a_thread_that_fails_fails_all() {
        let failed = || LabError::work("connecting")("refused");
        let connect = |index| if index == 1 { Err(failed()) } else { Ok(()) };
        let never = |(): &mut (), _, (): &()| Ok(());
        let error = with_callers(3, connect, never, |_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "connecting: refused");

        let run = |(): &mut (), index, (): &()| if index == 2 { Err(failed()) } else { Ok(()) };
        let ran = with_callers(3, |_| Ok(()), run, |callers| callers.run(&()));
        assert_eq!(ran.unwrap_err().to_string(), "connecting: refused");
    }
}
