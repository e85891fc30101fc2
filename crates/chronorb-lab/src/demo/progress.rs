//! How far the demonstration is: a bar on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one phase, on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Announces a phase of this length.
    pub(super) fn start(name: &str, length: Duration) -> Self {
        if !io::stderr().is_terminal() {
            eprintln!("{name}: {} s", length.as_secs_f64());
            return Self {
                bar: ProgressBar::hidden(),
            };
        }
        let bar = ProgressBar::with_draw_target(Some(millis(length)), ProgressDrawTarget::stderr())
            .with_message(name.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg:20} {bar:40} {percent:>3} %") {
            bar.set_style(style.progress_chars("██░"));
        }
        Self { bar }
    }

    /// Shows that so much of the phase has passed.
    pub(super) fn show(&self, passed: Duration) {
        self.bar.set_position(millis(passed));
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
