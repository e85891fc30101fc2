//! How far the experiment is.

use std::time::Duration;

use chronorb_rt::Monotonic;

use crate::progress::Progress;

/// The progress of all parts, by what each of them is expected to take.
#[derive(Debug)]
pub(super) struct Watch {
    progress: Progress,
    begun: Monotonic,
}

impl Watch {
    /// Announces an experiment of this length.
    pub(super) fn start(length: Duration) -> Self {
        Self {
            progress: Progress::start_timed("the ORB and the operating system", length),
            begun: Monotonic::now(),
        }
    }

    /// Names a part that begins.
    pub(super) fn begin(&self, what: &str) {
        self.tick();
        self.progress.say(what);
    }

    /// Shows how much time has passed.
    pub(super) fn tick(&self) {
        self.progress.show(Monotonic::now().since(self.begun));
    }
}
