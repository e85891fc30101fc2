//! The JSON form of diagnostics.

use serde::Serialize;

use crate::diagnostics::{Diagnostic, Label, Severity};

#[derive(Serialize)]
pub(super) struct Finding<'a> {
    severity: &'static str,
    code: &'a str,
    message: &'a str,
    spans: Vec<Span<'a>>,
    notes: &'a [String],
    hint: Option<&'a str>,
    rendered: &'a str,
}

#[derive(Serialize)]
struct Span<'a> {
    file: String,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    byte_start: u32,
    byte_end: u32,
    primary: bool,
    label: &'a str,
}

impl<'a> Finding<'a> {
    pub(super) fn new(item: &'a Diagnostic, rendered: &'a str) -> Self {
        Self {
            severity: match item.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            code: item.code,
            message: &item.message,
            spans: item.labels.iter().enumerate().map(Span::new).collect(),
            notes: &item.notes,
            hint: item.hint.as_deref(),
            rendered,
        }
    }
}

impl<'a> Span<'a> {
    fn new((number, label): (usize, &'a Label)) -> Self {
        Self {
            file: label.path.display().to_string(),
            line: label.location.line,
            column: label.location.column,
            end_line: label.end.line,
            end_column: label.end.column,
            byte_start: label.bytes().start,
            byte_end: label.bytes().end,
            primary: number == 0,
            label: &label.text,
        }
    }
}
