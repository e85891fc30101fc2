//! `chronorb idl`: checks IDL, compiles it to Rust, writes examples, and prints it for other
//! programs.

mod arguments;
mod deps;
mod example;
mod findings;

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use chronorb_idl::json;

pub(crate) use arguments::IdlCommand;

use arguments::{IdlInput, OneInput, RustArguments};
use findings::Findings;

impl IdlCommand {
    /// Runs the command, and returns the exit status.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            Self::Check {
                mut input,
                findings,
                portable,
            } => {
                input.options.portable = portable;
                check(&input, &findings.into())
            }
            Self::Rust {
                input,
                findings,
                rust,
            } => rust_files(&input, &findings.into(), &rust),
            Self::Example(arguments) => example::run(&arguments),
            Self::Model { input, findings } => model(&input, &findings.into()),
            Self::Deps(arguments) => deps::run(&arguments),
            Self::Preprocess { input, findings } => preprocess(&input, &findings.into()),
        }
    }
}

/// Warns of definitions with a second name. Returns whether one is an error.
fn warn_of(names: &[chronorb_build::SecondName], findings: &Findings) -> bool {
    let mut is_denied = false;
    for name in names {
        is_denied |= findings.warning(&name.to_string());
    }
    is_denied
}

/// Checks all files and shows errors and warnings.
fn check(input: &IdlInput, findings: &Findings) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for file in &input.files {
        let Some(compilation) = findings.compilation(input.options.compile(file)) else {
            status = ExitCode::FAILURE;
            continue;
        };
        let denied = match chronorb_build::configure().check(&compilation) {
            Ok(second_names) => warn_of(&second_names, findings),
            Err(error) => findings.warning(&format!(
                "{} cannot be compiled to Rust: {error}",
                file.display()
            )),
        };
        if denied {
            status = ExitCode::FAILURE;
        } else {
            findings.no_errors(file);
        }
    }
    status
}

/// Compiles all files to Rust, or shows their errors and writes nothing.
fn rust_files(input: &IdlInput, findings: &Findings, rust: &RustArguments) -> ExitCode {
    if input.files.iter().any(|file| is_standard_input(file)) {
        findings.failure("standard input has no name that a Rust file could have");
        return ExitCode::FAILURE;
    }
    // The errors of all files are shown, not only the first.
    let mut compiled = Vec::new();
    for file in &input.files {
        let compilation = findings.compilation(input.options.compile(file));
        compiled.extend(compilation.map(|compilation| (file.clone(), compilation)));
    }
    if compiled.len() < input.files.len() {
        return ExitCode::FAILURE;
    }
    let builder = rust.builder();
    let mut second_names = Vec::new();
    for (_, compilation) in &compiled {
        // The errors are those of the code.
        second_names.extend(builder.check(compilation).into_iter().flatten());
    }
    let mut shown = HashSet::new();
    second_names.retain(|second| shown.insert(second.to_string()));
    if warn_of(&second_names, findings) {
        return ExitCode::FAILURE;
    }
    let out = &rust.out;
    let is_new = !out.exists();
    if let Err(error) = fs::create_dir_all(out) {
        let out = out.display();
        findings.failure(&format!("cannot make the directory {out}: {error}"));
        return ExitCode::FAILURE;
    }
    match builder.write(&compiled) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            if is_new {
                // A directory with files of another program is not removed.
                let _ = fs::remove_dir(out);
            }
            findings.failure(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Prints the checked model of a file.
fn model(input: &OneInput, findings: &Findings) -> ExitCode {
    match findings.compilation(input.options.compile(&input.file)) {
        Some(compilation) => print(|out| json::write_model(&compilation.model, out)),
        None => ExitCode::FAILURE,
    }
}

/// Prints a file without macros, conditions and includes.
fn preprocess(input: &OneInput, findings: &Findings) -> ExitCode {
    match findings.preprocessed(input.options.preprocess(&input.file)) {
        Some(preprocessed) => print(|out| out.write_all(preprocessed.text.as_bytes())),
        None => ExitCode::FAILURE,
    }
}

/// Writes to standard output. A closed pipe is not an error.
fn print(write: impl FnOnce(&mut io::BufWriter<io::StdoutLock<'_>>) -> io::Result<()>) -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("chronorb: cannot write: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Whether the file is `-`.
fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}
