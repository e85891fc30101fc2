//! The record of a client's calls.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use chronorb_rt::{Monotonic, sleep_until};

use super::order::{CallException, EnduranceReport, FailureKind};
use super::plan::GRACE;
use crate::error::LabError;
use crate::process::{self, Parent};

/// The calls of a client, which it reports from time to time.
pub(super) struct CallLog {
    report: EnduranceReport,
    reported: Monotonic,
    timeout: Duration,
    /// The time for which the process did not run, in nanoseconds.
    stopped: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl CallLog {
    /// Begins the record. It is over when the parent says so.
    pub(super) fn new(parent: Parent, timeout: Duration) -> Self {
        let stopped: Arc<AtomicU64> = Arc::default();
        let is_over: Arc<AtomicBool> = Arc::default();
        let count = Arc::clone(&stopped);
        // Both threads end with the process.
        thread::spawn(move || count_stops(&count));
        let over = Arc::clone(&is_over);
        thread::spawn(move || {
            let _ = parent.hear::<()>();
            over.store(true, Ordering::Relaxed);
            // The parent is still listened to, so that the process ends with it.
            let _ = parent.hear::<()>();
        });
        Self {
            report: EnduranceReport::default(),
            reported: Monotonic::now(),
            timeout,
            stopped,
            is_over,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Makes a call, and records its exception, or that it takes too long. Returns its result.
    pub(super) fn call<T, E: Debug>(
        &mut self,
        what: &str,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Option<T> {
        let stopped = self.stopped.load(Ordering::Relaxed);
        let start = Monotonic::now();
        let result = call();
        let end = Monotonic::now();
        self.report.calls += 1;
        if end.since(start) > self.timeout + GRACE {
            // A stop is noticed a little later than the end of a call.
            thread::sleep(TICK * 2);
            let stopped = self.stopped.load(Ordering::Relaxed) - stopped;
            let took = end
                .since(start)
                .saturating_sub(Duration::from_nanos(stopped));
            if took > self.timeout + GRACE {
                self.fail(FailureKind::Hung, format!("{what} took {took:?}"));
            }
        }
        match result {
            Ok(result) => Some(result),
            Err(error) => {
                self.report.exceptions.push(CallException {
                    start_ns: start.as_nanos(),
                    end_ns: end.as_nanos(),
                    words: format!("{what}: {error:?}"),
                });
                thread::sleep(PAUSE);
                None
            }
        }
    }

    /// Counts results that were not calls.
    pub(super) fn count(&mut self, more: u64) {
        self.report.calls += more;
    }

    pub(super) fn fail(&mut self, kind: FailureKind, words: String) {
        // The number of failures counts, and the words of the first ones.
        let words = if self.report.failures.len() < WORDS {
            words
        } else {
            String::new()
        };
        self.report.failures.push((kind, words));
    }

    /// Reports from time to time, and pauses, since clients of real-time priority that call back to
    /// back leave the others no processor.
    pub(super) fn report(&mut self, acknowledged: &[u32]) -> Result<(), LabError> {
        thread::sleep(PACE);
        if Monotonic::now().since(self.reported) < PERIOD {
            return Ok(());
        }
        self.conclude(acknowledged)
    }

    /// Reports now.
    pub(super) fn conclude(&mut self, acknowledged: &[u32]) -> Result<(), LabError> {
        acknowledged.clone_into(&mut self.report.acknowledged);
        process::tell(&self.report)?;
        self.report = EnduranceReport::default();
        self.reported = Monotonic::now();
        Ok(())
    }
}

/// Adds up the times for which the process did not run: gaps in the ticks of this thread.
fn count_stops(stopped: &AtomicU64) {
    let mut last = Monotonic::now();
    loop {
        sleep_until(last + TICK);
        let now = Monotonic::now();
        let gap = now.since(last);
        if gap > TICK * 4 {
            let nanos = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
            stopped.fetch_add(nanos, Ordering::Relaxed);
        }
        last = now;
    }
}

/// The time between two looks at the clock.
const TICK: Duration = Duration::from_millis(25);
/// The pause of a client after a call, or after some at a time.
const PACE: Duration = Duration::from_millis(1);
/// The pause of a client after an exception.
const PAUSE: Duration = Duration::from_millis(10);
/// The time between two reports.
const PERIOD: Duration = Duration::from_millis(200);
/// The failures of a report that have words.
const WORDS: usize = 10;
