//! Models and diagnostics as JSON, for programs in any language.
//!
//! The page "The model as JSON" of the book describes both forms.

mod diagnostics;
mod model;
mod types;

use std::io;

use crate::diagnostics::Diagnostics;
use crate::model::Model;

/// The value of `format` in a model. It changes if the meaning of existing parts changes, and not
/// if parts are added.
pub const MODEL_FORMAT: &str = "chronorb-idl-model/1";

/// Writes a model as one JSON object.
///
/// # Errors
///
/// Those of the writer.
pub fn write_model(model: &Model, to: &mut impl io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &model::Document::new(model))?;
    writeln!(to)
}

/// Writes each finding as one JSON object in a line of its own.
///
/// # Errors
///
/// Those of the writer.
pub fn write_diagnostics(diagnostics: &Diagnostics, to: &mut impl io::Write) -> io::Result<()> {
    let rendered = diagnostics.render_each(false);
    for (item, rendered) in diagnostics.iter().zip(&rendered) {
        serde_json::to_writer(&mut *to, &diagnostics::Finding::new(item, rendered))?;
        writeln!(to)?;
    }
    Ok(())
}
