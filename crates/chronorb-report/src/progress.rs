//! The progress of a measurement: a bar on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one part of an experiment, on standard error.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Announces a part with a number of steps.
    #[must_use]
    pub fn start(name: &str, steps: u64) -> Self {
        Self::announce(name, &steps.to_string(), steps)
    }

    /// Announces a part with a length.
    #[must_use]
    pub fn start_timed(name: &str, length: Duration) -> Self {
        let seconds = format!("{} s", length.as_secs_f64());
        Self::announce(name, &seconds, millis(length))
    }

    /// Shows that further steps are done.
    pub fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }

    /// Shows the time that has passed.
    pub fn show(&self, passed: Duration) {
        self.bar.set_position(millis(passed));
    }

    /// Names the present step of a part that has a length, with the time left if there is no bar.
    pub fn say(&self, what: &str) {
        if self.bar.is_hidden() {
            let left = self.bar.length().unwrap_or(0);
            let left = left.saturating_sub(self.bar.position());
            eprintln!("{what}: {} s left", left.div_ceil(1_000));
        } else {
            self.bar.set_message(what.to_owned());
        }
    }

    fn announce(name: &str, length: &str, steps: u64) -> Self {
        if !io::stderr().is_terminal() {
            eprintln!("{name}: {length}");
            return Self {
                bar: ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden()),
            };
        }
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr())
            .with_message(name.to_owned());
        if let Ok(style) =
            ProgressStyle::with_template("{msg:28} {bar:40} {percent:>3} %, {eta} left")
        {
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
