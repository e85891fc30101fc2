//! The output of commands that show texts of peers.
//!
//! The output of a command contains only characters that a terminal shows, and line feeds. So a
//! command makes a text of a peer [visible] where it is a part of a line.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};

use chronorb_rt::{visible, visible_json, with_causes};

/// Writes a text of whole lines to standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_octets(lines(text).as_bytes())
}

/// Writes a value to standard output, as a line of JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    print_octets(format!("{}\n", json(value)?).as_bytes())
}

/// Returns a value as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> io::Result<String> {
    let text = serde_json::to_string(value)?;
    Ok(visible_json(&text).into_owned())
}

/// Writes to standard output as it is.
pub(crate) fn print_octets(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()
}

/// Writes a message to standard error.
pub(crate) fn report(message: impl Display) {
    eprintln!("chronorb: {}", lines(&message.to_string()));
}

/// Writes an error with its causes to standard error.
pub(crate) fn report_error(error: &dyn Error) {
    report(with_causes(error));
}

/// Makes each line of a text visible.
fn lines(text: &str) -> String {
    let lines = text.split('\n').map(visible);
    lines.collect::<Vec<_>>().join("\n")
}
