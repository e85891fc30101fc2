//! The child's side of the talk with its parent.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DemoError;

/// The parent, as its child hears it.
#[derive(Debug)]
pub(super) struct Parent {
    lines: Receiver<String>,
}

impl Parent {
    /// Listens to standard input; calls `gone` when it ends, because the parent closed it or died.
    pub(super) fn listen(gone: impl FnOnce() + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                // A line that nobody waits for is of no use, but the end of the input is.
                let _ = sender.send(line);
            }
            gone();
        });
        Self { lines }
    }

    /// The next line that the parent says; waits as long as the parent lives.
    pub(super) fn hear<T: DeserializeOwned>(&self) -> Result<T, DemoError> {
        let line = self
            .lines
            .recv()
            .map_err(DemoError::work("hearing the parent"))?;
        serde_json::from_str(&line).map_err(not_understood)
    }
}

/// The order that came as an argument.
pub(super) fn order<T: DeserializeOwned>(text: &str) -> Result<T, DemoError> {
    serde_json::from_str(text).map_err(not_understood)
}

/// Says a line to the parent.
pub(super) fn tell(message: &impl Serialize) -> Result<(), DemoError> {
    let line = serde_json::to_string(message).expect("messages are plain data");
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(DemoError::Output)
}

fn not_understood(source: serde_json::Error) -> DemoError {
    DemoError::Nonsense {
        partner: "parent".to_owned(),
        source,
    }
}
