//! The child's side of the talk with its parent.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::ProcessError;

/// The parent, as its child hears it.
#[derive(Debug)]
pub(crate) struct Parent {
    lines: Receiver<String>,
    is_done: Arc<AtomicBool>,
}

impl Parent {
    /// Listens to standard input, and ends this process when it ends before all is done.
    pub(crate) fn or_exit() -> Self {
        Self::listen(|| std::process::exit(ABANDONED))
    }

    /// Listens to standard input; calls `gone` when it ends before all is done, because the parent
    /// closed it or died.
    pub(crate) fn listen(gone: impl FnOnce() + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                // A line that nobody waits for is of no use, but the end of the input is.
                let _ = sender.send(line);
            }
            if !done.load(Ordering::Relaxed) {
                gone();
            }
        });
        Self { lines, is_done }
    }

    /// Says the last line to the parent, and waits for the end of the input.
    pub(crate) fn conclude(&self, message: &impl Serialize) -> Result<(), ProcessError> {
        self.is_done.store(true, Ordering::Relaxed);
        tell(message)?;
        match self.hear::<()>() {
            Ok(()) | Err(ProcessError::Orphaned) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next line that the parent says; waits as long as the parent lives.
    pub(crate) fn hear<T: DeserializeOwned>(&self) -> Result<T, ProcessError> {
        let line = self.lines.recv().map_err(|_| ProcessError::Orphaned)?;
        serde_json::from_str(&line).map_err(not_understood)
    }
}

/// The order that came as an argument.
pub(crate) fn order<T: DeserializeOwned>(text: &str) -> Result<T, ProcessError> {
    serde_json::from_str(text).map_err(not_understood)
}

/// Says a line to the parent.
pub(crate) fn tell(message: &impl Serialize) -> Result<(), ProcessError> {
    let line = serde_json::to_string(message).expect("messages are plain data");
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(ProcessError::Output)
}

/// Tells the parent that a process is ready for its orders.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Ready {}

/// Tells a process to begin.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Begin {}

/// The exit status of a process without a parent; no parent sees it.
const ABANDONED: i32 = 3;

fn not_understood(source: serde_json::Error) -> ProcessError {
    ProcessError::Nonsense {
        partner: "parent".to_owned(),
        source,
    }
}
