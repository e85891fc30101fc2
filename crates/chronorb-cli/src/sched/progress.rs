//! The progress of a computation that takes more than two seconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use chronorb_report::progress::Progress;

/// Runs `work`, and shows its progress if it takes more than two seconds. `work` counts its steps,
/// of which there are `steps`; zero if they are unknown.
pub(super) fn with_progress<T>(name: &str, steps: u64, work: impl FnOnce(&AtomicU64) -> T) -> T {
    let done = AtomicU64::new(0);
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| {
            let ended = ended;
            if !goes_on(ended.recv_timeout(SHORT)) {
                return;
            }
            let progress = Progress::start(name, steps);
            let mut shown = 0;
            loop {
                let now = done.load(Ordering::Relaxed);
                progress.advance(now - shown);
                shown = now;
                if !goes_on(ended.recv_timeout(INTERVAL)) {
                    return;
                }
            }
        });
        let result = work(&done);
        drop(end);
        result
    })
}

fn goes_on(ended: Result<(), RecvTimeoutError>) -> bool {
    matches!(ended, Err(RecvTimeoutError::Timeout))
}

/// A computation as short has no progress.
const SHORT: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(200);
