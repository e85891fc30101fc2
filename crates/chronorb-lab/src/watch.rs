//! The progress of an experiment.

use std::time::Duration;

use chronorb_rt::Monotonic;

use crate::progress::Progress;

/// The progress of all parts by their expected lengths.
#[derive(Debug)]
pub(crate) struct Watch {
    progress: Progress,
    begun: Monotonic,
}

impl Watch {
    /// Announces an experiment of this length, and starts its clock.
    pub(crate) fn start(title: &str, length: Duration) -> Self {
        Self {
            progress: Progress::start_timed(title, length),
            begun: Monotonic::now(),
        }
    }

    /// Names a part that begins.
    pub(crate) fn begin(&self, what: &str) {
        self.tick();
        self.progress.say(what);
    }

    /// Shows how much time has passed.
    pub(crate) fn tick(&self) {
        self.progress.show(Monotonic::now().since(self.begun));
    }
}
