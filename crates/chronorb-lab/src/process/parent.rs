//! The child's side of the exchange with its parent.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::ProcessError;

/// The parent of this process: its messages.
#[derive(Debug)]
pub(crate) struct Parent {
    lines: Receiver<String>,
    is_done: Arc<AtomicBool>,
}

impl Parent {
    /// Listens to standard input, and ends this process if the input ends before the work.
    pub(crate) fn or_exit() -> Self {
        Self::listen(|| std::process::exit(ABANDONED))
    }

    /// Listens to standard input. Calls `gone` if the input ends before the work, because the
    /// parent closed it or died.
    pub(crate) fn listen(gone: impl FnOnce() + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                // Without a receiver the line is lost, but the end of the input still counts.
                let _ = sender.send(line);
            }
            if !done.load(Ordering::Relaxed) {
                gone();
            }
        });
        Self { lines, is_done }
    }

    /// Sends the last message to the parent, and waits for the end of the input.
    pub(crate) fn conclude(&self, message: &impl Serialize) -> Result<(), ProcessError> {
        self.is_done.store(true, Ordering::Relaxed);
        tell(message)?;
        match self.hear::<()>() {
            Ok(()) | Err(ProcessError::Orphaned) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the next message of the parent. Waits as long as the parent lives.
    pub(crate) fn hear<T: DeserializeOwned>(&self) -> Result<T, ProcessError> {
        let line = self.lines.recv().map_err(|_| ProcessError::Orphaned)?;
        serde_json::from_str(&line).map_err(not_understood)
    }
}

/// Decodes the order that came as an argument.
pub(crate) fn order<T: DeserializeOwned>(text: &str) -> Result<T, ProcessError> {
    serde_json::from_str(text).map_err(not_understood)
}

/// Sends a message to the parent.
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
