//! How far an experiment is: a bar on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one part of an experiment, on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Announces a part of this many steps.
    pub(crate) fn start(name: &str, steps: u64) -> Self {
        Self::announce(name, &steps.to_string(), steps)
    }

    /// Announces a part of this length.
    pub(crate) fn start_timed(name: &str, length: Duration) -> Self {
        let seconds = format!("{} s", length.as_secs_f64());
        Self::announce(name, &seconds, millis(length))
    }

    /// Shows that so many more steps were made.
    pub(crate) fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }

    /// Shows that so much of the time has passed.
    pub(crate) fn show(&self, passed: Duration) {
        self.bar.set_position(millis(passed));
    }

    fn announce(name: &str, length: &str, steps: u64) -> Self {
        if !io::stderr().is_terminal() {
            eprintln!("{name}: {length}");
            return Self {
                bar: ProgressBar::hidden(),
            };
        }
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr())
            .with_message(name.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg:28} {bar:40} {percent:>3} %") {
            bar.set_style(style.progress_chars("██░"));
        }
        Self { bar }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
