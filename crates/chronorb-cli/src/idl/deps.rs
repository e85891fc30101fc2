//! `chronorb idl deps`: the dependencies of IDL files for build systems.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::arguments::DepsArguments;
use super::findings::Findings;
use super::{is_standard_input, print};

/// The output of the command with `--json`.
#[derive(Serialize)]
struct Report {
    format: &'static str,
    files: Vec<Entry>,
}

/// A file, the output of `chronorb idl rust` for it, and the files that are read for that.
#[derive(Serialize)]
struct Entry {
    file: String,
    output: String,
    reads: Vec<String>,
}

/// Prints the dependencies of all files, or shows why one cannot be read.
pub(super) fn run(arguments: &DepsArguments) -> ExitCode {
    let findings = Findings::from(arguments.findings.clone());
    let mut report = Report {
        format: "chronorb-idl-deps/1",
        files: Vec::new(),
    };
    let mut status = ExitCode::SUCCESS;
    for file in &arguments.input.files {
        if is_standard_input(file) {
            findings.failure("standard input has no name that a Rust file could have");
            return ExitCode::FAILURE;
        }
        let preprocessed = arguments.input.options.preprocess(file);
        let Some(preprocessed) = findings.preprocessed(preprocessed) else {
            status = ExitCode::FAILURE;
            continue;
        };
        let stem = file.file_stem().unwrap_or_default();
        let dir = arguments.out.clone().unwrap_or_default();
        let output = dir.join(stem).with_added_extension("rs");
        report.files.push(Entry {
            file: shown(file),
            output: shown(&output),
            reads: preprocessed.files.iter().map(|read| shown(read)).collect(),
        });
    }
    if status != ExitCode::SUCCESS {
        return status;
    }
    if arguments.json {
        print(|out| {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            writeln!(out)
        })
    } else {
        print(|out| report.files.iter().try_for_each(|entry| rule(entry, out)))
    }
}

/// Writes the rule of a makefile, one file in a line.
fn rule(entry: &Entry, out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "{}:", escaped(&entry.output))?;
    for read in &entry.reads {
        write!(out, " \\\n  {}", escaped(read))?;
    }
    writeln!(out)
}

/// Escapes a path for makefiles.
fn escaped(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            ' ' | '#' | ':' | '\\' => escaped.push('\\'),
            '$' => escaped.push('$'),
            _ => {}
        }
        escaped.push(c);
    }
    escaped
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_make_would_read_otherwise_is_escaped() {
        assert_eq!(escaped("idl/a b#$c.idl"), "idl/a\\ b\\#$$c.idl");
    }
}
