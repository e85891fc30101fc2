//! The output of findings in IDL files, for people or for programs.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use chronorb_idl::{
    Compilation, Diagnostic, Diagnostics, Failure, PreprocessedSource, codes, json,
};
use serde::Serialize;

use super::arguments::{DenyRule, FindingsArguments, MessageFormat};

/// The form of findings, and the warnings that are errors.
pub(super) struct Findings {
    format: MessageFormat,
    denied: Vec<DenyRule>,
    strict: bool,
}

impl From<FindingsArguments> for Findings {
    fn from(arguments: FindingsArguments) -> Self {
        Self {
            format: arguments.message_format,
            denied: arguments.deny,
            strict: arguments.strict,
        }
    }
}

impl Findings {
    /// Shows the findings, and returns the compilation unless there is an error or a denied
    /// warning.
    pub(super) fn compilation(&self, result: Result<Compilation, Failure>) -> Option<Compilation> {
        self.judge(result, |compilation| &mut compilation.warnings)
    }

    /// Shows the findings as [`Self::compilation`] does.
    pub(super) fn preprocessed(
        &self,
        result: Result<PreprocessedSource, Failure>,
    ) -> Option<PreprocessedSource> {
        self.judge(result, |preprocessed| &mut preprocessed.warnings)
    }

    /// Reports that a file has no errors. Programs get the exit status instead.
    pub(super) fn no_errors(&self, file: &Path) {
        if self.format == MessageFormat::Human {
            println!("{}: no errors", file.display());
        }
    }

    /// Reports an error without a place in a file.
    pub(super) fn failure(&self, message: &str) {
        self.plain(&PlainFinding::new("error", message, "chronorb: "));
    }

    /// Reports a warning that is not about the IDL itself. Returns whether it is denied.
    pub(super) fn warning(&self, message: &str) -> bool {
        let denied = self.denied.contains(&DenyRule::All);
        let severity = if denied { "error" } else { "warning" };
        self.plain(&PlainFinding::new(severity, message, "chronorb: warning: "));
        denied
    }

    fn plain(&self, finding: &PlainFinding<'_>) {
        match self.format {
            MessageFormat::Human => eprint!("{}", finding.rendered),
            MessageFormat::Json => write(|out| {
                serde_json::to_writer(&mut *out, finding)?;
                writeln!(out)
            }),
        }
    }

    fn judge<T>(
        &self,
        result: Result<T, Failure>,
        warnings: fn(&mut T) -> &mut Diagnostics,
    ) -> Option<T> {
        let is_denied = |item: &Diagnostic| {
            self.denied.iter().any(|denied| denied.is(item.code))
                || self.strict && codes::LENIENT.contains(&item.code)
        };
        match result {
            Ok(mut made) => {
                let found = warnings(&mut made);
                let any_denied = found.deny(is_denied);
                self.show(found);
                (!any_denied).then_some(made)
            }
            Err(mut failure) => {
                failure.diagnostics.deny(is_denied);
                self.show(&failure.diagnostics);
                None
            }
        }
    }

    /// Shows findings; for people with colours if the terminal and the user allow them.
    fn show(&self, diagnostics: &Diagnostics) {
        match self.format {
            MessageFormat::Human => {
                let wants_color = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
                let color = wants_color && io::stderr().is_terminal();
                eprint!("{}", diagnostics.render(color));
            }
            MessageFormat::Json => write(|out| json::write_diagnostics(diagnostics, out)),
        }
    }
}

/// Writes to standard output. A closed pipe is not an error.
fn write(write: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) {
    if let Err(error) = write(&mut io::stdout().lock())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        eprintln!("chronorb: cannot write: {error}");
    }
}

/// A finding without a place in the IDL, in the form of those that have one.
#[derive(Serialize)]
struct PlainFinding<'a> {
    severity: &'static str,
    code: Option<&'static str>,
    message: &'a str,
    spans: [(); 0],
    notes: [(); 0],
    hint: Option<&'static str>,
    rendered: String,
}

impl<'a> PlainFinding<'a> {
    fn new(severity: &'static str, message: &'a str, prefix: &str) -> Self {
        Self {
            severity,
            code: None,
            message,
            spans: [],
            notes: [],
            hint: None,
            rendered: format!("{prefix}{message}\n"),
        }
    }
}
